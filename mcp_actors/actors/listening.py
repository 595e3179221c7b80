"""Owns what one connection listens to: the lists always, resources for as long as somebody watches them.

What this is not: what follows a change of a list (`lists`), nor how each era is asked (`protocol.listening`).

Rules.

1. One facade for both eras (F01, F04): `watch` a URI; modern servers get one ``subscriptions/listen`` for everything,
   legacy ones a ``resources/subscribe`` for each URI, again after every renewal (A10).
2. A subscription that ends is asked for again, later each time; afterwards everything is fetched again (F02, F03).
3. What a server does not tell of, though it was asked to, is no silence: who watches a resource gets `NotWatched`, for
   as long as that holds, and of a list the status warns (F01; spec_client 7.8).
4. Who begins to watch waits until the server has answered, so that nothing is missed from then on (F01); where it was
   lost meanwhile, and so something may have been, the watcher is told of its URI.
5. A watcher holds up nobody: it keeps which URIs changed, not how often. What it keeps is bounded (invariant 5): of too
   many URIs it knows only that something changed, of too many log messages it loses the oldest.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve, field

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.subscriber import Subscriber, ask_for_level
from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.listening import ListenFilter, covers_uri
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_actors.actors.lists import Lists
    from mcp_actors.actors.slots import Slot
    from mcp_actors.actors.wire import Wire
    from mcp_actors.errors import NotWatched
    from mcp_actors.protocol.events import LogReceived
    from mcp_actors.protocol.types import ServerInfo

__all__ = ["Listening", "LogWatcher", "ResourceWatcher"]

LISTS: Final = frozenset({"tools", "prompts", "resources"})
# A server that does not say by then that it listens is watched all the same.
ANSWER_SECONDS: Final = 5.0
# Of one watcher, unread: a server decides how many URIs lie below a watched one, and how long each is.
MAX_URI_CHARS: Final = 1024 * 1024
MAX_LOG_MESSAGES: Final = 1000
MAX_LOG_BYTES: Final = 4 * 1024 * 1024


@define(eq=False)
class ResourceWatcher:
    """An asynchronous iterator over the URIs that changed; the same URI twice before it is read counts once.

    Where too much has changed before it is read, all that stands for it is the watched URI.
    """

    # What is watched, with all below it.
    _uri: str
    _changed: dict[str, None] = field(factory=dict, init=False)
    # Characters in `_changed`.
    _chars: int = field(default=0, init=False)
    # Why the server does not tell of it; None: it does, as far as is known.
    _refusal: NotWatched | None = field(default=None, init=False)
    _bell: Bell = field(factory=Bell, init=False)

    def missed(self) -> None:
        """Note that the watched resource may have changed unheard."""
        self.notice(self._uri)

    def notice(self, uri: str) -> None:
        """Note a change."""
        if uri not in self._changed:
            if self._chars + len(uri) > MAX_URI_CHARS:
                self._changed.clear()
                uri, self._chars = self._uri, 0
            self._changed[uri] = None
            self._chars += len(uri)
        self._bell.ring()

    def judge(self, refusal: NotWatched | None) -> None:
        """Learn whether the server tells of it; None: it does."""
        self._refusal = refusal
        if refusal is not None:
            self._bell.ring()

    def end(self) -> None:
        """Learn that nothing more will come; what was noticed can still be read."""
        self._refusal = None
        self._bell.end()

    def check(self) -> None:
        """Raise `NotWatched` if the server does not tell of it."""
        if self._refusal is not None:
            raise evolve(self._refusal)  # a raised exception collects tracebacks

    def __aiter__(self) -> ResourceWatcher:
        return self

    async def __anext__(self) -> str:
        """Wait for the next change; the iteration ends when the server is gone for good.

        Raises:
            NotWatched: the server does not tell of it, for now at least: iterating again asks whether it does.

        Cancellation:
            Safe.
        """
        while not self._changed:
            self.check()
            await self._bell.wait()
        uri = next(iter(self._changed))
        del self._changed[uri]
        self._chars -= len(uri)
        return uri


@define(eq=False)
class LogWatcher:
    """An asynchronous iterator over the log messages of one server; who falls behind loses the oldest."""

    # With the size of each, oldest first.
    _messages: deque[tuple[LogReceived, int]] = field(factory=deque, init=False, repr=False)
    # Bytes in `_messages`.
    _bytes: int = field(default=0, init=False)
    _bell: Bell = field(factory=Bell, init=False)

    def notice(self, message: LogReceived, size: int) -> None:
        """Note a message of so many bytes; the newest is kept, however large."""
        self._messages.append((message, size))
        self._bytes += size
        while len(self._messages) > MAX_LOG_MESSAGES or (self._bytes > MAX_LOG_BYTES and len(self._messages) > 1):
            self._take()
        self._bell.ring()

    def _take(self) -> LogReceived:
        message, size = self._messages.popleft()
        self._bytes -= size
        return message

    def end(self) -> None:
        """Learn that nothing more will come; what was noticed can still be read."""
        self._bell.end()

    def __aiter__(self) -> LogWatcher:
        return self

    async def __anext__(self) -> LogReceived:
        """Wait for the next message; the iteration ends when the server is gone for good. Cancellation: safe."""
        while not self._messages:
            await self._bell.wait()
        return self._take()


class Listening:
    """What one server is listened to for; outlives its connections and its definition, until it is removed."""

    def __init__(self) -> None:
        # Whether the server was removed, or the runtime closed: nothing more will be heard.
        self._is_over = False
        # URI -> who watches it.
        self._watchers: dict[str, set[ResourceWatcher]] = {}
        self._log_watchers: set[LogWatcher] = set()
        # The least severe log message that is wanted; None: nobody asked.
        self.log_level: str | None = None
        # Those who were not heard of for a while; they are told once they are again.
        self._deaf: set[ResourceWatcher] = set()
        # Whether the server has answered to what is wanted now; the bell tells of it.
        self._is_answered = True
        self._answers = Bell()
        # Asks the server over the connection that there is, or was last; None before the first.
        self._subscriber: Subscriber | None = None

    @property
    def wanted(self) -> ListenFilter:
        """What somebody wants to hear of."""
        return ListenFilter(LISTS, frozenset(self._watchers))

    @property
    def are_any(self) -> bool:
        """Whether anybody wants more than every server tells unasked."""
        return bool(self._watchers) or self.log_level is not None

    @contextmanager
    def watch(self, uri: str) -> Iterator[ResourceWatcher]:
        """Watch one resource, and those below it, while the block runs."""
        watcher = ResourceWatcher(uri)
        if self._is_over:
            watcher.end()
        self._watchers.setdefault(uri, set()).add(watcher)
        self._ask_again()
        try:
            yield watcher
        finally:
            self._watchers[uri].discard(watcher)
            self._deaf.discard(watcher)
            if not self._watchers[uri]:
                del self._watchers[uri]
                self._ask_again()

    async def wait_answered(self) -> None:
        """Wait until the server has answered to what is wanted now, or will not in time. Cancellation: safe."""
        with trio.move_on_after(ANSWER_SECONDS), suppress(StopAsyncIteration):
            while not self._is_answered:
                await self._answers.wait()

    @contextmanager
    def watch_log(self) -> Iterator[LogWatcher]:
        """Watch the server's log messages while the block runs."""
        watcher = LogWatcher()
        if self._is_over:
            watcher.end()
        self._log_watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._log_watchers.discard(watcher)

    def end(self) -> None:
        """Learn that the server is gone for good: whoever watches is told so."""
        self._is_over = True
        for watcher in self._log_watchers.union(*self._watchers.values()):
            watcher.end()
        self._answers.end()

    def log_received(self, message: LogReceived) -> None:
        """Tell who watches the log."""
        size = _size_of(message) if self._log_watchers else 0
        for watcher in self._log_watchers:
            watcher.notice(message, size)

    async def set_log_level(self, level: str, wire: Wire, info: ServerInfo) -> None:
        """Have this server send log messages of at least this level, now and after every reconnect (F13, A10).

        Raises:
            LocalProtocolError: there is no such level, or the server has none.
            McpActorsError: the server refused.
        """
        await ask_for_level(level, wire, info)
        self.log_level = level
        if self._subscriber is not None:
            self._subscriber.is_level_known = True

    def resource_updated(self, uri: str) -> None:
        """Tell who watches this resource, or one that it is below."""
        for watched, watchers in self._watchers.items():
            if covers_uri(watched, uri):
                for watcher in watchers:
                    watcher.notice(uri)

    async def begin(self, life: trio.Nursery, wire: Wire, info: ServerInfo, lists: Lists) -> None:
        """Ask this server for what is wanted, and again whenever that changes. Waits for no answer."""
        self._miss()
        self._subscriber = Subscriber(self, life, wire, info, lists)
        await self._subscriber.begin()

    def acknowledged(self, slot: Slot, honoured: ListenFilter) -> None:
        """Learn that the server listens, and to what; whatever changed while nobody did is fetched now (F02)."""
        if self._subscriber is not None:
            self._subscriber.acknowledged(slot, honoured)

    def judge(self, refusals: Mapping[str, NotWatched]) -> None:
        """Learn what the server does not tell of, URI -> why; it tells of all else that it was asked for."""
        for uri, watchers in self._watchers.items():
            for watcher in watchers:
                watcher.judge(refusals.get(uri))

    def answered(self) -> None:
        """Learn that the server was asked for all that is wanted: from now on nothing is missed."""
        deaf, self._deaf = self._deaf, set()
        for watcher in deaf:
            watcher.missed()
        self._stop_waiting()

    def lost(self) -> None:
        """Learn that the server tells nothing for now; nobody waits for an answer any more."""
        self._miss()
        self._stop_waiting()

    def _miss(self) -> None:
        self._deaf = {watcher for watchers in self._watchers.values() for watcher in watchers}

    def _stop_waiting(self) -> None:
        self._is_answered = True
        self._answers.ring()

    def renewed(self) -> None:
        """The server began a new wire session and knows of nothing."""
        self._miss()
        if self._subscriber is not None:
            self._subscriber.renewed()

    def _ask_again(self) -> None:
        if self._subscriber is not None:
            self._is_answered = False
            self._subscriber.again()


def _size_of(message: LogReceived) -> int:
    try:
        return len(encode([message.level, message.logger, message.data]))
    except LocalProtocolError:  # nested as deeply as can just be read
        return MAX_LOG_BYTES
