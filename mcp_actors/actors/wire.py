"""Owns the pairing of a transport with a session: what arrives goes to the session, what the session wants goes out.

What this is not: a life of a server (`connection`), the waiting of callers (`calls`), or a thought about MCP.

A wire is made for one transport, which calls its `base.Sink` side from its own tasks, synchronously. What concerns the
connection is told through `Owner`.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import evolve

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.calls import Calls
from mcp_actors.actors.outgoing import Outgoing
from mcp_actors.actors.slots import Request, SendAgain
from mcp_actors.errors import (
    ConnectFailed,
    McpActorsError,
    RpcError,
    TransportBroken,
    TransportClosed,
    TransportError,
)
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.events import (
    ErrorReceived,
    FellBack,
    ListChanged,
    ListenAcknowledged,
    ListenEnded,
    PeerFault,
    ProgressReceived,
    Resend,
    ResourceUpdated,
    ResponseReceived,
    ServerRequestCancelled,
    ServerRequestReceived,
    SessionDoubted,
    SessionExpired,
    SessionFailed,
    SessionReady,
)
from mcp_actors.protocol.features import ASKS_A_PERSON
from mcp_actors.protocol.session import Session, SessionSettings, SessionState
from mcp_actors.sent_secrets import hide, starred

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.actors.alarms import Alarms
    from mcp_actors.actors.answering import Answering
    from mcp_actors.actors.slots import Slot
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.listening import ListenFilter
    from mcp_actors.protocol.types import Frame, Refusal, RequestId, ServerInfo
    from mcp_actors.transports.base import Transport

__all__ = ["Owner", "Wire"]

logger = logging.getLogger("mcp_actors.connection")

# A question that only finds out whether the session lives may take so long; nobody waits for it.
DOUBT_SECONDS: Final = 30.0


class Owner(Protocol):
    """What a wire tells of. Every method is synchronous."""

    def list_changed(self, kind: str) -> None:
        """The server's list of `kind` changed."""

    def session_expired(self) -> None:
        """The server forgot the wire session; calls are held until `Wire.shake_hands` has renewed it."""

    def resource_updated(self, uri: str) -> None:
        """A resource that somebody watches, or one below it, changed."""

    def listens(self, slot: Slot, honoured: ListenFilter) -> None:
        """The server acknowledged the subscription that this slot waits for, or as much of it (F01)."""

    def heard(self, event: Event[Slot]) -> None:
        """Something else that the server tells: for whoever wants to know."""


