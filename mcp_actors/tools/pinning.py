"""Owns what a tool was when it was approved, and what changed since (fault 104).

What this is not: the place where pins are kept (a door's file), nor the approval itself.

Rule 1: a pin covers what a model or a person judges by: name, title, description, schemas, annotations. Other keys of a
definition, such as icons, may change freely.
Rule 2: a tool with a new name and the old rest is a rename; it counts as new, since rules go by name.
Rule 3: a server seen for the first time is taken as it is. After that nothing that was not approved passes a host that
asked for quarantine, whether it was changed, renamed or added.
"""

from __future__ import annotations

import difflib
import enum
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.sanitise import MAX_DEPTH, clean_json, is_list
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.catalog import Tool

__all__ = [
    "ChangeKind",
    "Pin",
    "PinPolicy",
    "ToolChange",
    "compare",
    "pin_tool",
    "pins_from_json",
    "pins_to_json",
    "suspended",
]

_PINNED: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
MAX_DIFF_LINES: Final = 200
MAX_LINE_CHARS: Final = 500


class ChangeKind(enum.StrEnum):
    """What happened to a tool since it was pinned."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    REMOVED = "removed"


class PinPolicy(enum.StrEnum):
    """What a host does about changes."""

    WARN = "warn"
    QUARANTINE = "quarantine"


@frozen
class Pin:
    """One approved definition."""

    # Raw name of the tool.
    name: str
    # Hash of the definition without its name, in hex.
    body_digest: str
    # What was hashed, for a diff later; None in pins that were kept without it.
    body: JsonObject | None = field(default=None, repr=False, eq=False)

    @property
    def digest(self) -> str:
        """Hash of name and definition, in hex."""
        return _digest({"name": self.name, "body": self.body_digest})


@frozen
class ToolChange:
    """One tool that is not what was approved."""

    kind: ChangeKind
    # Raw name now; for a removed tool the name that it had.
    name: str
    # Callable name now; None for a removed tool.
    callable_name: str | None = None
    # Raw name before, where a tool was renamed.
    old_name: str | None = None
    # Keys of the definition that differ.
    keys: tuple[str, ...] = ()
    # Unified diff for a person, cleaned; line by line.
    diff: tuple[str, ...] = field(default=(), repr=False)

    def describe(self) -> str:
        """Say it in one line, without any text of the definition."""
        was = f" (was {self.old_name!a})" if self.old_name is not None else ""
        what = f": {', '.join(self.keys)}" if self.keys else ""
        return f"{self.kind}: {self.name!a}{was}{what}"


def _canonical(value: Json, depth: int = 0) -> Json:
    """Sort the keys of all objects, since their order means nothing."""
    if depth > MAX_DEPTH:
        raise RemoteProtocolError(reason=f"the definition nests deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {key: _canonical(value[key], depth + 1) for key in sorted(value)}
    if is_list(value):
        return [_canonical(item, depth + 1) for item in value]
    return value


def _digest(value: Json) -> str:
    return hashlib.sha256(jsonrpc.encode(_canonical(value))).hexdigest()


def pin_tool(tool: Tool) -> Pin:
    """Take down what a tool is now. Raw definitions are hashed: a hidden character is a change too.

    Raises:
        RemoteProtocolError: the definition cannot be read.
    """
    definition = tool.definition
    body = {key: definition[key] for key in _PINNED if definition.get(key) is not None}
    return Pin(tool.name, _digest(body), body)


def compare(pins: Mapping[str, Pin], tools: Iterable[Tool]) -> tuple[ToolChange, ...]:
    """Compare one server's tools with what was approved.

    Args:
        pins: maps raw name -> pin, all of one server; empty for a server that was never pinned.
        tools: the server's tools now.

    Returns:
        The changes, in the order of the tools, removed ones last. Empty for a server without pins (rule 3).
    """
    if not pins:
        return ()
    changes: list[ToolChange] = []
    present = {tool.name: tool for tool in tools}
    gone = {name: pin for name, pin in pins.items() if name not in present}
    by_body = {pin.body_digest: name for name, pin in reversed(gone.items())}
    for name, tool in present.items():
        try:
            now = pin_tool(tool)
        except RemoteProtocolError:
            continue  # it cannot be shown anyway
        before = pins.get(name)
        if before is None:
            old_name = by_body.pop(now.body_digest, None)
            if old_name is not None:
                del gone[old_name]
                changes.append(ToolChange(ChangeKind.RENAMED, name, tool.callable_name, old_name))
            else:
                changes.append(ToolChange(ChangeKind.ADDED, name, tool.callable_name))
        elif before.body_digest != now.body_digest:
            keys, diff = _differences(before.body, now.body)
            changes.append(ToolChange(ChangeKind.CHANGED, name, tool.callable_name, None, keys, diff))
    changes += [ToolChange(ChangeKind.REMOVED, name) for name in gone]
    return tuple(changes)


def _differences(before: JsonObject | None, now: JsonObject | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if before is None or now is None:
        return (), ()
    keys = tuple(key for key in _PINNED if before.get(key) != now.get(key))
    diff: list[str] = []
    for key in keys:
        lines = difflib.unified_diff(
            _lines(before.get(key)), _lines(now.get(key)), f"{key} (approved)", f"{key} (now)", n=1, lineterm=""
        )
        for line in lines:
            if len(diff) == MAX_DIFF_LINES:
                return keys, (*diff, "...")
            diff.append(line[:MAX_LINE_CHARS])
    return keys, tuple(diff)


def _lines(value: Json) -> list[str]:
    """Write a value as cleaned lines, one for each text line or leaf."""
    if value is None:
        return []
    if isinstance(value, str):
        return str(clean_json(value).value).splitlines()[:1_000]
    lines: list[str] = []
    waiting: list[tuple[str, Json]] = [("", clean_json(_canonical(value)).value)]
    while waiting and len(lines) < 1_000:
        path, item = waiting.pop()
        if isinstance(item, Mapping) and item:
            waiting += reversed([(f"{path}.{key}" if path else key, inner) for key, inner in item.items()])
        elif is_list(item) and item:
            waiting += reversed([(f"{path}[{index}]", inner) for index, inner in enumerate(item)])
        else:
            lines.append(f"{path}: {jsonrpc.encode(item).decode()}")
    return lines


def suspended(changes: Iterable[ToolChange], policy: PinPolicy) -> frozenset[str]:
    """Give the callable names that a host holds back until a person approved the changes (rule 3)."""
    if policy is PinPolicy.WARN:
        return frozenset()
    return frozenset(change.callable_name for change in changes if change.callable_name is not None)


def pins_to_json(pins: Iterable[Pin]) -> JsonObject:
    """Write pins for a file; maps raw name -> what `pins_from_json` reads."""
    return {pin.name: {"digest": pin.body_digest, "body": pin.body} for pin in pins}


def pins_from_json(value: Json) -> dict[str, Pin]:
    """Read pins from a file; entries that are malformed, or whose body does not have its digest, are left out."""
    pins: dict[str, Pin] = {}
    for name, entry in value.items() if isinstance(value, Mapping) else ():
        digest = entry.get("digest") if isinstance(entry, Mapping) else None
        body = entry.get("body") if isinstance(entry, Mapping) else None
        if isinstance(digest, str) and (body is None or (isinstance(body, Mapping) and _digest(body) == digest)):
            pins[name] = Pin(name, digest, body)
    return pins
