"""Owns the children: adopts them, gives out permits, takes commands about them.

What this is not: what happens within a child's life (`child`), nor the decision to restart (`restarts`).

Rules.

1. One child per name; a bug in one never cancels a sibling (S135, S410): its task takes its own lives' errors apart.
2. Permits are two sliding pools, local and remote (S105); a child takes one when an attempt starts and gives it back at
   READY, so waiting costs no connect timeout and a slow server holds up no more than its own place.
3. The loop never waits on a peer: what can take long runs in the supervisor's nursery (mailbox, law 7).
4. What is wanted under a name is noted when its message is read, so that of two wishes the later one holds, however
   long the first takes. Who has its turn under a name carries out the newest wish; the others find it done.
5. A changed server gets another generation: new calls wait, the old child's calls in flight end or run out of time, it
   stops, the new one starts. Never both at once, over whatever transport: two live trees under one name could hold the
   same lock, port or file (invariant 2), and their questions and log lines could not be told apart.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.alarms import Alarms
from mcp_actors.actors.child import Child
from mcp_actors.actors.lifecycle import Phase
from mcp_actors.actors.mailbox import Envelope, Mailbox
from mcp_actors.actors.messages import (
    AddServer,
    ApplySpecs,
    DisableServer,
    EnableServer,
    EnsureConnected,
    RemoveServer,
    Reorder,
    RestartServer,
    ServerRemoved,
    StatusChanged,
    Stop,
    SupervisorMessage,
)
from mcp_actors.config.specs import Batch
from mcp_actors.errors import McpActorsError, ServerNotReady
from mcp_actors.tools.naming import unknown_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.host import WiredHost
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.base import Transport

__all__ = ["Supervisor"]

# Commands come from people and programs, one at a time; senders wait when it is full.
MAILBOX_SIZE: Final = 64


class Supervisor:
    """The actor that owns the children. It starts them all at once, however many; permits hold them back (S106)."""

    def __init__(
        self,
        settings: Settings,
        registry: Ref[RegistryMessage],
        open_transport: Callable[[ServerSpec], Transport],
        *,
        chance: Callable[[], float],
        host: WiredHost,
        admit: Callable[[ServerSpec], ServerSpec],
        wait_for: Callable[[str], trio.Event | None],
    ) -> None:
        self.mailbox: Mailbox[SupervisorMessage] = Mailbox("supervisor", size=MAILBOX_SIZE)
        # Batch -> right to be connecting; `borrowed_tokens` never exceeds the limits (invariant 3).
        self.permits = {
            Batch.LOCAL: trio.CapacityLimiter(settings.local_batch),
            Batch.REMOTE: trio.CapacityLimiter(settings.remote_batch),
        }
        self._settings = settings
        self._registry = registry
        self._open_transport = open_transport
        self._chance = chance
        self._host = host
        # Wakes all connections at their deadlines.
        self._alarms = Alarms()
        # Policy: gives the spec back, disabled where it may not run. The one way in for every source (S060, fault 29).
        self._admit = admit
        # What a server of this name waits for before each start, None: nothing. A leftover of it may have to end first.
        self._wait_for = wait_for
        # Name -> its child; removed children are gone from here at once.
        self._children: dict[str, Child] = {}
        # Name -> what should run under it, None: nothing; until somebody has its turn (rule 4).
        self._wishes: dict[str, ServerSpec | None] = {}
        # Name -> set when whoever replaces or removes its child is done.
        self._turns: dict[str, trio.Event] = {}
        # No child begins any more.
        self._is_stopping = False
        self._nursery: trio.Nursery

    async def run(
        self, specs: Iterable[ServerSpec], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run these servers and take commands. Runs until cancelled.

        Cancellation:
            All children stop in parallel, shielded and bounded by their transports.
        """
        with self.mailbox:
            try:
                async with trio.open_nursery() as self._nursery:
                    self._nursery.start_soon(self._alarms.run)
                    for spec in specs:
                        await self._adopt(spec)
                    task_status.started()
                    while True:
                        envelope = await self.mailbox.receive()
                        try:
                            self._note(envelope.message)
                        except Exception as error:  # noqa: BLE001 - a command with nonsense in it is its giver's
                            envelope.fail(error)
                        else:
                            self._nursery.start_soon(self._handle, envelope)
            finally:
                for child in self._children.values():
                    child.listening.end()

    async def _adopt(self, spec: ServerSpec, old: Child | None = None) -> None:
        spec = self._admit(spec)
        child = Child(
            spec,
            self._settings,
            lambda: self._open_transport(spec),
            self.permits[spec.batch],
            self._registry,
            chance=self._chance,
            host=self._host,
            alarms=self._alarms,
            wait_for=self._wait_for,
            first_generation=0 if old is None else old.status.generation,
            listening=None if old is None else old.listening,
        )
        self._children[spec.name] = child
        await self._registry.tell(StatusChanged(child.status))
        self._nursery.start_soon(child.run)

    async def _handle(self, envelope: Envelope[SupervisorMessage]) -> None:
        with envelope:
            envelope.resolve(await self._obey(envelope.message))

    def _note(self, message: SupervisorMessage) -> None:
        match message:
            case AddServer(spec):
                self._wishes[spec.name] = spec
            case RemoveServer(name):
                self._wishes[name] = None
            case ApplySpecs(put, removed):
                self._wishes |= {spec.name: spec for spec in put} | dict.fromkeys(removed)
            case Stop():
                self._is_stopping = True
            case _:
                pass

    async def _obey(self, message: SupervisorMessage) -> object:
        match message:
            case AddServer(spec):
                await self._fulfil(spec.name)
            case RemoveServer(name):
                await self._fulfil(name)
            case ApplySpecs():
                await self._apply(message)
            case RestartServer(name):
                await (await self._settled(name)).restart()
            case EnableServer(name):
                await (await self._settled(name)).enable()
            case DisableServer(name, reason):
                await self._find(name).disable(reason)
            case EnsureConnected(name):
                return await self._ensure(name)
            case Stop():
                children = list(self._children.values())
                for child in children:  # all at once
                    child.shut_down()
                for child in children:
                    await child.wait_stopped()
        return None

    async def _apply(self, wanted: ApplySpecs) -> None:
        """Change all that is to change, each for itself. Raises the first error, when all others are done."""
        failed: list[McpActorsError] = []

        async def fulfil(name: str, drain: float = 0.0) -> None:
            try:
                await self._fulfil(name, drain)
            except McpActorsError as error:
                failed.append(error)

        await self._registry.tell(Reorder(wanted.order))
        async with trio.open_nursery() as changing:
            for name in wanted.removed:
                if name in self._children:
                    changing.start_soon(fulfil, name)
                else:
                    self._wishes.pop(name, None)
            for spec in wanted.put:
                if spec.name in self._children:
                    changing.start_soon(fulfil, spec.name, wanted.drain)
            for spec in wanted.put:  # new ones queue in order
                if spec.name not in self._children:
                    await fulfil(spec.name)
        if failed:
            raise failed[0]

    async def _fulfil(self, name: str, drain: float = 0.0) -> None:
        """Carry out the newest wish for this name (rule 4)."""
        while (other := self._turns.get(name)) is not None:
            await other.wait()
        if name not in self._wishes:
            return
        spec, old = self._wishes.pop(name), self._children.get(name)
        if spec is None and old is None:
            return  # it was wanted and unwanted before it began
        self._turns[name] = done = trio.Event()
        try:
            if old is not None:
                if spec is None:
                    await old.disable("removed")
                await old.retire(drain)
            if spec is None:
                self._children.pop(name).listening.end()
                await self._registry.tell(ServerRemoved(name))
            elif not self._is_stopping:
                await self._replace(old, spec)
        finally:
            del self._turns[name]
            done.set()

    async def _replace(self, old: Child | None, spec: ServerSpec) -> None:
        if old is not None and old.is_held and spec.is_enabled:
            spec = evolve(spec, is_enabled=False, disabled_reason="user")  # sticks (S128)
        await self._adopt(spec, old)

    async def _settled(self, name: str) -> Child:
        """The child of this name, once nobody replaces it. Raises `UnknownServer`."""
        while (other := self._turns.get(name)) is not None:
            await other.wait()
        return self._find(name)

    async def _ensure(self, name: str) -> Connection:
        while True:
            child = await self._settled(name)
            try:
                return await child.ensure()
            except ServerNotReady:
                # It may have been replaced meanwhile: then its successor is asked.
                if name not in self._turns and self._find(name) is child:
                    raise

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Stop the clock of a server's connect in progress, if any, while the block runs: a person is asked (S202)."""
        child = self._children.get(name)
        life = trio.CancelScope() if child is None else child.life
        left = life.deadline - trio.current_time()
        life.deadline = math.inf
        try:
            yield
        finally:
            # Else it was stopped already, or is over.
            if left != math.inf and child is not None and child.status.phase is Phase.CONNECTING:
                life.deadline = trio.current_time() + left

    def _find(self, name: str) -> Child:
        try:
            return self._children[name]
        except KeyError:
            raise unknown_server(name, self._children) from None

    def __repr__(self) -> str:
        connecting = {batch.value: limiter.borrowed_tokens for batch, limiter in self.permits.items()}
        return f"<Supervisor {len(self._children)} children | connecting: {connecting}>"
