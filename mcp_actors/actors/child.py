"""Owns one server under supervision: the task that lives its lives, one after the other.

What this is not: the connection (one life), nor the decision what follows a death (`restarts`).

The task `run` is the only one that starts a connection, so at most one child tree lives (invariant 2). Commands come
from the supervisor's tasks: they change what is wanted, end the life in progress where it must end, and ring the bell.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.child_status import ChildStatus
from mcp_actors.actors.connection import Connection
from mcp_actors.actors.exits import cause_of, classify
from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.actors.listening import Listening
from mcp_actors.actors.remembered_era import RememberedEra
from mcp_actors.actors.restarts import Exit, ExitKind, History, Leave, Park, RestartAfter, decide, may_start
from mcp_actors.actors.wording import capability_summary, describe_end
from mcp_actors.errors import AuthRequired, CredentialsRefused, GaveUp, TransportClosed
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from mcp_actors.actors.alarms import Alarms
    from mcp_actors.actors.host import WiredHost
    from mcp_actors.actors.lifecycle import ServerStatus, StatusChanges
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.base import Transport

__all__ = ["Child"]

logger = logging.getLogger("mcp_actors.supervisor")

# Reason code of a server that stops because the whole runtime does.
SHUTDOWN: Final = "shutdown"

# Reason codes of `Park`: too many failures, and no more of them unasked.
GIVEN_UP: Final = frozenset({"crash-loop", "gave-up"})

# Reasons for being disabled that enabling does not lift.
DECIDED_ELSEWHERE: Final = frozenset({"policy", "pending-approval", "rejected"})


class Child:
    """One supervised server. `run` is its task; the other public methods are commands of the supervisor."""

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        open_transport: Callable[[], Transport],
        permits: trio.CapacityLimiter,
        registry: Ref[RegistryMessage],
        *,
        chance: Callable[[], float],
        host: WiredHost,
        alarms: Alarms,
        wait_for: Callable[[str], trio.Event | None],
        first_generation: int = 0,
        listening: Listening | None = None,
    ) -> None:
        self.spec = spec
        # What is listened to, whatever connection there is; that of its predecessor, if it has one.
        self.listening = listening or Listening()
        # The connection that takes calls; None while not connected.
        self.connection: Connection | None = None
        self._child_status = ChildStatus(spec, registry, generation=first_generation)
        self._settings = settings
        self._open_transport = open_transport
        self._permits = permits
        self._registry = registry
        self._chance = chance
        self._host = host
        self._alarms = alarms
        self._wait_for = wait_for  # see `Supervisor`
        self._history = History()
        self._remembered = RememberedEra()
        # How the last life ended, for people; None when it ended in order.
        self._last_error: str | None = None
        # What the supervisor wants; `_why_not` is the reason code when it is not wanted.
        self._is_wanted = spec.is_enabled
        self._why_not = spec.disabled_reason
        # It begins no other life: its task ends.
        self._is_leaving = False
        # Its task has ended: nothing of it lives and nothing will.
        self._is_gone = False
        # Set by commands for the resting task; it clears them.
        self._is_called = False
        # The life in progress, or the last one; until it is READY its deadline is that of the connect.
        self.life = trio.CancelScope()
        # Whether a command ended it.
        self._is_ended = False
        # Rung for the task when it has to look at what is wanted.
        self._bell = Bell()

    @property
    def status(self) -> ServerStatus:
        """What is publicly known of it."""
        return self._child_status.status

    # ── the task ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Live, rest, live again, as long as it is wanted. Runs until cancelled or retired."""
        try:
            while not self._is_leaving:
                if self._is_wanted:
                    self._is_called = False
                    end = await self._live()
                    # A life that a command ended, or a stale memory, is followed by what is wanted now, without a rest.
                    if self._is_wanted and not (self._is_ended or self._is_called):
                        await self._rest(end)
                # Said again after each ring: it may have been wanted in between, and somebody waits for this word.
                elif self.status.phase is not Phase.STOPPED:
                    await self._child_status.move(
                        ServerState.DISABLED, Phase.STOPPED, self._why_not, pid=None, next_retry=None
                    )
                elif self._why_not == SHUTDOWN:
                    break
                else:
                    await self._bell.wait()
        finally:
            self._is_gone = True
            self._child_status.nudge()

    async def _live(self) -> Exit:
        """One life: queue, connect, list, serve, end (S108). Returns when nothing of it lives, caches too (S115)."""
        error: BaseException | None = None
        ready_at: float | None = None
        connection = self._new_connection()
        self._is_ended = False
        try:
            async with trio.open_nursery() as life:
                self.life = life.cancel_scope
                queued, opened = await self._connect(connection, life)
                ready_at = trio.current_time()
                await self._serve(connection, queued, opened, ready_at)
        except* Exception as group:  # the child loop: whatever ends a life is judged, siblings go on
            error = connection.judged(cause_of(group))
            if classify(error).kind is ExitKind.BUG:  # told also where a command ended the life: it is still there
                logger.exception("[MCP:%s] failed by a bug of ours", self.spec.name, exc_info=error)
        self.connection = None
        if self._is_ended:
            error = TransportClosed(server=self.spec.name)
        elif self.life.cancelled_caught and error is None:
            error = trio.TooSlowError()  # the connect's deadline
        lived = 0.0 if ready_at is None else trio.current_time() - ready_at
        is_proven = connection.served > 0 or lived >= self.spec.restart_policy.stable_after
        end = classify(error, was_ready=ready_at is not None, was_proven=is_proven)
        self._history = self._history.ended(end)
        if (ready_at is None and not self._is_ended) or connection.is_outgrown:
            # The assumption failed. Where weather is not to blame the next life follows at once, and finds out (A06).
            is_assumed, self._remembered = self._remembered.era is not None, RememberedEra()
            is_blamed = is_proven if connection.is_outgrown else end.kind is ExitKind.REFUSED
            is_free = may_start(self._history, self.spec.restart_policy, trio.current_time())
            self._is_called = self._is_called or (is_assumed and is_blamed and is_free)
        if end.kind is ExitKind.SHUTDOWN:
            logger.debug("[MCP:%s] stopped", self.spec.name)
        elif end.kind is not ExitKind.BUG:
            logger.info("[MCP:%s] ended reason=%s", self.spec.name, end.reason)
        told = None if end.kind is ExitKind.SHUTDOWN else error
        self._last_error = None
        if told is not None:
            self._last_error = describe_end(told, connection.diagnostics(), self._connect_timeout, connection.faults)
            logger.debug("[MCP:%s] ended with: %s", self.spec.name, self._last_error)  # with its stderr (S352)
        self._child_status.last_remedy = told.remedy if isinstance(told, AuthRequired | CredentialsRefused) else None
        return end

    async def _connect(self, connection: Connection, life: trio.Nursery) -> tuple[float, float]:
        """Bring it up to READY; the permit leaves first. Returns when it was queued and when it got its permit."""
        queued = trio.current_time()
        if self.status.phase is not Phase.QUEUED:
            await self._tell(ServerState.PENDING, Phase.QUEUED, "queued")
        if (leftovers_gone := self._wait_for(self.spec.name)) is not None:
            await self._tell(ServerState.PENDING, Phase.QUEUED, "leftover")
            await leftovers_gone.wait()  # without a permit: others go on
        async with self._permits:
            opened = trio.current_time()
            await self._tell(ServerState.PENDING, Phase.CONNECTING, "connecting", generation=connection.generation)
            logger.debug("[MCP:%s] connect.started transport=%s", self.spec.name, self.spec.transport)
            life.cancel_scope.deadline = opened + self._connect_timeout
            await connection.open(life)
            life.cancel_scope.deadline = math.inf
        return queued, opened

    async def _serve(self, connection: Connection, queued: float, opened: float, ready: float) -> None:
        """List what it offers, take calls, and keep the lists fresh. Runs until cancelled."""
        info = connection.info
        assert info is not None
        self._remembered = self._remembered.shown(info.era, ready)
        logger.debug(
            "[MCP:%s] connect.complete transport=%s elapsed_ms=%d revision=%s",
            self.spec.name, connection.transport, round((ready - opened) * 1000), info.revision,
        )  # fmt: skip
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("[MCP:%s] capabilities %s", self.spec.name, capability_summary(info))
        await self._tell(
            ServerState.PENDING,
            Phase.LISTING,
            "listing",
            transport=connection.transport,
            era=info.era,
            revision=info.revision,
            pid=connection.diagnostics().pid,
            queue_seconds=opened - queued,
            connect_seconds=ready - opened,
        )
        try:
            await connection.lists.fetch()
            self.connection = connection
            took = trio.current_time() - ready
            await self._tell(
                ServerState.CONNECTED, Phase.READY, "ready", error=None, next_retry=None, attempt=0, list_seconds=took
            )
            await connection.lists.keep_fresh()
        finally:
            connection.lists.end()

    async def _rest(self, end: Exit) -> None:
        """Do what is decided about an end: wait out the backoff, or wait to be called."""
        spec, now = self._settings.restarts.fill(self.spec), trio.current_time()
        decision = decide(end, self._history, spec.restart, spec.restart_policy, now=now, chance=self._chance())
        state, phase, reason, wait = ServerState.FAILED, Phase.PARKED, end.reason, math.inf
        match decision:
            case RestartAfter(delay):
                state, phase, wait = ServerState.PENDING, Phase.BACKING_OFF, delay
            case Park(why, probe):
                reason, wait = why, math.inf if probe is None else probe
            case Leave() if end.kind is ExitKind.NEEDS_LOGIN:
                state = ServerState.NEEDS_AUTH
        await self._child_status.move(
            state,
            phase,
            reason,
            error=self._last_error,
            pid=None,
            next_retry=None if wait == math.inf else now + wait,
            attempt=self._history.tries,
            restarts=self.status.restarts + (state is ServerState.PENDING),
        )
        with trio.move_on_after(wait):
            while self._is_wanted and not (self._is_called or self._is_leaving):
                await self._bell.wait()

    def _new_connection(self) -> Connection:
        return Connection(
            self.spec,
            self._settings,
            self._begin_transport,
            self._registry,
            generation=self.status.generation + 1,
            pinned_era=None if self.spec.era == "auto" else Era(self.spec.era),
            remembered_era=self._remembered.at(trio.current_time()),
            host=self._host,
            alarms=self._alarms,
            listening=self.listening,
        )

    def _begin_transport(self) -> Transport:
        """Build the transport of one start: a life takes two where the first process died of the era probe (A02)."""
        self._history = self._history.started(trio.current_time(), self.spec.restart_policy.period)
        return self._open_transport()

    # ── commands, called by the supervisor's tasks ───────────────────────────────────────────────────────────────────

    async def enable(self) -> None:
        """Want it.

        Raises:
            ServerNotReady: policy forbids it, or its definition waits for approval; neither is decided here.
        """
        if not self._is_wanted and self._why_not in DECIDED_ELSEWHERE:
            raise self._child_status.not_ready()
        if not self._is_wanted:
            self._history, self._remembered = History(), RememberedEra()
            # It may still be at rest, when it was unwanted for a moment only.
            self._is_wanted = self._is_called = True
            await self._child_status.move(ServerState.PENDING, Phase.QUEUED, "queued", error=None, attempt=0)
            self._bell.ring()

    async def disable(self, reason: str) -> None:
        """Want it no more, and wait until nothing of it lives; sticks whatever it is doing (S128)."""
        self._unwant(reason)
        if self.status.phase is not Phase.STOPPED:
            await self._child_status.move(ServerState.DISABLED, Phase.STOPPING, reason)
        await self.wait_stopped()

    def shut_down(self) -> None:
        """Want it no more because the whole runtime stops: each that has stopped says so, and nothing before."""
        self._unwant(SHUTDOWN)

    def _unwant(self, reason: str) -> None:
        self._is_wanted, self._why_not = False, reason
        if self.status.phase is not Phase.STOPPED:
            self._end_life()
            self._bell.ring()

    async def wait_stopped(self) -> None:
        """Wait until nothing of it lives, it is wanted again, or another child has its name. Cancellation: safe."""
        while not (self._is_wanted or self._is_gone) and self.status.phase is not Phase.STOPPED:
            await self._child_status.moved()

    async def retire(self, drain: float) -> None:
        """Let calls in flight end, for at most `drain` seconds, while new ones wait for the successor; then fail them.

        Returns when its task has ended. Whoever waits for it looks for its successor.
        """
        connection = self.connection
        if connection is not None and connection.is_open:
            connection.users.are_leaving = True
            await self._child_status.move(self.status.state, Phase.STOPPING, "reload")
            with trio.move_on_after(drain):
                await connection.users.leave()
        if connection is not None:
            connection.close(TransportClosed(server=self.spec.name))
            if self.status.state is ServerState.CONNECTED:
                await self._child_status.move(ServerState.PENDING, Phase.STOPPING, "reload")
        self._is_leaving = True
        self._end_life()
        self._bell.ring()
        while not self._is_gone:
            await self._child_status.moved()

    @property
    def is_held(self) -> bool:
        """Whether somebody disabled it although its definition has it run."""
        return self.spec.is_enabled and not self._is_wanted and self._why_not == "user"

    async def restart(self) -> None:
        """End its life, if any, and begin another with a clean history."""
        if not self._is_wanted:
            await self.enable()
            return
        self._history, self._remembered = History(), RememberedEra()
        self._is_called = True
        self._end_life()
        await self._child_status.move(ServerState.PENDING, Phase.QUEUED, "restart", next_retry=None, attempt=0)
        self._bell.ring()

    async def ensure(self) -> Connection:
        """Bring it up if it may be, joining what is under way (S113, S125).

        Raises:
            ServerNotReady: it is disabled, may not be started again so soon, or did not come up. After too many
                failures its cause is a `GaveUp` that lists them.
        """
        has_called, policy = False, self.spec.restart_policy
        while not self._is_gone:
            match self.status.state:
                case ServerState.CONNECTED if self.connection is not None and self.connection.is_open:
                    return self.connection
                case ServerState.CONNECTED | ServerState.PENDING:
                    await self._child_status.moved()
                case ServerState.FAILED if not has_called and may_start(self._history, policy, trio.current_time()):
                    has_called = self._is_called = True
                    await self._child_status.move(ServerState.PENDING, Phase.QUEUED, "called", next_retry=None)
                    self._bell.ring()
                case _:
                    break
        has_given_up = self.status.reason in GIVEN_UP
        given_up = GaveUp(server=self.spec.name, failures=self._history.failures) if has_given_up else None
        raise self._child_status.not_ready() from given_up

    def _end_life(self) -> None:
        """Fail its calls first, then cancel it (S146)."""
        if self.connection is not None:
            self.connection.close(TransportClosed(server=self.spec.name))
        self._is_ended = True
        self.life.cancel()

    # ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _tell(self, state: ServerState, phase: Phase, reason: str, **changes: Unpack[StatusChanges]) -> None:
        """Move on within a life; one that was ended by a command has nothing to tell any more."""
        if self._is_ended:
            await trio.lowlevel.checkpoint_if_cancelled()
        await self._child_status.move(state, phase, reason, connection=self.connection, **changes)

    @property
    def _connect_timeout(self) -> float:
        own = self.spec.connect_timeout
        return self._settings.connect_timeout if own is None else own

    def __repr__(self) -> str:
        status = self.status
        lives = f"generation {status.generation} | restarts: {status.restarts}"
        return f"<Child {status.name} {status.state}/{status.phase} {lives}>"
