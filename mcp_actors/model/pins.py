"""Owns the pins of a host: kept in a small file for each server, compared whenever its tools change.

What this is not: what a pin covers, or what a change means (`tools.pinning`). Blocking: `PinBook` is called in
a thread, by one task at a time.

A file is named after the server and what it runs: two projects that call different programs ``db`` do not see each
other's tools as changes. Environment and headers are no part of that: a token that is renewed approves nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.config.specs import RemoteTarget, StdioTarget
from mcp_actors.errors import ConfigError, RemoteProtocolError
from mcp_actors.files.places import read_bounded
from mcp_actors.files.private import make_private_directory
from mcp_actors.files.writing import change_file
from mcp_actors.tools.naming import normalise
from mcp_actors.tools.pinning import PinPolicy, compare, pin_tool, pins_from_json, pins_to_json, suspended
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import Json
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.pinning import Pin, ToolChange

__all__ = ["PinBook", "PinStore"]

logger = logging.getLogger("mcp_actors.model")

DIRECTORY: Final = "pins"
# A thousand tools of ten kilobytes.
MAX_BYTES: Final = 16 * 1024 * 1024


def _identity(spec: ServerSpec) -> str:
    target = spec.target
    what: list[object] = []
    if isinstance(target, StdioTarget):
        what = [target.command, *target.args]
    elif isinstance(target, RemoteTarget):
        what = [target.url]
    return hashlib.sha256(json.dumps([spec.name, what]).encode()).hexdigest()[:16]


@frozen
class PinStore:
    """The pins of all servers on this machine."""

    state_dir: Path

    def path_of(self, spec: ServerSpec) -> Path:
        """Where the pins of a server lie."""
        return self.state_dir / DIRECTORY / f"{normalise(spec.name)[:40]}-{_identity(spec)}.json"

    def load(self, spec: ServerSpec) -> dict[str, Pin]:
        """Read the pins of a server: raw name -> pin; empty when it was never pinned, or they cannot be read."""
        try:
            value: Json = json.loads(read_bounded(self.path_of(spec), MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("[MCP:%s] ! its pins cannot be read: %s", spec.name, error)
            return {}
        return pins_from_json(value.get("tools")) if isinstance(value, dict) else {}

    def save(self, spec: ServerSpec, pins: Iterable[Pin]) -> None:
        """Write the pins of a server in the place of those that were there. What goes wrong is logged."""
        document = json.dumps({"server": spec.name, "tools": pins_to_json(pins)}, indent=1) + "\n"
        path = self.path_of(spec)
        try:
            make_private_directory(path.parent)
            change_file(path, lambda _: document, self.state_dir)
        except (OSError, ConfigError) as error:
            logger.warning("[MCP:%s] ! its pins cannot be kept: %s", spec.name, error)


@define(eq=False)
class PinBook:
    """What was approved, and what is not as it was."""

    store: PinStore
    policy: PinPolicy = PinPolicy.WARN
    # Server -> its changes since it was pinned, servers without any left out; written by `look` and `approve`.
    changes: dict[str, tuple[ToolChange, ...]] = field(factory=dict, init=False)
    # Callable names that are held back; the same set for ever, so that a filter may hold it.
    suspended: set[str] = field(factory=set, init=False)
    # Server -> raw name -> pin; of servers that were seen.
    _pins: dict[str, Mapping[str, Pin]] = field(factory=dict, init=False)
    # Server -> the tools that were compared last.
    _seen: dict[str, tuple[Tool, ...]] = field(factory=dict, init=False)

    def is_news(self, server: str, tools: tuple[Tool, ...]) -> bool:
        """Whether these tools were not compared yet."""
        return self._seen.get(server) is not tools

    def look(self, spec: ServerSpec, tools: tuple[Tool, ...]) -> tuple[ToolChange, ...]:
        """Compare a server's tools with its pins; a server that has none is pinned as it is.

        Returns:
            The changes, as `tools.pinning.compare` gives them.
        """
        pins = self._pins.get(spec.name)
        if pins is None:
            pins = self.store.load(spec)
        if not pins:
            pins = self._pin(spec, tools)
        self._pins[spec.name] = pins
        self._seen[spec.name] = tools
        changes = compare(pins, tools)
        self._note(spec.name, changes)
        return changes

    def approve(self, spec: ServerSpec, tools: tuple[Tool, ...]) -> None:
        """Take a server's tools as they are now."""
        self._pins[spec.name] = self._pin(spec, tools)
        self._seen[spec.name] = tools
        self._note(spec.name, ())

    def _note(self, server: str, changes: tuple[ToolChange, ...]) -> None:
        self.suspended -= suspended(self.changes.pop(server, ()), self.policy)
        if changes:
            self.changes[server] = changes
            self.suspended |= suspended(changes, self.policy)

    def _pin(self, spec: ServerSpec, tools: tuple[Tool, ...]) -> dict[str, Pin]:
        pins: dict[str, Pin] = {}
        for tool in tools:
            try:
                pins[tool.name] = pin_tool(tool)
            except RemoteProtocolError:
                continue  # it cannot be shown anyway
        self.store.save(spec, pins.values())
        return pins
