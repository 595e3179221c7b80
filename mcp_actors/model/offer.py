"""Owns what is offered to a model now: the listing, the index over it, and the pins that hold tools back.

What this is not: how a listing is made (`tools.listing`), nor whether a call may be made (`permission`).

Rule 1: one server's change costs work for that server alone; nothing has changed: nothing is done.
Rule 2: what takes time (the book of pins, an index over many tools) runs in a thread.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import field

from mcp_actors.errors import UnknownServer, UnknownTool
from mcp_actors.tools.filters import hide_by
from mcp_actors.tools.listing import Listing, list_for_model
from mcp_actors.tools.search import SearchIndex
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.actors.registry import Snapshot
    from mcp_actors.fleet.configured import Configured
    from mcp_actors.model.permission import Permission
    from mcp_actors.model.pins import PinBook
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.filters import Hide
    from mcp_actors.tools.permission_rules import Rules
    from mcp_actors.tools.pinning import ToolChange
    from mcp_actors.tools.search import ToolMatch
    from mcp_actors.tools.view import ToolView

__all__ = ["Offer", "Offering"]

logger = logging.getLogger("mcp_actors.model")

# A catalogue from this size on is indexed in a thread.
THREAD_TOOLS: Final = 500


class Offering(Protocol):
    """What an offer needs of the runtime; see `Runtime` for each."""

    configured: Configured

    @property
    def snapshot(self) -> Snapshot: ...

    async def find_tool(self, name: str) -> Tool: ...


@define(eq=False)
class Offer:
    """What one face offers. Its rules are those of its permission, as they are now."""

    _runtime: Offering
    _permission: Permission
    # What was approved; None: definitions may change freely.
    pins: PinBook | None
    # Told of the changes of a server when they are found.
    _report: Callable[[str, tuple[ToolChange, ...]], None] | None
    # What was listed last, of which snapshot and by which rules; replaced together, under the lock.
    _listing: Listing = field(factory=Listing, init=False)
    _listed: tuple[Snapshot, Rules] | tuple[None, None] = field(default=(None, None), init=False)
    # The filter, and the rules that it was made of; None: it is to be made anew.
    _hide: tuple[Hide, Rules] | None = field(default=None, init=False)
    # Over the listing that was searched last.
    _index: SearchIndex = field(factory=SearchIndex, init=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False)

    async def listing(self) -> Listing:
        """What a model may call now. Other rules, after a reload, are another list. Cancellation: safe."""
        if self._listed[0] is self._runtime.snapshot and self._listed[1] is self._permission.rules:
            return self._listing
        async with self._lock:
            snapshot, rules = self._runtime.snapshot, self._permission.rules
            await self._look_at_pins(snapshot)
            if self._hide is None or self._hide[1] is not rules:  # another filter makes every shelf anew
                self._hide = hide_by(rules, frozenset() if self.pins is None else self.pins.suspended), rules
            hide, _ = self._hide
            self._listing = list_for_model(snapshot.catalog, hide, previous=self._listing, eager=snapshot.eager)
            self._listed = snapshot, rules
        return self._listing

    async def _look_at_pins(self, snapshot: Snapshot) -> None:
        if self.pins is None:
            return
        for server in snapshot.catalog.servers:
            tools, connection = snapshot.catalog.tools_of(server), snapshot.connections.get(server)
            if connection is None or not self.pins.is_news(server, tools):
                continue
            changes = await trio.to_thread.run_sync(self.pins.look, connection.spec, tools)
            for change in changes:
                logger.warning("[MCP:%s] a tool is not what was approved: %s", server, change.describe())
            if changes and self._report is not None:
                self._report(server, changes)

    async def approve(self, server: str) -> None:
        """Take a server's tools as they are now; what was held back is listed again.

        Raises:
            UnknownServer: it is not connected.

        Cancellation:
            Safe. It is done or not.
        """
        async with self._lock:
            snapshot = self._runtime.snapshot
            connection = snapshot.connections.get(server)
            if connection is None:
                raise UnknownServer(name=server)
            if self.pins is not None:
                tools = snapshot.catalog.tools_of(server)
                await trio.to_thread.run_sync(self.pins.approve, connection.spec, tools)
            self._hide, self._listed = None, (None, None)

    async def search(self, query: str, limit: int) -> tuple[ToolMatch, ...]:
        """Find tools by words, best first. Cancellation: safe."""
        listing = await self.listing()
        index = self._index = self._index.replace(listing)
        if len(listing) >= THREAD_TOOLS:
            return await trio.to_thread.run_sync(index.search, query, limit)
        return index.search(query, limit)

    async def view(self, name: str) -> ToolView:
        """The view of a callable name; brings up its server first where that is down (S118, S125).

        Raises:
            UnknownTool: nothing of that name is offered; hidden tools are not.
            (and why its server did not come up.)

        Cancellation:
            Safe.
        """
        views = (await self.listing()).views
        if name not in views and self._is_down(name):
            # A model knows it from an earlier list: "no such tool" would be wrong.
            with suppress(UnknownTool):
                await self._runtime.find_tool(name)
            views = (await self.listing()).views
        if name not in views:
            nearest = self._runtime.snapshot.catalog.nearest(name)
            raise UnknownTool(name=name, nearest=tuple(near for near in nearest if near in views))
        return views[name]

    def _is_down(self, name: str) -> bool:
        connected = self._runtime.snapshot.connections
        return any(server not in connected for server in self._runtime.configured.servers_of(name))