class Wire:
    """One transport and one session. `open` is called once, `shake_hands` for each wire session."""

    def __init__(
        self,
        server: str,
        transport: Transport,
        settings: SessionSettings,
        nursery: trio.Nursery,
        alarms: Alarms,
        answering: Answering,
        owner: Owner,
    ) -> None:
        self.transport = transport
        self.session: Session[Slot] = Session(settings)
        self.calls = Calls(self.session, transport, nursery, alarms, post=self.post, react=self._react)
        # Why nothing can be asked any more, the first reason; None while it can.
        self.gone: McpActorsError | None = None
        # When something last arrived, on trio's clock.
        self.heard_at = trio.current_time()
        # Whether the transport died of the era probe: another one is wanted, pinned to legacy (A02).
        self.must_reopen = False
        self.server = server
        self._nursery = nursery
        self._answering = answering
        self._owner = owner
        # Whether the transport takes messages, and whether it was left and nothing of it lives.
        self._is_open = self._is_left = False
        # Whether a question finds out if the wire session lives.
        self._is_finding_out = False
        # How the handshake failed.
        self._failure: McpActorsError | None = None
        # Rung when one of these changed, or the handshake moved.
        self._bell = Bell()
        self._outgoing = Outgoing(transport, nursery, server=server, bell=self._bell)

    async def open(self) -> None:
        """Start the transport in the nursery. Returns when messages may go."""
        self._nursery.start_soon(self._serve)
        self._is_open = self.transport.is_eager
        while not self._is_open:
            await self._bell.wait()

    async def _serve(self) -> None:
        try:
            await self.transport.run(self, task_status=self)
            # By the contract it raises why; a transport of somebody's own may forget to, and nobody must wait for it.
            if not self._is_open:
                raise ConnectFailed(server=self.server, reason="the transport ended before it was open")
            raise TransportBroken(server=self.server, reason="the transport ended")
        except TransportBroken as broken:
            self.ended(broken)
            if not self.must_reopen:
                raise
        finally:
            self._outgoing.close()
            # Transports tell of their end before they clean up; this is for those that forget.
            self.close(TransportClosed(server=self.server))
            self._is_left = True
            self._bell.ring()

    async def shake_hands(self, begin: Callable[[float], None]) -> ServerInfo | None:
        """Begin a wire session, by `Session.open` or `Session.renew`, and wait until calls may go.

        Returns:
            What the server said of itself; None when the transport died of the probe and nothing of it is left.

        Raises:
            McpActorsError: the handshake was refused, or the transport has ended.
        """
        if self.gone is not None:  # between its opening and this moment
            raise evolve(self.gone)
        begin(trio.current_time())
        self._react()
        # READY means that `notifications/initialized` has gone before any request of a caller (A08).
        while self.session.state is not SessionState.READY or self._outgoing.unsent:
            if self._failure is not None:
                raise self._failure
            if self.must_reopen:
                while not self._is_left:
                    await self._bell.wait()
                return None
            self.calls.watch_for(self.session.next_deadline)
            if not await self._outgoing.flush():
                await self._bell.wait()
        info = self.session.info
        assert info is not None
        self.transport.session_ready(info)
        return info

    def post(self, frame: Frame | None) -> None:
        """Put a frame of our own making on the wire without waiting; None is no frame."""
        if frame is not None:
            self._post(frame, is_handshake=False)

    def _post(self, frame: Frame, *, is_handshake: bool) -> None:
        if not self._outgoing.post(frame, is_handshake=is_handshake) and self.gone is None:
            self.give_up("the server asks, but does not read our answers")
        if is_handshake:
            self._bell.ring()

    def close(self, error: McpActorsError) -> None:
        """Take no more calls and fail those in flight. The first reason stays."""
        if self.gone is None:
            self.gone = error
            self.calls.fail_all(error)

    def give_up(self, reason: str) -> None:
        """End it from our side as broken: calls fail at once, the connection ends with this error."""
        self.end(TransportBroken(server=self.server, reason=reason))

    def end(self, error: McpActorsError) -> None:
        """End it from our side with this error, which calls and connection fail with."""
        self.close(error)
        self._nursery.start_soon(_raise, error)

    # ── what a transport tells (base.Sink, and the task status of its `run`) ─────────────────────────────────────────

    def started(self, value: None = None) -> None:
        """Learn that it is open: a bell costs a tenth of the nursery that `Nursery.start` makes."""
        del value
        if not self._is_open:
            self._is_open = True
            self._bell.ring()

    def deliver(self, raw: bytes) -> None:
        """Take what arrived."""
        self.heard_at = trio.current_time()
        self.session.receive_message(raw, self.heard_at)
        self._react()

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Take an HTTP answer that is no message."""
        self.session.receive_refusal(frame.request_id, refusal, trio.current_time())
        self._react()

    def lose(self, frame: Frame, reason: str) -> None:
        """Learn that no answer to this frame can come."""
        if frame.request_id is not None:
            self.session.receive_lost(frame.request_id, reason)
            self._react()

    def answering(self, frame: Frame) -> None:
        """Learn that the first byte of an answer to this frame has come (S076)."""
        self.calls.note_first_byte(frame.request_id)

    def ended(self, error: TransportError) -> None:
        """Learn that nothing can arrive any more: every call fails now, before the transport cleans up (fault 17)."""
        self.session.receive_eof(trio.current_time())
        self._react()
        if not self.must_reopen:
            self.close(error)

    def is_waiting(self, request_id: RequestId) -> bool:
        """Whether somebody still waits for this answer."""
        return self.session.is_waiting(request_id)

    # ── what the session tells ───────────────────────────────────────────────────────────────────────────────────────

    def _react(self) -> None:
        for event in self.session.events():
            self._take(event)
        for frame in self.session.frames_to_send():  # of a handshake, or answers that the session gives by itself
            self._post(frame, is_handshake=bool(frame.method))

    def _take(self, event: Event[Slot]) -> None:
        match event:
            case ResponseReceived(waiter, result):
                waiter.fill(result)
            case ErrorReceived(waiter, error):
                hide(error, self.transport.secrets)
                waiter.fail(error)
            case ProgressReceived(waiter):
                waiter.report(event)
            case SessionExpired(waiter, _, needs_renewal):
                if needs_renewal:
                    self.calls.hold()
                    self._owner.session_expired()
                waiter.fail(SendAgain())
            case SessionDoubted():
                if not self._is_finding_out:
                    self._is_finding_out = True
                    self._nursery.start_soon(self._find_out)
            case Resend(waiter):
                waiter.fail(SendAgain())
            case ListChanged(kind):
                self._owner.list_changed(kind)
            case ResourceUpdated(uri):
                self._owner.resource_updated(uri)
            case ListenAcknowledged(waiter, honoured):
                self._owner.listens(waiter, honoured)
            case ListenEnded(waiter):
                waiter.fill(b"{}")
            case SessionReady():
                self._bell.ring()
            case SessionFailed(error):
                error.server = self.server
                hide(error, self.transport.secrets)
                self._failure = error
                self._bell.ring()
            case FellBack(reason, needs_reopen):
                logger.debug("[MCP:%s] = legacy: %s", self.server, starred(reason, self.transport.secrets))
                self.must_reopen = needs_reopen
                self._bell.ring()
            case ServerRequestReceived(request_id, method, params):
                # From here on, and not from when its task starts, it can be withdrawn.
                scope = self._answering.expect(request_id)
                self._nursery.start_soon(self._answer, request_id, method, params, scope)
            case ServerRequestCancelled(request_id):
                self._answering.withdraw(request_id)
            case PeerFault(kind, detail):
                detail = starred(detail, self.transport.secrets)
                logger.debug("[MCP:%s] ! %s: %s", self.server, kind, detail)
                self.calls.note_fault(f"{kind}: {detail}")
            case _:
                self._owner.heard(event)

    async def _find_out(self) -> None:
        """Ask for nothing: where the wire session is gone, its renewal follows from the answer."""
        with suppress(McpActorsError, trio.TooSlowError):
            await self.calls.ask(Request("ping", None, Budget(DOUBT_SECONDS, trio.current_time())))
        self._is_finding_out = False

    async def _answer(self, request_id: RequestId, method: str, params: JsonObject, scope: trio.CancelScope) -> None:
        """Have a request of the server answered; the clocks of the calls in flight stop while a person is asked."""
        with self.calls.paused() if method in ASKS_A_PERSON else nullcontext():
            answer = await self._answering.answer(request_id, method, params, scope)
        if isinstance(answer, RpcError):
            self.post(self.session.answer_error(request_id, answer.code, answer.message))
        elif answer is not None:
            self.post(self.session.answer(request_id, answer))


async def _raise(error: BaseException) -> None:
    raise error
