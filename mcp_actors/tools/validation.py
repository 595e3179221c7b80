"""Owns whether structured content fits the output schema: a flag on a result, never an exception (faults 84, 85).

What this is not: validation of arguments, which the server does (S162); nor a reason to count a server as broken.

This is the one doorway of jsonschema-rs and jsonschema (the ``validate`` extra), loaded when first needed; without
either nothing is checked and the outcome says so. Schemas are read as JSON Schema 2020-12 whatever they claim.

Rule 1: schemas are hostile. Nothing is fetched. Patterns run in linear time, or, in the fallback, not at all. Work is
estimated beforehand (`validation_cost`), and what would take too much of it is not checked.
Rule 2: what could not be checked is not invalid.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.schema_check import MAX_SCHEMA_NODES
from mcp_actors.tools.validation_cost import Obstacle, estimate_steps
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Check", "Compiled", "Fit", "Validate", "check_output", "compile_jsonschema", "compile_rust"]

# Bytes of compiled pattern, and steps of one that looks around or back.
MAX_PATTERN_BYTES: Final = 1 << 20
MAX_BACKTRACKS: Final = 100_000
MAX_SCHEMA_BYTES: Final = 1 << 20
MAX_REASON_CHARS: Final = 300


class Fit(enum.StrEnum):
    """Outcome of a check."""

    VALID = "valid"
    INVALID = "invalid"
    UNCHECKED = "unchecked"


@frozen
class Check:
    """Whether structured content fits, and if not, why; `reason` quotes at most 300 characters of either side."""

    fit: Fit
    reason: str = ""


class Validate(Protocol):
    """Gives None for a value that fits, else the reason."""

    def __call__(self, value: Json, /) -> str | None: ...


class Compiled(NamedTuple):
    """A schema ready for use, and how many steps its library takes in well below a second."""

    validate: Validate
    max_steps: int


def compile_rust(schema: dict[str, Json]) -> Compiled:
    """Compile with jsonschema-rs.

    Raises:
        ImportError: it is not installed.
        ValueError: it is no schema.
    """
    import jsonschema_rs

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, size_limit=MAX_PATTERN_BYTES)
    validator = jsonschema_rs.Draft202012Validator(schema, pattern_options=patterns, offline=True)

    def validate(value: Json) -> str | None:
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as exc:
            return _reason(exc.instance_path, exc.message)
        return None

    return Compiled(validate, 10_000_000)


# What the fallback is not asked: Python's patterns can take exponential time, and comparing all pairs quadratic.
_UNSAFE: Final = ("pattern", "patternProperties", "uniqueItems")


def compile_jsonschema(schema: dict[str, Json]) -> Compiled:
    """Compile with jsonschema, the fallback.

    Raises:
        ImportError: it is not installed.
        ValueError: it is no schema, or one that the fallback cannot check safely.
    """
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as exc:
        raise ValueError(exc.message) from exc
    if any(f'"{word}"'.encode() in jsonrpc.encode(schema) for word in _UNSAFE):
        raise ValueError("it needs the package jsonschema-rs")
    validator = jsonschema.Draft202012Validator(schema)

    def validate(value: Json) -> str | None:
        for error in validator.iter_errors(value):
            return _reason(list(error.absolute_path), error.message)
        return None

    return Compiled(validate, 50_000)


def _reason(path: list[str | int], message: str) -> str:
    place = "/".join(map(str, path))[:100]
    return (f"at {place}: " if place else "")[:MAX_REASON_CHARS] + message[:MAX_REASON_CHARS]


_COMPILERS: Final[tuple[Callable[[dict[str, Json]], Compiled], ...]] = (compile_rust, compile_jsonschema)


@lru_cache(maxsize=256)
def _compile(encoded: bytes) -> Compiled | Check:
    """Compile a schema once; keyed by its text, as the same tool is called again and again."""
    schema = jsonrpc.decode_object(encoded)
    for compiler in _COMPILERS:
        try:
            return compiler(schema)
        except ImportError:
            continue
        except (ValueError, RecursionError) as exc:
            return Check(Fit.UNCHECKED, f"the output schema cannot be used: {exc}"[:MAX_REASON_CHARS])
    return Check(Fit.UNCHECKED, "no validator is installed: pip install 'mcp-actors[validate]'")


def check_output(schema: JsonObject | None, value: Json, *, is_error: bool, has_value: bool = True) -> Check | None:
    """Check structured content.

    Args:
        schema: the tool's output schema as the server wrote it; None: it has none.
        value: the structured content as sent.
        is_error: the tool itself reported failure; then nothing is checked (fault 85).
        has_value: false when the server sent no structured content at all.

    Returns:
        None when there is nothing to check, else the outcome. Never raises for what a server sent, and takes bounded
        time on any schema and value.

    Source:
        Faults 84, 85; MCP 2025-11-25, server/tools, "Output Schema": clients SHOULD validate.
    """
    if schema is None or is_error:
        return None
    if not has_value:
        return Check(Fit.INVALID, "the tool promises structured content and sent none")
    try:
        steps = estimate_steps(schema, value, MAX_SCHEMA_NODES)
        encoded = jsonrpc.encode({key: inner for key, inner in schema.items() if key not in {"$schema", "$id"}})
        if len(encoded) > MAX_SCHEMA_BYTES:
            return Check(Fit.UNCHECKED, "the output schema is too large")
        compiled = _compile(encoded)
        if isinstance(compiled, Check):
            return compiled
        if steps > compiled.max_steps:
            return Check(Fit.UNCHECKED, "checking it would take too many steps")
        reason = compiled.validate(value)
    except Obstacle as exc:
        return Check(Fit.UNCHECKED, str(exc))
    except (LocalProtocolError, ValueError, RecursionError) as exc:
        return Check(Fit.UNCHECKED, f"the structured content cannot be checked: {exc}"[:MAX_REASON_CHARS])
    return Check(Fit.VALID) if reason is None else Check(Fit.INVALID, reason)
