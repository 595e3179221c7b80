"""Owns the children: adopts them, gives out permits, takes commands about them.

What this is not: what happens within a child's life (`child`), nor the decision to restart (`restarts`).

Rules.

1. One child per name; a bug in one never cancels a sibling (S135): its task takes its own lives' errors apart.
2. Permits are two sliding pools, local and remote (S105); a child takes one when an attempt starts and gives it back at
   READY, so waiting costs no connect timeout and a slow server holds up no more than its own place.
3. The loop never waits on a peer: what can take long runs in the supervisor's nursery (mailbox, law 7).
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

import trio
from attrs import define

from mcp_actors.actors.child import SHUTDOWN, Child
from mcp_actors.actors.mailbox import Envelope, Mailbox
from mcp_actors.actors.messages import (
    AddServer,
    DisableServer,
    EnableServer,
    EnsureConnected,
    RemoveServer,
    RestartServer,
    ServerRemoved,
    StatusChanged,
    Stop,
    SupervisorMessage,
)
from mcp_actors.config.specs import Batch
from mcp_actors.errors import McpActorsError, UnknownServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_actors.actors.hosting import Host
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.base import Transport

__all__ = ["Supervisor"]

# Commands come from people and programs, one at a time; senders wait when it is full.
MAILBOX_SIZE: Final = 64


@define(eq=False)
class _Tended:
    """A child and the scope of its task; `gone` is set when the task has ended."""

    child: Child
    scope: trio.CancelScope
    gone: trio.Event


class Supervisor:
    """The actor that owns the children."""

    def __init__(
        self,
        settings: Settings,
        registry: Ref[RegistryMessage],
        open_transport: Callable[[ServerSpec], Transport],
        *,
        chance: Callable[[], float],
        host: Host,
        admit: Callable[[ServerSpec], ServerSpec],
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
        # Policy: gives the spec back, disabled where it may not run. The one way in for every source (S060, fault 29).
        self._admit = admit
        # Name -> its child; removed children are gone from here at once.
        self._tended: dict[str, _Tended] = {}
        # Held while the table of children changes over an await.
        self._roster = trio.Lock()
        self._nursery: trio.Nursery

    async def run(
        self, specs: Iterable[ServerSpec], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run these servers and take commands. Runs until cancelled.

        Cancellation:
            All children stop in parallel, shielded and bounded by their transports.
        """
        with self.mailbox:
            async with trio.open_nursery() as self._nursery:
                for spec in specs:
                    await self._adopt(spec)
                task_status.started()
                while True:
                    envelope = await self.mailbox.receive()
                    self._nursery.start_soon(self._handle, envelope)

    async def _adopt(self, spec: ServerSpec, first_generation: int = 0) -> None:
        spec = self._admit(spec)
        child = Child(
            spec,
            self._settings,
            lambda: self._open_transport(spec),
            self.permits[spec.batch],
            self._registry,
            chance=self._chance,
            host=self._host,
            first_generation=first_generation,
        )
        tended = _Tended(child, trio.CancelScope(), trio.Event())
        self._tended[spec.name] = tended
        await self._registry.tell(StatusChanged(child.status))
        self._nursery.start_soon(self._tend, tended)

    async def _tend(self, tended: _Tended) -> None:
        try:
            with tended.scope:
                await tended.child.run()
        finally:
            tended.gone.set()

    async def _handle(self, envelope: Envelope[SupervisorMessage]) -> None:
        with envelope:
            try:
                envelope.resolve(await self._obey(envelope.message))
            except McpActorsError as error:
                assert envelope.reply is not None
                envelope.reply.fail(error)

    async def _obey(self, message: SupervisorMessage) -> object:
        match message:
            case AddServer(spec):
                await self._add(spec)
            case RemoveServer(name):
                await self._remove(name)
            case RestartServer(name):
                await self._find(name).child.restart()
            case EnableServer(name):
                await self._find(name).child.enable()
            case DisableServer(name, reason):
                await self._find(name).child.disable(reason)
            case EnsureConnected(name):
                return await self._find(name).child.ensure()
            case Stop():
                async with trio.open_nursery() as stopping:
                    for tended in self._tended.values():
                        stopping.start_soon(tended.child.disable, SHUTDOWN)
        return None

    async def _add(self, spec: ServerSpec) -> None:
        async with self._roster:
            old = self._tended.get(spec.name)
            generation = 0
            if old is not None:
                await self._end(old)
                generation = old.child.status.generation
            await self._adopt(spec, generation)

    async def _remove(self, name: str) -> None:
        async with self._roster:
            tended = self._find(name)
            await self._end(tended)
            del self._tended[name]
            await self._registry.tell(ServerRemoved(name))

    async def _end(self, tended: _Tended) -> None:
        await tended.child.disable("removed")
        tended.scope.cancel()
        await tended.gone.wait()

    def _find(self, name: str) -> _Tended:
        try:
            return self._tended[name]
        except KeyError:
            nearest = difflib.get_close_matches(name, self._tended, n=3)
            raise UnknownServer(name=name, nearest=tuple(nearest)) from None

    def __repr__(self) -> str:
        connecting = {batch.value: limiter.borrowed_tokens for batch, limiter in self.permits.items()}
        return f"<Supervisor {len(self._tended)} children | connecting: {connecting}>"
