"""Owns the names: who is configured, in which state, offering what; publishes it as immutable snapshots.

What this is not: a relay. A call reads the snapshot and goes straight to the connection.

Rules.

1. Updates are collected for `publish_window` seconds from the first one and published at once (S366, S368); later ones
   do not extend the window. It ends at once by a `Flush`, and when the last of the servers that these await has been
   tried.
2. An update replaces what was known of its server, and touches nothing of another (S367).
3. What is not connected offers nothing (S371); a stale generation's events are ignored (S126).
4. A watcher is told of a change when the snapshot shows it, so that who reads the one and waits for the other misses
   nothing and finds what was told.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

import trio
from attrs import evolve, field

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.mailbox import Envelope, Mailbox
from mcp_actors.actors.messages import (
    Flush,
    Listing,
    RegistryMessage,
    Reorder,
    ServerListed,
    ServerRemoved,
    StatusChanged,
)
from mcp_actors.errors import ActorGone
from mcp_actors.tools.catalog import Catalog
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sized

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.tools.catalog import Tool

__all__ = ["Registry", "Snapshot", "StatusChange", "Watcher"]

# A thousand servers that change state in one turn of the scheduler fit in.
MAILBOX_SIZE = 1024
# Changes that a watcher may be behind; then the oldest are dropped and counted.
WATCHER_SIZE = 4096


@frozen(eq=False)
class Snapshot:
    """Everything known at one moment; never changed after it is published."""

    # Counts the publications.
    version: int = 0
    # Server name -> status, in configuration order. Like the others, nobody's to write into: every reader has the same.
    servers: Mapping[str, ServerStatus] = MappingProxyType({})
    catalog: Catalog = field(factory=Catalog)
    # Server name -> the connection that takes its calls now; connected servers only.
    connections: Mapping[str, Connection] = MappingProxyType({})
    # Server name -> what it listed; connected servers only.
    listings: Mapping[str, Listing] = MappingProxyType({})

    @property
    def eager(self) -> frozenset[str]:
        """Servers whose entries have all their tools loaded at once (S003)."""
        return frozenset(name for name, connection in self.connections.items() if connection.spec.always_load)


@frozen
class StatusChange:
    """One change of one server: `old` is None when it is new, `new` when it was removed (S102)."""

    name: str
    old: ServerStatus | None
    new: ServerStatus | None
    # Changes that this watcher lost before this one, because it fell too far behind.
    missed: int = 0


@define(eq=False)
class Watcher:
    """An asynchronous iterator over the changes since the last snapshot; bounded, never holds up the registry."""

    _changes: deque[StatusChange] = field(factory=deque)
    _missed: int = 0
    _bell: Bell = field(factory=Bell)

    def notice(self, change: StatusChange) -> None:
        """Take a change; the oldest is dropped when there are too many."""
        if len(self._changes) >= WATCHER_SIZE:
            self._changes.popleft()
            self._missed += 1
        self._changes.append(change)
        self._bell.ring()

    def end(self) -> None:
        """Learn that there will be no more changes; those that were noticed can still be read."""
        self._bell.end()

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> StatusChange:
        """Wait for the next change; the iteration ends with the runtime. Cancellation: safe."""
        while not self._changes:
            await self._bell.wait()
        change = self._changes.popleft()
        missed, self._missed = self._missed, 0
        return evolve(change, missed=missed) if missed else change


class Registry:
    """The actor that knows names."""

    def __init__(self, *, window: float) -> None:
        self.mailbox: Mailbox[RegistryMessage] = Mailbox("registry", size=MAILBOX_SIZE)
        # The newest publication; replaced whole, by this actor only.
        self.snapshot = Snapshot()
        self._window = window
        # Name -> status as last told, in configuration order; may be ahead of the snapshot by one window.
        self._statuses: dict[str, ServerStatus] = {}
        self._connections: dict[str, Connection] = {}
        self._listings: dict[str, Listing] = {}
        # Names told of since the last publication. The supervisor tells of each server once before any of them moves,
        # in the order of the configuration, so that order of arrival is that order (invariant 10).
        self._touched: dict[str, None] = {}
        # Name -> its place, once somebody said so; until then order of arrival is what counts.
        self._places: dict[str, int] = {}
        self._watchers: set[Watcher] = set()
        # Servers that somebody awaits, until they have been tried: their names.
        self._awaited: set[str] = set()
        # Rung at each publication; over when `run` was left: nothing changes any more.
        self._published = Bell()
        # Server, status before and after of what changed since the last publication, oldest first.
        self._changes: list[tuple[str, ServerStatus | None, ServerStatus | None]] = []

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        """Watch all changes of status that the snapshot does not show yet, while the block runs."""
        watcher = Watcher()
        if self._published.is_over:
            watcher.end()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def wait_published(self) -> None:
        """Wait for the next publication. Raises `ActorGone` when there will be none. Cancellation: safe."""
        if not self._published.is_over:
            await self._published.wait()
        if self._published.is_over:
            raise ActorGone(actor=self.mailbox.actor)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Collect and publish. Runs until cancelled; what was told before is still published then (S372)."""
        with self.mailbox:
            task_status.started()
            try:
                while True:
                    await self._collect(await self.mailbox.receive())
            finally:
                while (envelope := self.mailbox.receive_nowait()) is not None:
                    with envelope:
                        self._apply(envelope.message)
                        self._publish()
                        envelope.resolve()
                if self._touched:  # applied in a window that did not end
                    self._publish()
                self._published.end()
                for watcher in self._watchers:
                    watcher.end()

    async def _collect(self, envelope: Envelope[RegistryMessage]) -> None:
        with trio.move_on_after(self._window):
            while not self._apply(envelope.message):
                envelope = self.mailbox.receive_nowait() or await self.mailbox.receive()
        with envelope:
            self._publish()
            envelope.resolve()

    def _apply(self, message: RegistryMessage) -> bool:
        """Note what is told. Returns whether somebody waits for its publication."""
        match message:
            case StatusChanged(status, connection):
                if connection is not None:
                    self._connections[status.name] = connection
                elif not status.is_connected:
                    self._withdraw(status.name)
                counted = _counted(status, self._listings.get(status.name))
                self._remember(status.name, self._statuses.get(status.name), counted)
                self._statuses[status.name] = counted
                self._touched[status.name] = None
                return counted.is_tried and self._is_last_awaited(status.name)
            case ServerListed(server, generation, listing):
                known = self._statuses.get(server)
                if known is not None and known.generation == generation:
                    self._listings[server] = listing
                    if known.is_connected:  # else it is told of next
                        self._statuses[server] = _counted(known, listing)
                    self._touched[server] = None
            case ServerRemoved(name):
                self._remember(name, self._statuses.pop(name, None), None)
                self._withdraw(name)
                self._touched[name] = None
                return self._is_last_awaited(name)
            case Reorder(names):
                self._places = {name: place for place, name in enumerate(names)}
            case Flush(awaited):
                self._awaited.update(awaited)
                self._awaited -= {name for name, status in self._statuses.items() if status.is_tried}
                return True
        return False

    def _is_last_awaited(self, name: str) -> bool:
        if name not in self._awaited:
            return False
        self._awaited.remove(name)
        return not self._awaited

    def _withdraw(self, name: str) -> None:
        self._connections.pop(name, None)
        self._listings.pop(name, None)

    def _remember(self, name: str, old: ServerStatus | None, new: ServerStatus | None) -> None:
        if old is None or new is None or _where(old) != _where(new):
            self._changes.append((name, old, new))

    def _publish(self) -> None:
        """Make one new snapshot of the last one; costs work for the servers that changed, and copies of the tables.

        Source:
            S366-S372: tools, resources, prompts and connections together (S369); the last one is untouched (S370).
        """
        previous = self.snapshot
        servers = dict(previous.servers)
        offers: dict[str, tuple[Tool, ...] | None] = {}
        for name in self._touched:
            status, listing = self._statuses.get(name), self._listings.get(name)
            if status is None:
                servers.pop(name, None)
            else:
                servers[name] = status
            is_up = status is not None and status.is_connected
            offers[name] = listing.tools if is_up and listing is not None else None
        self._touched.clear()
        if self._places:
            last = len(self._places)
            servers = dict(sorted(servers.items(), key=lambda item: self._places.get(item[0], last)))
        self.snapshot = Snapshot(
            version=previous.version + 1,
            servers=MappingProxyType(servers),
            catalog=previous.catalog.with_order(tuple(servers)).replace_servers(offers),
            connections=MappingProxyType(self._connections.copy()),
            listings=MappingProxyType(self._listings.copy()),
        )
        self._published.ring()
        changes, self._changes = self._changes, []
        if self._watchers:
            for change in [StatusChange(*each) for each in changes]:
                for watcher in self._watchers:
                    watcher.notice(change)


def _counted(status: ServerStatus, listing: Listing | None) -> ServerStatus:
    """The status with the numbers of what the server listed."""
    if listing is None:
        return status
    return status.changed(
        tools=_count(listing.tools),
        resources=_count(listing.resources),
        prompts=_count(listing.prompts),
        warnings=listing.warnings,
    )


def _where(status: ServerStatus) -> tuple[str, str, str]:
    """What a watcher wants to be told of when it changes."""
    return status.state, status.phase, status.reason


def _count(items: Sized | None) -> int | None:
    return None if items is None else len(items)
