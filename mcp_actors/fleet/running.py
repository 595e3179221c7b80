"""Owns `Runtime`, the running fleet in a program's hands: looking, waiting, calling, steering.

What this is not: how it is put together (`runtime`), or any of its parts. A decision taken here belongs in a room below
(S134).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from mcp_actors.actors.messages import (
    AddServer,
    ApplySpecs,
    DisableServer,
    EnableServer,
    EnsureConnected,
    Flush,
    RemoveServer,
    RestartServer,
)
from mcp_actors.actors.toolcalls import CallOptions, call_tool, resume_task
from mcp_actors.errors import ConfigError, UnknownTool
from mcp_actors.fleet.reaching import ask_over
from mcp_actors.fleet.sleeping import renew
from mcp_actors.fleet.waking import Waker
from mcp_actors.protocol.budget import require_seconds
from mcp_actors.tools.results import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.actors.mailbox import Ask
    from mcp_actors.actors.registry import Registry, Snapshot, Watcher
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.actors.supervisor import Supervisor
    from mcp_actors.auth.desk import AuthDesk
    from mcp_actors.config.changes import Applied
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import Batch, ServerSpec
    from mcp_actors.files.loading import LoadedConfig
    from mcp_actors.fleet.configured import Configured
    from mcp_actors.fleet.opener import Opener
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.budget import Budget
    from mcp_actors.protocol.task_handle import TaskHandle
    from mcp_actors.tools.catalog import Catalog, Tool

__all__ = ["Runtime"]

T = TypeVar("T")


class Runtime:
    """The running fleet. Made by `open_runtime`; every method may be called from any task of the same trio run."""

    def __init__(
        self, settings: Settings, registry: Registry, supervisor: Supervisor, configured: Configured, opener: Opener
    ) -> None:
        self.settings = settings
        self.configured = configured
        self._registry = registry
        self._permits = supervisor.permits
        self._supervisor = supervisor.mailbox.ref
        self._published = registry.mailbox.ref
        self._opener, self.waker = opener, Waker(self, opener)

    # ── looking: none of these connects, authenticates or blocks ─────────────────────────────────────────────────────

    @property
    def snapshot(self) -> Snapshot:
        """Everything known now, as one immutable value."""
        return self._registry.snapshot

    @property
    def catalog(self) -> Catalog:
        """Who offers which tool under which name, now."""
        return self._registry.snapshot.catalog

    def status(self) -> Mapping[str, ServerStatus]:
        """Server name -> its status, in configuration order. No side effects."""
        return self._registry.snapshot.servers

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """What is wrong with the configuration as read last; the servers that are fine run (S420)."""
        return self.configured.loaded.problems

    @property
    def connecting(self) -> Mapping[Batch, int]:
        """Batch -> how many of its permits are taken now; never more than the limits (S105)."""
        return {batch: permits.borrowed_tokens for batch, permits in self._permits.items()}

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        """Give an asynchronous iterator over all changes of state, phase and reason while the block runs.

        Of lists that change, which may be often, `wait_published` tells.
        """
        with self._registry.watch() as watcher:
            yield watcher

    @property
    def desk(self) -> AuthDesk:
        """Who we are towards the servers: logins, their state, their removal."""
        return self._opener.desk

    def server(self, name: str) -> Server:
        """One server by name, with all that MCP lets a client ask of it. Raises `UnknownServer`."""
        from mcp_actors.fleet.server import Server  # who only calls tools starts 10 ms sooner

        return Server(self, self.configured.find(name))

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def wait_ready(self, names: Iterable[str] | None = None) -> Mapping[str, ServerStatus]:
        """Wait until each of these servers has been tried: it is up, or its first try has failed.

        Args:
            names: servers to wait for; None: all that are configured now.

        Returns:
            Server name -> status of these servers.

        Raises:
            UnknownServer: a name is not configured, or was removed meanwhile.
            ActorGone: the runtime was closed meanwhile.

        Cancellation:
            Safe; give it a deadline of your own where one slow server may not hold you up (S129).

        Source:
            S129, S130, S171, fault 88.
        """
        wanted = tuple(self.configured.specs) if names is None else tuple(names)
        for name in wanted:
            self.configured.find(name)
        await self._published.ask(Flush(wanted))
        while True:
            servers = self._registry.snapshot.servers
            # The last is tried last, as a rule: until then one look will do.
            are_tried = all(name in servers and servers[name].is_tried for name in reversed(wanted))
            for name in wanted if are_tried else set(wanted) - servers.keys():
                self.configured.find(name)  # it may be removed while it is waited for
            if are_tried:
                return {name: servers[name] for name in wanted}
            await self._registry.wait_published()

    async def wait_published(self) -> Snapshot:
        """Wait for the next snapshot, which some server's state or lists change. Cancellation: safe."""
        await self._registry.wait_published()
        return self.snapshot

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
        may_repeat: bool = False,
        on_task: Callable[[TaskHandle], None] | None = None,
        meta: JsonObject | None = None,
    ) -> ToolResult:
        """Call a tool and wait for its result.

        A server that is being connected is waited for; one that ended and may be started again is started (S118, S125).

        Args:
            name: callable name, as listed in the catalog ("mcp__github__create_issue"), or "server.tool" in raw names.
            arguments: JSON object; validated by the server, not here (S162).
            timeout: seconds for all of it, whatever it becomes: rounds, repetitions, a task. The time that a person
                takes does not count. None: the server's own setting, else `Settings.call_timeout`.
            progress: called in this task with the newest progress.
            may_repeat: allow that a call that may have run is made again, where the tool claims to be read-only or
                idempotent; never done otherwise (B19).
            on_task: called when the server makes a task of the call, with a handle that `resume_task` takes.
            meta: goes out in ``_meta`` beside what is ours: ``traceparent``, ``tracestate``, ``baggage`` (F16), or keys
                with a prefix of yours. Over HTTP the first two are headers as well (S095).

        Returns:
            The result. `is_error` is true when the tool itself reported failure.

        Raises:
            LocalProtocolError: this is no call: arguments that are no JSON object, a timeout that is no number.
            UnknownTool: no server offers `name`.
            ServerNotReady: its server is disabled, or did not come up.
            RpcError: the server refused the call.
            TransportError: the server died before answering; the call may have run and is not repeated.
            trio.TooSlowError: `timeout` passed.

        Cancellation:
            Safe. The server is told once; nothing is left pending.

        Source:
            S162, S183, S197, S198, S199, S200.
        """
        known = self.catalog.resolve(name)
        asked = () if known else self.configured.servers_of(name)
        tool, timeout = (known, timeout) if known else await self._within(timeout, partial(self.find_tool, name), asked)

        def call(over: Connection, left: Budget) -> Awaitable[bytes]:
            return call_tool(over, tool, arguments or {}, CallOptions(left, progress, may_repeat, on_task, meta))

        return ToolResult(await ask_over(self.reach, tool.server, timeout, call), tool.server, tool.name)

    async def resume_task(self, handle: TaskHandle, *, timeout: float | None = None) -> ToolResult:
        """Wait for the result of a task that was made earlier, by this run or another (G04).

        `timeout` and what it raises are as for `call_tool`. Cancellation: safe; the server is told as of one there.
        """
        connection, timeout = await self.reach(handle.server, timeout)
        return ToolResult(await resume_task(connection, handle, timeout), handle.server)

    def roots_changed(self) -> None:
        """Tell the legacy servers that the host's roots changed, where it declared that they may (S132, F12)."""
        for connection in self._registry.snapshot.connections.values():
            connection.roots_changed()

    async def request(
        self,
        server: str,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> bytes:
        """Send one request of MCP to a server by name; the result is an undecoded JSON object.

        Raises:
            UnknownServer: no such server.
            ServerNotReady, RpcError, TransportError, trio.TooSlowError: as for `call_tool`.

        Cancellation:
            Safe, as for `call_tool`.
        """
        return await ask_over(
            self.reach, server, timeout, lambda to, left: to.request(method, params, timeout=left, on_progress=progress)
        )

    async def connection(self, server: str) -> Connection:
        """The connection that takes a server's calls; brings it up first if it may be (S125). Cancellation: safe."""
        connection = self._open_connection(server) or await self._ensure(server)
        while connection.users.are_leaving:  # another generation follows already
            connection = await self._ensure(server)
        return connection

    async def reach(self, server: str, timeout: float | None) -> tuple[Connection, float | None]:
        """As `connection`, for at most so many seconds; tells what is left of them.

        Raises:
            trio.TooSlowError: they have passed.
            (and what `call_tool` raises for a server that did not come up.)

        Cancellation:
            Safe.
        """
        connection = self._open_connection(server)
        if connection is not None:
            return connection, timeout
        return await self._within(timeout, partial(self.connection, server), [server])

    async def _within(
        self, timeout: float | None, work: Callable[[], Awaitable[T]], servers: Sequence[str]
    ) -> tuple[T, float | None]:
        """Do something that may take `timeout` seconds, None: as long as it takes; gives what is left of them, too.

        Raises:
            trio.TooSlowError: they have passed; it names those of `servers`, which it waits for, that are not up yet.
        """
        if timeout is None:
            return await work(), None
        require_seconds(timeout)
        begun = trio.current_time()
        with trio.move_on_after(max(timeout, 0.0)):  # what is left of a deadline may be less than nothing
            done = await work()
            return done, timeout - (trio.current_time() - begun)
        late = [each for name in servers if (each := self.status().get(name)) and not each.is_settled]
        waiting = ", ".join(f"{each.name} ({(each.error or each.reason).splitlines()[0]})" for each in late)
        raise trio.TooSlowError(f"the queue clock ran out after {timeout:g} s{waiting and ': waiting for '}{waiting}")

    def _open_connection(self, server: str) -> Connection | None:
        connection = self._registry.snapshot.connections.get(server)
        return connection if connection is not None and connection.is_open else None

    async def _ensure(self, server: str) -> Connection:
        self.configured.find(server)
        await self.waker.look(server)
        connection = await self._supervisor.ask(EnsureConnected(server))
        await self._published.ask(Flush())
        return connection

    async def find_tool(self, name: str) -> Tool:
        """Find a tool by a name as `call_tool` takes it, bringing up its server first where it is down (S118, S125).

        Raises:
            UnknownTool: no server offers it.
            ServerNotReady, AuthRequired: its server did not come up.

        Cancellation:
            Safe.
        """
        if (known := self.catalog.resolve(name)) is not None:
            return known
        for server in self.configured.servers_of(name):
            if server in self._registry.snapshot.connections:
                continue
            await self._ensure(server)
            tool = self.catalog.resolve(name)
            if tool is not None:
                return tool
        raise UnknownTool(name=name, nearest=self.catalog.nearest(name))

    # ── steering ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def restart(self, name: str) -> None:
        """Stop a server and start it again with a clean history; returns when it queues. Raises `UnknownServer`.

        Cancellation: safe, what was begun is done.
        """
        await self._steer(RestartServer(name))

    async def enable(self, name: str) -> None:
        """Run a server that is disabled. Raises `UnknownServer`. Cancellation: safe."""
        await self._steer(EnableServer(name))

    async def disable(self, name: str) -> None:
        """Stop a server and keep it stopped; returns when nothing of it lives. Raises `UnknownServer`.

        Cancellation: safe, what was begun is done.
        """
        await self._steer(DisableServer(name))

    async def add_server(self, spec: ServerSpec) -> None:
        """Run one more server, or redefine a known one (S167). Returns when it is adopted. Cancellation: safe."""
        self.configured.add(spec)
        await self._steer(AddServer(spec))

    async def remove_server(self, name: str) -> None:
        """Stop a server and forget it; returns when nothing of it lives. Raises `UnknownServer`. Cancellation: safe."""
        self.configured.find(name)
        self.configured.remove(name)
        await self._steer(RemoveServer(name))

    async def apply(self, loaded: LoadedConfig) -> Applied:
        """Run what this configuration says: unchanged servers are not touched, changed ones get another generation.

        New calls to a changed server wait for it; those in flight have `Settings.drain_timeout` seconds to end. What
        the program added or removed itself stays so. Returns when what was removed is gone and the rest adopted (S038).

        Cancellation:
            Safe; what was begun is done.
        """
        await self.carry_out(changes := self.configured.take(loaded))
        return changes

    async def carry_out(self, changes: Applied, drain: float | None = None) -> None:
        """Do what `Configured.take` says; see `apply`. Cancellation: safe, what was begun is done."""
        put, order = self.configured.put(changes), tuple(self.configured.specs)
        drain = self.settings.drain_timeout if drain is None else drain
        await self._steer(ApplySpecs(put, changes.removed, order, drain))

    async def reload(self) -> Applied:
        """Read the configuration again and apply it; what is broken goes on as it was. Cancellation: as `apply`."""
        from mcp_actors.fleet.reloading import reload  # a fleet that is never read again needs no watcher

        return await reload(self)

    async def reconnect(self) -> tuple[str, ...]:
        """Give every server that is reached over a network a new connection: the network is another one now.

        Calls in flight have some seconds to end. Returns the names, in configuration order, when the new connections
        have been begun; after a sleep of the machine this happens by itself.

        Cancellation:
            Safe; what was begun is done.

        Source:
            Field 30 and 58.
        """
        return await renew(self)

    async def _steer(self, command: Ask[None]) -> None:
        with trio.CancelScope(shield=True):  # what `configured` says is what runs; the supervisor waits for nobody
            reply = await self._supervisor.begin(command)
        await reply.wait()
        await self._published.ask(Flush())

    def hurry(self) -> None:
        """Make every stop skip the remaining waits of its ladder: the second signal of a person who means it."""
        self._opener.hurry.press()
