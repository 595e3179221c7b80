"""Owns the arguments that a tool wants mirrored in HTTP headers: which are marked, whether soundly, and their values.

What this is not: the standard headers of a message; those are `outbound`.

Rules (MCP 2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
Rule 1: a mark counts on properties that are reached from the root by ``properties`` alone. Anywhere else it makes the
tool invalid, and an invalid tool is left out, with a warning, on HTTP (B04).
Rule 2: a header is sent when the value is there, at that very path, and not null; encoded like ``Mcp-Name`` (B03).
Rule 3: a refusal for mismatching headers (-32020) is worth one look at the tool list and one more try (B05).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RpcError
from mcp_actors.protocol.jsonrpc import HEADER_MISMATCH
from mcp_actors.protocol.outbound import encode_header_value
from mcp_actors.protocol.types import Era
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import ServerInfo

__all__ = [
    "MarkedParameter",
    "is_marked",
    "marked_parameters",
    "mirrored_headers",
    "mirrors_arguments",
    "refuse_schema",
    "wants_refresh",
]

MARK: Final = "x-mcp-header"
HEADER_PREFIX: Final = "Mcp-Param-"
# Integers that every JSON reader agrees on.
MAX_SAFE_INTEGER: Final = 2**53 - 1

# RFC 9110, "token".
_NAME: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TYPES: Final = frozenset({"string", "integer", "boolean"})
# What these hold is data, where anything may lie.
_DATA_KEYWORDS: Final = frozenset({MARK, "const", "enum", "default", "examples", "required"})
# The keys inside these are names of somebody's choice, not keywords.
_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
# Deeper than any schema that a person wrote.
_MAX_DEPTH: Final = 64


class _UnsoundMarkError(Exception):
    """A mark is where, or what, it must not be; the only argument says why."""


@frozen
class MarkedParameter:
    """One argument that is mirrored: its path from the root of the arguments, and its header's full name."""

    path: tuple[str, ...]
    header: str
    type: str


def mirrors_arguments(info: ServerInfo | None, *, is_http: bool) -> bool:
    """Whether a server gets arguments in headers at all: modern ones do, over HTTP (B03)."""
    return is_http and info is not None and info.era is Era.MODERN


def is_marked(definition: bytes) -> bool:
    """Whether an undecoded tool may hold a mark at all; a scan is cheaper than reading every schema."""
    return b"mcp-header" in definition or b"\\u00" in definition


def marked_parameters(schema: JsonObject) -> tuple[MarkedParameter, ...]:
    """Find the marked parameters of a tool's input schema, in its order; none when a mark is unsound."""
    try:
        return _read(schema)
    except _UnsoundMarkError:
        return ()


def refuse_schema(schema: JsonObject) -> str | None:
    """Say why a tool with this input schema must be left out on HTTP; None when its marks are sound (rule 1)."""
    try:
        _read(schema)
    except _UnsoundMarkError as exc:
        return str(exc)
    return None


def mirrored_headers(schema: JsonObject, arguments: JsonObject | None) -> tuple[tuple[str, str], ...]:
    """Make the headers for one call.

    Args:
        schema: the tool's latest known input schema.
        arguments: of the call. Values that are no strings, integers or booleans are not mirrored; the server says what
            it thinks of them.

    Returns:
        Header name and encoded value, in the schema's order; no name twice.

    Source:
        B03; spec_client 5.2.
    """
    found: list[tuple[str, str]] = []
    for parameter in marked_parameters(schema) if arguments else ():
        text = _text(_value_at(arguments, parameter.path))
        if text is not None:
            found.append((parameter.header, encode_header_value(text)))
    return tuple(found)


def wants_refresh(error: McpActorsError) -> bool:
    """Whether to list the tools again and make the call once more with headers of the new schema (rule 3)."""
    return isinstance(error, RpcError) and error.code == HEADER_MISMATCH


# ── reading a schema ────────────────────────────────────────────────────────────────────────────────────────────────


def _read(schema: JsonObject) -> tuple[MarkedParameter, ...]:
    found = tuple(_walk(schema, (), 0))
    seen: set[str] = set()
    for parameter in found:
        if parameter.header.lower() in seen:
            raise _UnsoundMarkError(f"{parameter.header} is used twice")
        seen.add(parameter.header.lower())
    return found


def _walk(schema: JsonObject, path: tuple[str, ...], depth: int) -> Iterator[MarkedParameter]:
    """Yield the marks along ``properties``; a mark beside that way is an error."""
    if depth > _MAX_DEPTH:
        raise _UnsoundMarkError("it nests too deep")
    if MARK in schema:
        yield _marked(schema, path)
    for key, value in schema.items():
        if key != "properties" or not isinstance(value, Mapping):
            if key not in _DATA_KEYWORDS:
                _forbid({key: value}, key, depth)
            continue
        for name, inner in value.items():
            if isinstance(inner, Mapping):
                yield from _walk(inner, (*path, name), depth + 1)


def _forbid(value: Json, keyword: str, depth: int) -> None:
    """Refuse a mark anywhere inside what is not reached by ``properties`` alone."""
    if depth > _MAX_DEPTH:
        raise _UnsoundMarkError("it nests too deep")
    if isinstance(value, Mapping):
        if MARK in value:
            raise _UnsoundMarkError(f"{MARK} stands inside {keyword[:40]!r}, where no path of arguments leads")
        for key, inner in value.items():
            if key in _NAMED_SCHEMAS and isinstance(inner, Mapping):
                for schema in inner.values():
                    _forbid(schema, keyword, depth + 1)
            elif key not in _DATA_KEYWORDS:
                _forbid(inner, keyword, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _forbid(inner, keyword, depth + 1)


def _marked(schema: JsonObject, path: tuple[str, ...]) -> MarkedParameter:
    name, kind = schema[MARK], schema.get("type")
    shown = f"{MARK} of {'.'.join(path)[:80]!r}"
    if not path:
        raise _UnsoundMarkError(f"{MARK} stands on the schema itself")
    if not isinstance(name, str) or not name:
        raise _UnsoundMarkError(f"{shown} is empty or no text")
    if re.fullmatch(_NAME, name) is None:
        raise _UnsoundMarkError(f"{shown} is no header name: {name[:40]!r}")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _UnsoundMarkError(f"{shown} is on the type {repr(kind)[:40]}, not on string, integer or boolean")
    return MarkedParameter(path, HEADER_PREFIX + name, kind)


# ── reading arguments ───────────────────────────────────────────────────────────────────────────────────────────────


def _value_at(arguments: Json, path: tuple[str, ...]) -> Json:
    value = arguments
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _text(value: Json) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else None
        case float() if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
            return str(int(value))
        case str():
            return value
        case _:
            return None
