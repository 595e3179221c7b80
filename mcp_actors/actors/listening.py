"""Owns what one connection listens to: the lists always, resources for as long as somebody watches them.

What this is not: what follows a change of a list (`lists`), nor how each era is asked (`protocol.listening`).

Rules.

1. One facade for both eras (F01, F04): `watch` a URI; modern servers get one ``subscriptions/listen`` for everything,
   legacy ones a ``resources/subscribe`` for each URI, again after every renewal (A10).
2. A subscription that ends is asked for again, later each time; afterwards everything is fetched again (F02, F03).
3. A watcher holds up nobody: it keeps which URIs changed, not how often. What it keeps is bounded (invariant 5): of too
   many URIs it knows only that something changed, of too many log messages it loses the oldest.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.actors.bell import Bell
from mcp_actors.errors import LocalProtocolError, McpActorsError
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.features import AskForLevel, NoLevels, StampLevel, plan_log_level
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.listening import (
    LISTEN,
    PROOF,
    Again,
    ListenFilter,
    covers_uri,
    decide_relisten,
    plan_listening,
)
from mcp_actors.protocol.types import Era
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_actors.actors.lists import Lists
    from mcp_actors.actors.wire import Wire
    from mcp_actors.protocol.events import LogReceived
    from mcp_actors.protocol.types import ServerInfo

__all__ = ["Listening", "LogWatcher", "ResourceWatcher"]

logger = logging.getLogger("mcp_actors.connection")

LISTS: Final = frozenset({"tools", "prompts", "resources"})
# Of one watcher, unread: a server decides how many URIs lie below a watched one, and how long each is.
MAX_URI_CHARS: Final = 1024 * 1024
MAX_LOG_MESSAGES: Final = 1000
MAX_LOG_BYTES: Final = 4 * 1024 * 1024
SUBSCRIBE_TIMEOUTS: Final = CallTimeouts(wall=30.0)


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
    _bell: Bell = field(factory=Bell, init=False)

    def notice(self, uri: str) -> None:
        """Note a change."""
        if uri not in self._changed:
            if self._chars + len(uri) > MAX_URI_CHARS:
                self._changed.clear()
                uri, self._chars = self._uri, 0
            self._changed[uri] = None
            self._chars += len(uri)
        self._bell.ring()

    def end(self) -> None:
        """Learn that nothing more will come; what was noticed can still be read."""
        self._bell.end()

    def __aiter__(self) -> ResourceWatcher:
        return self

    async def __anext__(self) -> str:
        """Wait for the next change; the iteration ends when the server is gone for good. Cancellation: safe."""
        while not self._changed:
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
        self._log_level: str | None = None
        # Whether this wire session knows it.
        self._is_level_known = False
        # Modern: what was asked for, and what of it the server will not tell; live on its age.
        self._asked_for = ListenFilter()
        self.unheard = ListenFilter()
        # Whether nobody listened for a while: then the next acknowledgement is followed by a fetch.
        self._has_gap = False
        # Legacy: what this wire session is subscribed to.
        self._subscribed: set[str] = set()
        # Starts `_ask` on the connection that there is; nobody is asked before the first.
        self._start: Callable[[], None] = _nobody
        # Whether `_ask` runs.
        self._is_asking = False
        # Rung when what is wanted changed.
        self._bell = trio.Event()
        # The open ``subscriptions/listen``; cancelled to open another.
        self._open = trio.CancelScope()

    @contextmanager
    def watch(self, uri: str) -> Iterator[ResourceWatcher]:
        """Watch one resource, and those below it, while the block runs."""
        watcher = ResourceWatcher(uri)
        if self._is_over:
            watcher.end()
        self._watchers.setdefault(uri, set()).add(watcher)
        self.again()
        try:
            yield watcher
        finally:
            self._watchers[uri].discard(watcher)
            if not self._watchers[uri]:
                del self._watchers[uri]
                self.again()

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
        await self._ask_for_level(level, wire, info)
        self._log_level, self._is_level_known = level, True

    async def _ask_for_level(self, level: str, wire: Wire, info: ServerInfo) -> None:
        match plan_log_level(level, info):
            case AskForLevel(method, params):
                await wire.calls.ask(method, params, timeouts=SUBSCRIBE_TIMEOUTS)
            case StampLevel(stamped):
                wire.session.stamp_log_level(stamped)
            case NoLevels(reason):
                raise LocalProtocolError(server=wire.server, reason=reason)

    def resource_updated(self, uri: str) -> None:
        """Tell who watches this resource, or one that it is below."""
        for watched, watchers in self._watchers.items():
            if covers_uri(watched, uri):
                for watcher in watchers:
                    watcher.notice(uri)

    def acknowledged(self, honoured: ListenFilter, lists: Lists) -> None:
        """Learn what a server will tell of; whatever changed while nobody listened is fetched now (F02)."""
        self.unheard = self._asked_for - honoured
        if self._has_gap:
            self._has_gap = False
            lists.mark_all()

    def renewed(self) -> None:
        """The server began a new wire session and knows of nothing."""
        self._subscribed.clear()
        self._is_level_known = False
        self.again()

    def begin(self, life: trio.Nursery, wire: Wire, info: ServerInfo) -> None:
        """Ask this server for what is wanted, and again whenever that changes. Runs in `life`, while there is need."""
        self._subscribed.clear()
        self._is_level_known = self._has_gap = self._is_asking = False

        def start() -> None:
            if wire.gone is None:
                self._is_asking = True
                life.start_soon(self._ask, wire, info)

        self._start = start
        # Legacy servers tell of their lists unasked.
        if info.era is Era.MODERN or self._watchers or self._log_level is not None:
            start()

    def again(self) -> None:
        """Ask anew: what is wanted changed."""
        if self._is_asking:
            self._bell.set()
            self._open.cancel()
        else:
            self._start()

    async def _ask(self, wire: Wire, info: ServerInfo) -> None:
        """Ask for what is wanted, and again when that changes or ends; returns when there is nothing to ask for."""
        failures = 0
        while True:
            self._bell = trio.Event()
            if self._log_level is not None and not self._is_level_known:
                await self._repeat_level(self._log_level, wire, info)
            plan = plan_listening(ListenFilter(LISTS, frozenset(self._watchers)), info)
            await self._subscribe(wire, set(plan.subscribe))
            if plan.listen is None:
                if self._bell.is_set():
                    continue
                break
            self._asked_for = plan.listen
            error: McpActorsError | None = None
            begun = trio.current_time()
            with trio.CancelScope() as self._open:
                try:
                    await wire.calls.ask(LISTEN, plan.listen.to_params(), timeouts=CallTimeouts())
                except McpActorsError as lost:
                    error = lost.with_traceback(None)  # it would hold this frame, and this frame it
            self._has_gap = True
            if self._open.cancelled_caught:
                failures = 0
                continue
            if wire.gone is not None:
                break
            failures = 1 if trio.current_time() - begun >= PROOF else failures + 1
            step = decide_relisten(error, failures, random.random())
            if not isinstance(step, Again):
                logger.debug("[MCP:%s] = listens no more: %s", wire.server, step.reason)
                break
            with trio.move_on_after(step.after):
                await self._bell.wait()
        self._is_asking = False

    async def _repeat_level(self, level: str, wire: Wire, info: ServerInfo) -> None:
        self._is_level_known = True
        try:
            await self._ask_for_level(level, wire, info)
        except (McpActorsError, trio.TooSlowError) as error:
            logger.debug("[MCP:%s] ! the log level was not taken: %s", wire.server, error)

    async def _subscribe(self, wire: Wire, wanted: set[str]) -> None:
        """Legacy: subscribe to what is new, unsubscribe from what nobody watches any more."""
        old, new = self._subscribed - wanted, wanted - self._subscribed
        steps = [("resources/unsubscribe", uri) for uri in sorted(old)]
        steps += [("resources/subscribe", uri) for uri in sorted(new)]
        self._subscribed = set(wanted)
        for method, uri in steps:
            try:
                await wire.calls.ask(method, {"uri": uri}, timeouts=SUBSCRIBE_TIMEOUTS)
            except (McpActorsError, trio.TooSlowError) as error:
                logger.debug("[MCP:%s] ! %s failed: %s", wire.server, method, error)


def _size_of(message: LogReceived) -> int:
    try:
        return len(encode([message.level, message.logger, message.data]))
    except LocalProtocolError:  # nested as deeply as can just be read
        return MAX_LOG_BYTES


def _nobody() -> None:
    """There is no server to ask yet."""
