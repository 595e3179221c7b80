"""Owns the typed shape of one entry under ``mcpServers``, and which kind of value each of its keys takes.

What this is not: what the fields mean together (`validate`). Unknown keys are not lost: `ServerSpec.raw` has them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.config.notes import KeyPath
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["ENTRY_FIELDS", "RESTART_FIELDS", "Entry", "FieldFault", "Restart", "structure_entry"]


# In milliseconds thirty thousand years: what is larger is a slip, and would overflow a float.
MAX_NUMBER = 1e15


@frozen
class Restart:
    """The object form of `restart`: OTP's numbers. Durations in milliseconds, as everywhere in these files."""

    type: str | None = None
    intensity: int | None = None
    period: float | None = None
    backoff_first: float | None = None
    backoff_factor: float | None = None
    backoff_max: float | None = None
    max_tries: int | None = None
    stable_after: float | None = None
    jitter: bool | None = None
    park_probe: float | None = None


@frozen
class Entry:
    """One server as written, structured but not expanded. Durations in milliseconds."""

    type: str | None = None
    command: str | None = None
    args: list[str] = field(factory=list, repr=False)
    # None as a value: not set (fault 27).
    env: dict[str, str | None] = field(factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: dict[str, str | None] = field(factory=dict, repr=False)
    headers_helper: str | None = field(default=None, repr=False)
    timeout: float | None = None
    request_timeout: float | None = None
    connect_timeout: float | None = None
    always_load: bool = False
    era: str | None = None
    restart: Restart | None = None
    disabled: bool = False
    enabled: bool = True


class FieldFault(NamedTuple):
    """One field that is wrong: its path inside the entry, and why. Never its value."""

    path: KeyPath
    reason: str


def structure_entry(raw: JsonObject) -> tuple[Entry | None, list[FieldFault]]:
    """Build the typed entry out of `raw`.

    Returns:
        The entry and no faults, or None and every fault there is, in the order of the keys.

    Source:
        S002, S003, S034, faults 21 and 27.
    """
    try:
        return Entry(**_fields(raw, ENTRY_FIELDS)), []  # type: ignore[arg-type]
    except _Wrong as wrong:
        return None, wrong.faults


class _Wrong(ValueError):
    """A value of the wrong kind; says what was expected, and where in the value."""

    def __init__(self, reason: str = "", *, faults: list[FieldFault] | None = None) -> None:
        super().__init__(reason)
        self.faults = [FieldFault((), reason)] if faults is None else faults


# Gives the value as its field holds it. Raises `_Wrong`.
Kind: TypeAlias = "Callable[[Json], object]"


def _fields(raw: JsonObject, known: Mapping[str, tuple[str, Kind]]) -> dict[str, object]:
    """Attribute -> value of the known keys that are set; null says "not set" everywhere, as it does inside env."""
    given = ((key, value, known[key][1]) for key, value in raw.items() if key in known and value is not None)
    return {known[str(key)][0]: value for key, value in _parts(given).items()}


def _parts(parts: Iterable[tuple[str | int, Json, Kind]]) -> dict[str | int, object]:
    """Step -> value. Raises `_Wrong` with the faults of all parts."""
    made: dict[str | int, object] = {}
    faults: list[FieldFault] = []
    for step, value, kind in parts:
        try:
            made[step] = kind(value)
        except _Wrong as wrong:
            faults += [FieldFault((step, *fault.path), fault.reason) for fault in wrong.faults]
    if faults:
        raise _Wrong(faults=faults)
    return made


def _kind(value: Json) -> str:
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


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"must be a text, not {_kind(value)}")
    return value


def _loose_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        try:
            return json.dumps(value, allow_nan=False)  # true, 8080, 0.5: as the file has it
        except ValueError as error:  # infinite, or of more digits than Python writes
            raise _Wrong("is too large") from error
    raise _Wrong(f"must be a text, not {_kind(value)}")


def _loose_text_or_unset(value: Json) -> str | None:
    return None if value is None else _loose_text(value)


def _texts(value: Json) -> list[object]:
    if not isinstance(value, list):
        raise _Wrong("must be a list of texts")
    return list(_parts((index, item, _loose_text) for index, item in enumerate(value)).values())


def _table(value: Json) -> dict[str | int, object]:
    if not isinstance(value, Mapping):
        raise _Wrong("must be an object of texts")
    return _parts((name, item, _loose_text_or_unset) for name, item in value.items())


def _truth(value: Json) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"must be true or false, not {_kind(value)}")
    return value


def _whole(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Wrong("must be a whole number, zero or more")
    return value


def _any_number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Wrong(f"must be a number, not {_kind(value)}")
    if not abs(value) <= MAX_NUMBER:
        raise _Wrong("is too large")
    return float(value)


def _number(value: Json) -> float:
    number = _any_number(value)
    if number <= 0:
        raise _Wrong("must be a number above zero")
    return number


def _restart(value: Json) -> Restart:
    if isinstance(value, str):
        return Restart(type=value)
    if not isinstance(value, Mapping):
        raise _Wrong("must be permanent, transient, temporary, or an object")
    return Restart(**_fields(value, RESTART_FIELDS))  # type: ignore[arg-type]


# Key in the file -> attribute of `Restart`, and the kind of its value.
RESTART_FIELDS: Final[Mapping[str, tuple[str, Kind]]] = {
    "type": ("type", _text),
    "intensity": ("intensity", _whole),
    "period": ("period", _number),
    "backoffFirst": ("backoff_first", _number),
    "backoffFactor": ("backoff_factor", _number),
    "backoffMax": ("backoff_max", _number),
    "maxTries": ("max_tries", _whole),
    "stableAfter": ("stable_after", _number),
    "jitter": ("jitter", _truth),
    "parkProbe": ("park_probe", _number),
}

# Key in the file -> attribute of `Entry`, and the kind of its value.
ENTRY_FIELDS: Final[Mapping[str, tuple[str, Kind]]] = {
    "type": ("type", _text),
    "command": ("command", _text),
    "args": ("args", _texts),
    "env": ("env", _table),
    "cwd": ("cwd", _text),
    "url": ("url", _text),
    "headers": ("headers", _table),
    "headersHelper": ("headers_helper", _text),
    "timeout": ("timeout", _any_number),  # below a second it is ignored rather than wrong (S200)
    "request_timeout_ms": ("request_timeout", _number),
    "connectTimeout": ("connect_timeout", _number),
    "alwaysLoad": ("always_load", _truth),
    "era": ("era", _text),
    "restart": ("restart", _restart),
    "disabled": ("disabled", _truth),
    "enabled": ("enabled", _truth),
}
