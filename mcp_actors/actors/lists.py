"""Owns what one connection has listed: fetches tools, resources and prompts, and again when they changed.

What this is not: the pager (`protocol.lists`), nor the catalog (`registry`).

Rules.

1. Only what the server declared is asked for (fault 69).
2. Bursts of list_changed coalesce: at most one refresh runs and one waits (S152, fault 80).
3. A failed refresh keeps the old list and says so; a failed first fetch leaves the server connected, flagged
   (S153, S155).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from attrs import evolve

from mcp_actors.actors.messages import Listing, ServerListed
from mcp_actors.errors import McpActorsError, TransportError
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.lists import PageCollector
from mcp_actors.tools.catalog import tools_from_items

if TYPE_CHECKING:
    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.jsontypes import JsonObject

__all__ = ["Lists"]

logger = logging.getLogger("mcp_actors.connection")


class _Kind(NamedTuple):
    method: str
    key: str


_KINDS: Final[dict[str, _Kind]] = {
    "tools": _Kind("tools/list", "tools"),
    "resources": _Kind("resources/list", "resources"),
    "prompts": _Kind("prompts/list", "prompts"),
}


class Lists:
    """The lists of one connection; runs in its nursery."""

    def __init__(self, connection: Connection, registry: Ref[RegistryMessage], *, page_timeout: float) -> None:
        # Set when the first fetch is over, well or not.
        self.are_fetched = trio.Event()
        self._connection = connection
        self._registry = registry
        self._timeouts = CallTimeouts(wall=page_timeout)
        self._listing = Listing()
        # Kind -> what was wrong with it when it was fetched last.
        self._warnings: dict[str, list[str]] = {}
        # Kinds to fetch; all at first.
        self._stale: set[str] = set(_KINDS)
        self._bell = trio.Event()

    def mark(self, kind: str) -> None:
        """Note that the server's list of `kind` changed; unknown kinds are ignored."""
        if kind in _KINDS:
            self._stale.add(kind)
            self._bell.set()

    def mark_all(self) -> None:
        """Note that nothing of what was listed can be trusted any more: the server began anew."""
        self._stale = set(_KINDS)
        self._bell.set()

    async def keep_fresh(self) -> None:
        """Fetch, tell the registry, and again after every `mark`. Runs until cancelled.

        Raises:
            TransportError: the wire broke meanwhile.
        """
        while True:
            stale, self._stale = self._stale, set()
            self._bell = trio.Event()
            for kind in _KINDS:
                if kind in stale and self._is_offered(kind):
                    self._warnings[kind] = await self._fetch(kind)
            warnings = tuple(line for kind in _KINDS for line in self._warnings.get(kind, ()))
            self._listing = evolve(self._listing, warnings=warnings)
            await self._registry.tell(
                ServerListed(self._connection.spec.name, self._connection.generation, self._listing)
            )
            self.are_fetched.set()
            await self._bell.wait()

    def _is_offered(self, kind: str) -> bool:
        info = self._connection.info
        return info is not None and info.has(kind)

    async def _fetch(self, kind: str) -> list[str]:
        """Replace one list; returns what was wrong with it."""
        method, key = _KINDS[kind]
        pages = PageCollector(method, key)
        params: JsonObject | None = pages.first()
        try:
            while params is not None:
                result = await self._connection.exchange(method, params, timeouts=self._timeouts)
                params = pages.feed(result)
        except TransportError:
            raise
        except (McpActorsError, trio.TooSlowError) as error:
            reason = error.describe() if isinstance(error, McpActorsError) else str(error)
            logger.warning("[MCP:%s] failed to list %s: %s", self._connection.spec.name, kind, reason)
            return [f"{method} failed: {reason}"]
        items = tuple(pages.items)
        if kind == "tools":
            tools, warnings = tools_from_items(self._connection.spec.name, items)
            self._listing = evolve(self._listing, tools=tools)
            return [*pages.warnings, *warnings]
        if kind == "resources":
            self._listing = evolve(self._listing, resources=items)
        else:
            self._listing = evolve(self._listing, prompts=items)
        return list(pages.warnings)
