"""Owns what one connection has listed: fetches tools, resources and prompts, and again when they changed.

What this is not: the pager (`protocol.lists`), nor the catalog (`registry`).

Rules.

1. Only what the server declared is asked for (fault 69).
2. Bursts of list_changed coalesce: at most one refresh runs and one waits (S152, fault 80).
3. Refreshes keep a distance, which grows while the server goes on changing: one that announces a change with each list
   that it gives would be asked for ever, as fast as it can answer.
4. A failed refresh keeps the old list and says so; a failed first fetch leaves the server connected, flagged, and so
   does an empty list of tools (S153, S155, S336).
5. What was listed lives and dies with its connection, one list of each kind: there is no other memory of it that could
   grow or go stale (S151).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from attrs import evolve

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.messages import Flush, Listing, ServerListed
from mcp_actors.actors.slots import Request
from mcp_actors.errors import McpActorsError, TransportError
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.lists import PageCollector
from mcp_actors.protocol.mirrored import is_marked, refuse_schema
from mcp_actors.tools.catalog import tools_from_items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.catalog import Tool

__all__ = ["Lists"]

logger = logging.getLogger("mcp_actors.connection")


# Seconds before each further try of a list that failed for a passing reason (S154).
RETRY_PAUSES: Final = (0.25, 0.5, 1.0)


# Seconds from the end of one refresh to the next: the first distance, and the longest.
FIRST_DISTANCE: Final = 0.25
LONGEST_DISTANCE: Final = 10.0


class _Kind(NamedTuple):
    method: str
    key: str


_KINDS: Final[dict[str, _Kind]] = {
    "tools": _Kind("tools/list", "tools"),
    "resources": _Kind("resources/list", "resources"),
    "prompts": _Kind("prompts/list", "prompts"),
}
ALL: Final = frozenset(_KINDS)
NONE: Final[frozenset[str]] = frozenset()


class Lists:
    """The lists of one connection. The task that lives its life calls `fetch`, `keep_fresh` and at last `end`."""

    def __init__(self, connection: Connection, registry: Ref[RegistryMessage], *, page_timeout: float) -> None:
        self._connection = connection
        self._registry = registry
        self._page_timeout = page_timeout
        self._listing = Listing()
        # Kind -> why it could not be fetched when that was tried last.
        self.failures: dict[str, str] = {}
        # Kind -> what else was wrong with it then.
        self._warnings: dict[str, tuple[str, ...]] = {}
        # Rounds of fetching that have begun, and that are over, well or not.
        self._begun = self._over = 0
        # Whether nothing is fetched any more.
        self.is_over = False
        # Kind -> why the server does not tell when that list changes, though it offers to (F01).
        self._unheard: Mapping[str, str] = {}
        # Whether the registry was not told yet of one of these.
        self._is_untold = False
        # Kinds to fetch; all at first.
        self._stale = ALL
        # Whether somebody waits for the next round; then no distance is kept.
        self._is_urgent = False
        # Rung when one of these changed.
        self._bell = Bell()

    def mark(self, kind: str) -> None:
        """Note that the server's list of `kind` changed; unknown kinds are ignored."""
        if kind in _KINDS:
            self._stale |= {kind}
            self._bell.ring()

    def mark_all(self) -> None:
        """Note that nothing of what was listed can be trusted any more: the server began anew."""
        self._stale = ALL
        self._bell.ring()

    def note_unheard(self, kinds: Mapping[str, str]) -> None:
        """Learn which lists the server does not tell the changes of, and why; it tells those of all others."""
        if kinds != self._unheard:
            self._unheard, self._is_untold = kinds, True
            self._bell.ring()

    @property
    def listing(self) -> Listing:
        """What was listed last."""
        return self._listing

    def end(self) -> None:
        """Let those who wait for a refresh go: nothing is fetched any more."""
        self.is_over = True
        self._bell.ring()

    async def fetch(self) -> None:
        """Fetch what is stale and tell the registry, also where that is nothing.

        Raises:
            TransportError: the wire broke meanwhile.

        Source:
            S148, S151-S155.
        """
        stale, self._stale = self._stale, NONE
        self._is_urgent = self._is_untold = False
        self._begun += 1
        try:
            for kind in _KINDS:
                if kind in stale and self._is_offered(kind):
                    self.failures.pop(kind, None)
                    self._warnings[kind] = await self._replace(kind)
            warnings = tuple(line for kind in _KINDS for line in self._warnings_of(kind))
            if warnings != self._listing.warnings:
                self._listing = evolve(self._listing, warnings=warnings)
            listed = ServerListed(self._connection.spec.name, self._connection.generation, self._listing)
            await self._registry.tell(listed)
        finally:
            self._over = self._begun
            self._bell.ring()

    def _warnings_of(self, kind: str) -> tuple[str, ...]:
        unheard = self._unheard.get(kind)
        silence = () if unheard is None else (f"{_KINDS[kind].method}: changes are not told: {unheard}",)
        return (*self._warnings.get(kind, ()), *silence)

    async def keep_fresh(self) -> None:
        """Fetch again after every `mark`. Runs until cancelled.

        Raises:
            TransportError: the wire broke meanwhile.
        """
        distance = 0.0  # the first change may follow at once
        while True:
            fetched_at = trio.current_time()
            while not (self._stale or self._is_untold):
                await self._bell.wait()
            is_restless = trio.current_time() - fetched_at < 2 * distance
            with trio.CancelScope(deadline=fetched_at + distance):
                while not self._is_urgent:
                    await self._bell.wait()
            distance = min(2 * distance, LONGEST_DISTANCE) if is_restless else FIRST_DISTANCE
            await self.fetch()

    def _is_offered(self, kind: str) -> bool:
        info = self._connection.info
        return info is not None and info.has(kind)

    async def refresh(self, *kinds: str) -> Listing:
        """Fetch these lists now, all where none is named, and give what is listed then; it is published by then.

        What cannot be fetched stays as it was, and is in `failures`.

        Raises:
            ActorGone: the runtime was closed meanwhile.

        Cancellation:
            Safe.
        """
        for kind in kinds or _KINDS:
            self.mark(kind)
        self._is_urgent = True
        self._bell.ring()
        if not self.is_over:
            wanted = self._begun + 1
            while self._over < wanted and not self.is_over:
                await self._bell.wait()
            await self._registry.ask(Flush())
        return self._listing

    async def _replace(self, kind: str) -> tuple[str, ...]:
        """Replace one list; returns what was wrong with it."""
        try:
            pages = await self._collect(kind)
        except (McpActorsError, trio.TooSlowError) as error:
            if not self._connection.is_alive:
                raise
            reason = error.describe() if isinstance(error, McpActorsError) else str(error)
            logger.warning("[MCP:%s] failed to list %s: %s", self._connection.spec.name, kind, reason)
            self.failures[kind] = reason
            return (f"{_KINDS[kind].method} failed: {reason}",)
        return (*pages.warnings, *self._keep(kind, tuple(pages.items)))

    async def _collect(self, kind: str) -> PageCollector:
        """All pages; what may pass by itself is tried again a few times (S154)."""
        method, key = _KINDS[kind]
        for pause in (*RETRY_PAUSES, None):
            pages = PageCollector(method, key)
            params: JsonObject | None = pages.first()
            try:
                while params is not None:
                    budget = Budget(self._page_timeout, trio.current_time())
                    params = pages.feed(await self._connection.exchange(Request(method, params, budget)))
            except TransportError as error:
                if pause is None or not (error.can_retry and self._connection.is_alive):
                    raise
                await trio.sleep(pause)
            else:
                break
        return pages

    def _keep(self, kind: str, items: tuple[bytes, ...]) -> list[str]:
        """Put a fetched list in the listing; returns what was left out of it."""
        if kind == "tools":
            tools, warnings = tools_from_items(self._connection.spec.name, items)
            if self._connection.is_mirroring:
                tools, unsound = _without_unsound_marks(tools)
                warnings = (*warnings, *unsound)
            self._listing = evolve(self._listing, tools=tools)
            return list(warnings) if items else ["it declares tools and lists none"]
        if kind == "resources":
            self._listing = evolve(self._listing, resources=items)
        else:
            self._listing = evolve(self._listing, prompts=items)
        return []


def _without_unsound_marks(tools: tuple[Tool, ...]) -> tuple[tuple[Tool, ...], list[str]]:
    """Leave out the tools whose marks for mirrored headers are unsound; says which and why (B04)."""
    kept: list[Tool] = []
    warnings: list[str] = []
    for tool in tools:
        why = refuse_schema(tool.input_schema) if is_marked(tool.definition_bytes) else None
        if why is None:
            kept.append(tool)
        else:
            warnings.append(f"tool {tool.name!r} was left out: {why}")
    return tuple(kept), warnings
