"""Owns the actor for one server: one transport, one session, the calls in flight.

What this is not: a judge of MCP (`protocol.session` is), nor of its own death (`child` and `restarts` are).

Data plane: `request` runs in the caller's task and meets its answer in `calls`; the transport's reader brings it
through `deliver`.

Control plane: `run` shakes hands, keeps the lists fresh and tells the registry. It is left by cancellation or by the
first error; by then every call in flight has failed, before anything of the transport is torn down (S146).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.calls import Calls
from mcp_actors.actors.hosting import Answering, Host
from mcp_actors.actors.lists import Lists
from mcp_actors.actors.outgoing import Outgoing
from mcp_actors.actors.slots import SendAgain
from mcp_actors.config.settings import Settings
from mcp_actors.errors import McpActorsError, TransportBroken, TransportClosed, TransportError
from mcp_actors.protocol.clocks import resolve_timeouts
from mcp_actors.protocol.events import (
    ErrorReceived,
    FellBack,
    ListChanged,
    PeerFault,
    ProgressReceived,
    Resend,
    ResponseReceived,
    ServerRequestCancelled,
    ServerRequestReceived,
    SessionExpired,
    SessionFailed,
    SessionReady,
)
from mcp_actors.protocol.session import Session, SessionSettings, SessionState
from mcp_actors.protocol.types import Era
from mcp_actors.transports.base import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.actors.slots import ProgressCallback, Slot
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.clocks import CallTimeouts
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.types import Frame, Refusal, RequestId, ServerInfo
    from mcp_actors.transports.base import Transport

__all__ = ["Connection"]

NOBODY: Final = Host()
DEFAULT_CALL_TIMEOUT: Final = Settings().call_timeout

logger = logging.getLogger("mcp_actors.connection")


class Connection:
    """One life of one server. `run` is its task; `request` is called by many."""

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        open_transport: Callable[[], Transport],
        registry: Ref[RegistryMessage],
        *,
        generation: int,
        pinned_era: Era | None,
        is_era_known: bool = False,
        host: Host = NOBODY,
    ) -> None:
        self.spec = spec
        self.generation = generation
        # What the handshake found; None before READY.
        self.info: ServerInfo | None = None
        # The clocks of a call to this server (S199-S201).
        self.timeouts = resolve_timeouts(
            spec.transport,
            call_timeout=settings.call_timeout,
            default=DEFAULT_CALL_TIMEOUT,
            entry_timeout=spec.call_timeout,
            idle_timeout=settings.idle_timeout,
            first_byte_timeout=spec.request_timeout,
        )
        # Requests of callers that were answered: proof of health (restarts, rule 3).
        self.served = 0
        self._settings = settings
        self._open_transport = open_transport
        self._registry = registry
        self._pinned_era = pinned_era
        self._is_era_known = is_era_known
        self._host = host
        self._answering = Answering(spec.name, host)
        # Why no call can be taken any more; None while it lives.
        self._gone: McpActorsError | None = None
        # Valid while `run` runs.
        self._transport: Transport
        self._session: Session[Slot]
        self._nursery: trio.Nursery
        self._calls: Calls
        self._outgoing: Outgoing
        # Rung when the handshake moved.
        self._moved = trio.Event()
        # Rung when the server forgot the wire session.
        self._expired = trio.Event()
        self._failure: McpActorsError | None = None
        self._must_reopen = False
        # What it listed, kept fresh by `run`.
        self.lists = Lists(self, registry, page_timeout=settings.connect_timeout)

    # ── control plane ────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, *, task_status: trio.TaskStatus[ServerInfo] = trio.TASK_STATUS_IGNORED) -> None:
        """Connect, then serve. Reports READY by ``task_status.started(info)``. Runs until cancelled or broken.

        Raises:
            TransportError: the wire never came up, or broke.
            ProtocolError, RpcError, AuthError: the handshake was refused.
            (possibly inside exception groups; the supervisor's child loop takes them apart.)

        Cancellation:
            Calls in flight fail at once; the transport ends in order, shielded and bounded.
        """
        await self._converse(self._pinned_era, task_status)
        if self._must_reopen:
            # Died on the probe: a verdict, not a crash (A02).
            await self._converse(Era.LEGACY, task_status)

    async def _converse(self, pinned: Era | None, task_status: trio.TaskStatus[ServerInfo]) -> None:
        self._must_reopen = False
        self._transport = self._open_transport()
        self._session = Session(self._session_settings(pinned))
        self._outgoing = Outgoing(self._transport, server=self.spec.name, on_sent=self._move)
        async with trio.open_nursery() as self._nursery:
            self._calls = Calls(self._session, self._transport, self._nursery, self._post)
            opened = _Opened()
            self._nursery.start_soon(self._serve_transport, opened)
            await opened.wait()
            self._nursery.start_soon(self._outgoing.send_all)
            self._nursery.start_soon(self._calls.watch_deadlines, self._react)
            self.info = await self._shake_hands(self._session.open)
            if self.info is None:
                return
            task_status.started(self.info)
            self._nursery.start_soon(self.lists.keep_fresh)
            while True:
                await self._expired.wait()
                await self._renew()

    def _session_settings(self, pinned: Era | None) -> SessionSettings:
        is_exchange = self._transport.is_exchange
        # Silence means legacy on message streams only, and never to a server that was modern before (spec_client 3.3).
        probe_timeout = None if is_exchange or self._is_era_known else self._settings.probe_timeout
        return SessionSettings(
            is_http=is_exchange,
            pinned_era=pinned,
            probe_timeout=probe_timeout,
            capabilities=self._host.capabilities,
            handled_methods=frozenset(self._host.handlers),
        )

    async def _serve_transport(self, opened: _Opened) -> None:
        try:
            await self._transport.run(self, task_status=opened)
        except TransportBroken as broken:
            self.ended(broken)
            if not self._must_reopen:
                raise
            self._nursery.cancel_scope.cancel()
        finally:
            # Transports tell of their end before they clean up; this is for those that forget.
            if not self._must_reopen:
                self.close(TransportClosed(server=self.spec.name))

    async def _shake_hands(self, begin: Callable[[float], None]) -> ServerInfo | None:
        """Begin a wire session and wait until calls may go; None when the transport has died of the probe."""
        self._outgoing.is_strict = True
        begin(trio.current_time())
        self._react()
        # READY means that `notifications/initialized` has gone before any request of a caller (A08).
        while self._session.state is not SessionState.READY or self._outgoing.unsent:
            if self._failure is not None:
                raise self._failure
            if self._must_reopen:
                return None
            self._calls.watch_for(self._session.next_deadline)
            self._moved = trio.Event()
            await self._moved.wait()
        self._outgoing.is_strict = False
        info = self._session.info
        assert info is not None
        self._transport.session_ready(info)
        return info

    async def _renew(self) -> None:
        """Begin a new wire session for the one that the server forgot; calls wait meanwhile (S205, fault 32)."""
        self._expired = trio.Event()
        logger.debug("%s = the wire session expired", self._tag)
        with trio.move_on_after(self._settings.connect_timeout) as limit:
            self.info = await self._shake_hands(self._session.renew)
        if limit.cancelled_caught:
            raise TransportBroken(server=self.spec.name, reason="the server forgot the session and begins no other")
        self.lists.mark_all()
        self._calls.release()

    def _move(self) -> None:
        self._moved.set()

    # ── data plane ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | None = None,
        on_progress: ProgressCallback | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """Ask the server and wait for its answer.

        Args:
            method: such as "tools/call".
            params: JSON object without the era's ``_meta`` fields.
            timeout: seconds until the call is given up and the server is told; None: the clocks of this server's calls.
            on_progress: called in this task with the newest progress.
            headers: further mirrored values, for transports that have headers.

        Returns:
            The result, an undecoded JSON object.

        Raises:
            RpcError: the server answered with an error.
            TransportError: the wire broke or was closed; the call may or may not have run.
            RemoteProtocolError: the answer broke the rules, or cannot come any more.
            trio.TooSlowError: a clock ran out; the message names it.

        Cancellation:
            Safe. The server is told once; nothing is left pending.

        Source:
            S197-S204, B17-B20.
        """
        timeouts = self.timeouts if timeout is None else evolve(self.timeouts, wall=timeout)
        result = await self.exchange(method, params, timeouts=timeouts, on_progress=on_progress, headers=headers)
        self.served += 1
        return result

    async def exchange(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeouts: CallTimeouts,
        on_progress: ProgressCallback | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """`request` for our own housekeeping: its answer is no proof of health."""
        if self._gone is not None:
            raise evolve(self._gone)
        try:
            return await self._calls.ask(method, params, timeouts=timeouts, on_progress=on_progress, headers=headers)
        except McpActorsError as error:
            error.server = self.spec.name
            raise

    def _post(self, frame: Frame | None) -> None:
        if frame is not None and not self._outgoing.post(frame):
            self._break(TransportBroken(server=self.spec.name, reason="the server asks, but does not read our answers"))

    # ── what a transport tells (base.Sink) ───────────────────────────────────────────────────────────────────────────

    def deliver(self, raw: bytes) -> None:
        """Take what arrived."""
        self._session.receive_message(raw, trio.current_time())
        self._react()

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Take an HTTP answer that is no message."""
        self._session.receive_refusal(frame.request_id, refusal, trio.current_time())
        self._react()

    def lose(self, frame: Frame, reason: str) -> None:
        """Learn that no answer to this frame can come."""
        if frame.request_id is not None:
            self._session.receive_lost(frame.request_id, reason)
            self._react()

    def ended(self, error: TransportError) -> None:
        """Learn that nothing can arrive any more: every call fails now, before the transport cleans up (fault 17)."""
        self._session.receive_eof(trio.current_time())
        self._react()
        if not self._must_reopen:
            self.close(error)

    def is_waiting(self, request_id: RequestId) -> bool:
        """Whether somebody still waits for this answer."""
        return self._session.is_waiting(request_id)

    # ── what the session tells ───────────────────────────────────────────────────────────────────────────────────────

    def _react(self) -> None:
        for event in self._session.events():
            self._take(event)
        for frame in self._session.frames_to_send():
            self._post(frame)

    def _take(self, event: Event[Slot]) -> None:
        match event:
            case ResponseReceived(waiter, result):
                waiter.fill(result)
            case ErrorReceived(waiter, error):
                waiter.fail(error)
            case ProgressReceived(waiter):
                waiter.report(event)
            case SessionExpired(waiter, _, needs_renewal):
                if needs_renewal:
                    self._calls.hold()
                    self._expired.set()
                waiter.fail(SendAgain())
            case Resend(waiter):
                waiter.fail(SendAgain())
            case ListChanged(kind):
                self.lists.mark(kind)
            case SessionReady():
                self._move()
            case SessionFailed(error):
                error.server = self.spec.name
                self._failure = error
                self._move()
            case FellBack(reason, needs_reopen):
                logger.debug("%s = legacy: %s", self._tag, reason)
                self._must_reopen = needs_reopen
                self._move()
            case ServerRequestReceived(request_id, method, params):
                self._nursery.start_soon(
                    self._answering.answer,
                    request_id,
                    method,
                    params,
                    partial(self._resolve, request_id),
                    partial(self._refuse, request_id),
                )
            case ServerRequestCancelled(request_id):
                self._answering.withdraw(request_id)
            case PeerFault(kind, detail):
                logger.debug("%s ! %s: %s", self._tag, kind, detail)
            case _:
                logger.debug("%s < %s", self._tag, type(event).__name__)

    def _resolve(self, request_id: RequestId, result: JsonObject) -> None:
        self._post(self._session.answer(request_id, result))

    def _refuse(self, request_id: RequestId, code: int, message: str) -> None:
        self._post(self._session.answer_error(request_id, code, message))

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, error: McpActorsError) -> None:
        """Take no more calls and fail those in flight. The first reason stays."""
        if self._gone is None:
            self._gone = error
        self._calls.fail_all(self._gone)

    def _break(self, error: TransportBroken) -> None:
        self.close(error)
        self._nursery.start_soon(_raise, error)

    @property
    def is_open(self) -> bool:
        """Whether it takes calls: READY, and not closed."""
        return self.info is not None and self._gone is None

    def diagnostics(self) -> Diagnostics:
        """What the transport tells of itself; empty before there is one."""
        transport = getattr(self, "_transport", None)
        return Diagnostics() if transport is None else transport.diagnostics()

    @property
    def _tag(self) -> str:
        return f"[MCP:{self.spec.name}]"

    def __repr__(self) -> str:
        state = "NEW" if self.info is None else "READY " + self.info.revision
        if self._gone is not None:
            state = "GONE"
        return f"<Connection {self.spec.name} {state} | calls: {len(self._calls)} active, {self.served} done>"


class _Opened:
    """The task status of a transport's `run`: an event costs a tenth of the nursery that `Nursery.start` makes."""

    def __init__(self) -> None:
        self._event = trio.Event()
        self.wait = self._event.wait

    def started(self, value: None = None) -> None:
        """Tell that the wire is open."""
        del value
        self._event.set()


async def _raise(error: BaseException) -> None:
    raise error
