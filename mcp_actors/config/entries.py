"""Owns the typed shape of one entry under ``mcpServers``, and the one place where cattrs builds it.

What this is not: what the fields mean together (`validate`). Unknown keys are not lost: `ServerSpec.raw` has them all.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, NewType

from attrs import field, fields

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cattrs import Converter

    from mcp_actors.config.notes import KeyPath
    from mcp_actors.jsontypes import JsonObject

__all__ = ["FILE_KEYS", "Entry", "FieldFault", "Restart", "entry_keys", "structure_entry"]

# Text, or a number or truth value that is taken as text (fault 27).
LooseText = NewType("LooseText", str)
# A number of milliseconds, as these files write durations.
Milliseconds = NewType("Milliseconds", float)
# The same, where anything below a second is ignored rather than wrong (S200).
AnyMilliseconds = NewType("AnyMilliseconds", float)


@frozen
class Restart:
    """The object form of `restart`: OTP's numbers. Durations in milliseconds, as everywhere in these files."""

    type: str | None = None
    intensity: int | None = None
    period: Milliseconds | None = None
    backoff_first: Milliseconds | None = None
    backoff_factor: float | None = None
    backoff_max: Milliseconds | None = None
    max_tries: int | None = None
    stable_after: Milliseconds | None = None
    jitter: bool | None = None
    park_probe: Milliseconds | None = None


@frozen
class Entry:
    """One server as written, structured but not expanded."""

    type: str | None = None
    command: str | None = None
    args: list[LooseText] = field(factory=list, repr=False)
    # None as a value: not set (fault 27).
    env: dict[str, LooseText | None] = field(factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: dict[str, LooseText | None] = field(factory=dict, repr=False)
    headers_helper: str | None = field(default=None, repr=False)
    timeout: AnyMilliseconds | None = None
    request_timeout: Milliseconds | None = None
    connect_timeout: Milliseconds | None = None
    always_load: bool = False
    era: str | None = None
    restart: Restart | None = None
    disabled: bool = False
    enabled: bool = True


# Attribute -> key in the file, where they differ.
FILE_KEYS: Mapping[str, str] = {
    "headers_helper": "headersHelper",
    "request_timeout": "request_timeout_ms",
    "connect_timeout": "connectTimeout",
    "always_load": "alwaysLoad",
    "backoff_first": "backoffFirst",
    "backoff_factor": "backoffFactor",
    "backoff_max": "backoffMax",
    "max_tries": "maxTries",
    "stable_after": "stableAfter",
    "park_probe": "parkProbe",
}


def entry_keys() -> frozenset[str]:
    """The keys of an entry as files write them."""
    return frozenset(FILE_KEYS.get(attribute.name, attribute.name) for attribute in fields(Entry))


# In milliseconds thirty thousand years: what is larger is a slip, and would overflow a float.
MAX_NUMBER = 1e15

# Checked before cattrs, which would take a text for a list of its letters.
CONTAINERS: Mapping[str, tuple[type, str]] = {
    "args": (list, "must be a list of texts"),
    "env": (dict, "must be an object of texts"),
    "headers": (dict, "must be an object of texts"),
    "restart": (dict, "must be permanent, transient, temporary, or an object"),
}


class FieldFault(NamedTuple):
    """One field that is wrong: its path inside the entry, and why. Never its value."""

    path: KeyPath
    reason: str


def structure_entry(raw: JsonObject) -> tuple[Entry | None, list[FieldFault]]:
    """Build the typed entry out of `raw`.

    Returns:
        The entry and no faults, or None and every fault there is, in field order.

    Source:
        S002, S003, S034, faults 21 and 27.
    """
    # null says "not set" everywhere, as it does inside env.
    given = {key: value for key, value in raw.items() if value is not None}
    restart = given.get("restart")
    if isinstance(restart, str):
        given["restart"] = {"type": restart}
    faults: list[FieldFault] = []
    for key, (kind, reason) in CONTAINERS.items():
        if key in given and not isinstance(given[key], kind):
            faults.append(FieldFault((key,), reason))
            del given[key]
    # Imported here: cattrs costs 30 ms, which `--help` need not pay.
    from cattrs import BaseValidationError

    try:
        entry = _converter().structure(given, Entry)
    except BaseValidationError as exc:
        faults += _faults_of(exc, ())
        return None, faults
    return (None, faults) if faults else (entry, [])


class _Wrong(ValueError):
    """A value of the wrong kind; its text says what was expected."""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "a truth value"),
        (int, "a number"),
        (float, "a number"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "something else")


def _text(value: object, _: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"must be a text, not {_kind(value)}")
    return value


def _loose_text(value: object, _: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)  # true, 8080, 0.5: as the file has it
    raise _Wrong(f"must be a text, not {_kind(value)}")


def _truth(value: object, _: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"must be true or false, not {_kind(value)}")
    return value


def _whole(value: object, _: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Wrong("must be a whole number, zero or more")
    return value


def _any_number(value: object, _: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Wrong(f"must be a number, not {_kind(value)}")
    if not abs(value) <= MAX_NUMBER:
        raise _Wrong("is too large")
    return float(value)


def _number(value: object, _: object) -> float:
    number = _any_number(value, _)
    if number <= 0:
        raise _Wrong("must be a number above zero")
    return number


@cache
def _converter() -> Converter:
    """The converter of this border: strict kinds, all faults at once."""
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, override

    made = Converter(detailed_validation=True)
    hooks = (
        (str, _text),
        (bool, _truth),
        (int, _whole),
        (float, _number),
        (LooseText, _loose_text),
        (Milliseconds, _number),
        (AnyMilliseconds, _any_number),
    )
    for kind, hook in hooks:
        made.register_structure_hook(kind, hook)
    for shape in (Restart, Entry):
        names = {attribute: key for attribute, key in FILE_KEYS.items() if hasattr(shape, attribute)}
        renames = {attribute: override(rename=key) for attribute, key in names.items()}
        made.register_structure_hook(shape, make_dict_structure_fn(shape, made, **renames))  # type: ignore[arg-type]
    return made


def _faults_of(exc: BaseException, path: KeyPath) -> list[FieldFault]:
    """Flatten cattrs' tree of errors; the path comes from the notes that it hangs on each."""
    from cattrs import ClassValidationError, IterableValidationError

    if isinstance(exc, ClassValidationError):
        named, bare = exc.group_exceptions()
        steps: list[tuple[BaseException, str | int]] = [
            (sub, FILE_KEYS.get(note.name, note.name)) for sub, note in named
        ]
    elif isinstance(exc, IterableValidationError):
        indexed, bare = exc.group_exceptions()
        steps = [(sub, note.index) for sub, note in indexed]
    else:
        return [FieldFault(path, str(exc) if isinstance(exc, _Wrong) else "is of the wrong kind")]
    faults = [fault for sub, step in steps for fault in _faults_of(sub, (*path, step))]
    return faults + [fault for sub in bare for fault in _faults_of(sub, path)]
