"""Owns the conversation with one server, in both eras, without any I/O: bytes and commands in, frames and events out.

What this is not: a transport, a task, a clock, or a caller's deadline (that is a cancel scope, which ends in `cancel`).

Theory. Four drawers (law 2): getters; commands, what we want; `receive_*`, what the world did; drains. Commands return
the frame they make, since their caller writes it at once; frames that nobody asked for (handshake, answers to pings)
wait in `frames_to_send`. `receive_*` never raises for what the peer did: it records a `PeerFault` or fails the one
waiter that is concerned. Decisions live beside this file: `handshake` (which era), `calls` (our requests), `outcomes`
(what came of them), `server_requests`, `notifications`, `outbound` (how messages look), `inbound` (how they are read).

States: IDLE, PROBING <-> INITIALIZING <-> READY, FAILED, CLOSED. Drain after `open`, `renew` and `receive_*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from attrs import evolve, field

from mcp_actors.errors import ConnectFailed, LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol import events as happened
from mcp_actors.protocol import handshake as steps
from mcp_actors.protocol import inbound
from mcp_actors.protocol import server_requests as due
from mcp_actors.protocol.calls import Calls
from mcp_actors.protocol.inbound import Fault
from mcp_actors.protocol.jsonrpc import ABSENT, decode_envelope
from mcp_actors.protocol.notifications import NotificationReader
from mcp_actors.protocol.outbound import Composer
from mcp_actors.protocol.outcomes import Outcomes
from mcp_actors.protocol.revisions import LATEST_LEGACY, REVISIONS
from mcp_actors.protocol.session_settings import SessionSettings, SessionState
from mcp_actors.protocol.types import Era
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.jsonrpc import Envelope
    from mcp_actors.protocol.types import Frame, Refusal, RequestId, ServerInfo

__all__ = ["Session", "SessionSettings", "SessionState"]

W = TypeVar("W")

_READY: Final = SessionState.READY
DISCOVER: Final = "server/discover"
# Until READY only answers are made; they carry no header of a probe (A07).
_ANSWERING: Final = Composer(REVISIONS[LATEST_LEGACY], is_http=False, capabilities={}, client_info={})
_LISTENING: Final = frozenset({SessionState.PROBING, SessionState.INITIALIZING, _READY})


@define(eq=False, repr=False)
class Session(Generic[W]):
    """One conversation. `W` is whatever the caller wants to find again when an answer comes."""

    settings: SessionSettings = field(factory=SessionSettings)
    state: SessionState = field(default=SessionState.IDLE, init=False)
    # What the server said of itself, at the last READY.
    info: ServerInfo | None = field(default=None, init=False)
    # The moment at which `receive_timeout` wants to be called; None for never.
    next_deadline: float | None = field(default=None, init=False)
    # Maps kind -> how often the peer did it; for status.
    fault_counts: dict[str, int] = field(factory=dict, init=False)
    _handshake: steps.Handshake = field(init=False)  # while one is under way
    # The handshake request whose answer counts; its predecessors have tombstones.
    _handshake_id: int | None = field(default=None, init=False)
    _calls: Calls[W] = field(init=False)
    _incoming: due.ServerRequests = field(init=False)
    _outcomes: Outcomes[W] = field(init=False)
    _composer: Composer = field(default=_ANSWERING, init=False)  # at READY, one for the revision agreed on
    _is_modern: bool = field(default=False, init=False)
    _outbox: list[Frame] = field(factory=list, init=False)
    _events: list[Event[W]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = Calls(self.settings.max_tombstones)
        self._incoming = due.ServerRequests(self.settings.handled_methods, self.settings.max_server_requests)
        self._outcomes = Outcomes(self._calls, self.settings.session_expiry)

    # ── getters ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def in_flight(self) -> int:
        """How many requests of ours wait for their answer, without the handshake."""
        return len(self._calls.waiting)

    def is_waiting(self, request_id: RequestId) -> bool:
        """Whether the answer to this request of ours would still be of use."""
        return request_id in self._calls.waiting or request_id == self._handshake_id

    def __repr__(self) -> str:
        return f"<Session {self.state}{f' {self.info.revision}' if self.info else ''} | {self.in_flight} in flight>"

    # ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, now: float) -> None:
        """Start the handshake: queue the probe, or ``initialize`` when the era is pinned to legacy. Legal once."""
        if self.state is not SessionState.IDLE:
            raise LocalProtocolError(reason=f"a session is opened once; this one is {self.state}")
        self._begin(self.settings.pinned_era, now, remembered=self.settings.remembered_era)

    def renew(self, now: float) -> None:
        """Begin another wire session with ``initialize``: ids go on, who waits goes on waiting, nothing is probed.

        Does nothing while one is begun. The next `SessionReady` replaces `info`; `SessionFailed` fails who waits
        (S205, S407, C04, fault 32).

        Raises:
            LocalProtocolError: the session was never READY, has ended, or is modern, where there is nothing to renew.
        """
        if self._is_modern or self.info is None or self.state not in _LISTENING:
            raise LocalProtocolError(reason=f"there is no wire session to renew; the session is {self.state}")
        if self.state is _READY:
            self._events += [happened.ServerRequestCancelled(request_id) for request_id in self._incoming.open]
            self._incoming.open.clear()
            self._begin(Era.LEGACY, now)

    def request(
        self,
        method: str,
        params: JsonObject | None,
        waiter: W,
        *,
        wants_progress: bool = False,
        is_resend: bool = False,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Frame:
        """Make a request whose answer will come with `waiter`.

        Args:
            is_resend: it follows a `SessionExpired` or a `Resend`; it will cause neither again.
            headers: further mirrored values (B03).

        Raises:
            LocalProtocolError: the session is not READY, the era has no such method (F14), or `params` are no JSON.
                Nothing was changed.
        """
        self._require_ready()
        frame = self._composer.compose_request(
            self._calls.next_id, method, params, wants_progress=wants_progress, headers=headers
        )
        self._calls.add(
            waiter, wants_progress=wants_progress, is_resend=is_resend, is_listening=method == "subscriptions/listen"
        )
        return frame

    def notify(self, method: str, params: JsonObject | None = None) -> Frame:
        """Make a notification.

        Raises:
            LocalProtocolError: as for `request`.
        """
        self._require_ready()
        return self._composer.compose_notification(method, params)

    def cancel(self, request_id: RequestId, reason: str) -> Frame | None:
        """Forget a request: its waiter hears no more of it (B17, B18, S204; spec_client 7.2).

        Returns:
            What tells the server. None for an id that nobody waits for, for the handshake (which is never cancelled),
            and on modern HTTP, where closing the response stream is the cancel.
        """
        was_waiting = self._calls.forget(request_id)
        # While it is renewed, the wire session that ran the request is gone.
        if not was_waiting or (self._is_modern and self.settings.is_http) or self.state is not _READY:
            return None
        return self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    def answer(self, request_id: RequestId, result: JsonObject) -> Frame | None:
        """Answer a request of the server; None when it is not open (any more).

        Raises:
            LocalProtocolError: `result` is no JSON; the request stays open.
        """
        if request_id not in self._incoming.open:
            return None
        frame = self._composer.compose_answer(request_id, self._incoming.mark(request_id, result))
        self._incoming.close(request_id)
        return frame

    def answer_error(self, request_id: RequestId, code: int, message: str) -> Frame | None:
        """Refuse a request of the server; None when it is not open (any more)."""
        return self._composer.compose_error(request_id, code, message) if self._incoming.close(request_id) else None

    def stamp_log_level(self, level: str | None) -> None:
        """Have every later request name the least severe log message it wants; None for none (F13, modern only)."""
        self._require_ready()
        self.settings = evolve(self.settings, log_level=level)
        self._composer = self.settings.composer_for(self._composer.revision.name)

    def abandon(self) -> list[W]:
        """Close for good and hand back everybody who waits, oldest first; the caller must fail each of them."""
        return self._end(SessionState.CLOSED)

    # ── receive ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def receive_message(self, raw: bytes, now: float) -> None:
        """Take one message, or a batch of them."""
        if self.state is not _READY and self.state not in _LISTENING:
            return
        try:
            envelope = decode_envelope(raw)
        except RemoteProtocolError as exc:
            self._receive_batch(raw, exc, now)
        else:
            self._receive(envelope, now)

    def receive_refusal(self, frame_id: RequestId | None, refusal: Refusal, now: float) -> None:
        """Take an HTTP answer that is no message, to the frame with this id (None: what waits for no answer)."""
        if frame_id is None and self.state in _LISTENING:
            self._blame(Fault.REFUSED, f"what waits for no answer got {refusal.status}")
            self._events += self._outcomes.doubts(refusal)
        elif frame_id is not None and frame_id == self._handshake_id:
            self._follow(self._handshake.refused(refusal), now)
        elif isinstance(frame_id, int) and frame_id in self._calls.waiting:
            self._come_of(self._outcomes.refused(frame_id, refusal))

    def receive_lost(self, frame_id: RequestId, reason: str) -> None:
        """Learn that no answer to this frame can come any more."""
        if frame_id == self._handshake_id:
            self._fail_session(ConnectFailed(reason=reason))
        elif isinstance(frame_id, int) and frame_id in self._calls.waiting:
            self._come_of(self._outcomes.lost(frame_id, reason))

    def receive_eof(self, now: float) -> None:
        """Learn that the transport ended; while probing that can be a verdict."""
        if self.state is SessionState.PROBING:
            self._follow(self._handshake.probe_ended_wire(), now)

    def receive_timeout(self, now: float) -> None:
        """Learn that `next_deadline` has passed; too early does nothing."""
        if self.next_deadline is not None and now >= self.next_deadline:
            self._follow(self._handshake.probe_unanswered(), now)

    # ── drains ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def frames_to_send(self) -> list[Frame]:
        """Take the frames that nobody asked for, oldest first; they go before any frame of a later command."""
        frames, self._outbox = self._outbox, []
        return frames

    def events(self) -> list[Event[W]]:
        """Take what happened since the last drain, oldest first."""
        events, self._events = self._events, []
        return events

    # ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive(self, envelope: Envelope, now: float) -> None:
        if envelope.jsonrpc != "2.0":
            self._blame(Fault.VERSION, "'jsonrpc' is not '2.0'")
        method, request_id = envelope.method, envelope.id
        if method is ABSENT:
            if type(request_id) is int and request_id in self._calls.waiting:
                self._come_of(self._outcomes.answered(request_id, envelope))
            elif request_id is ABSENT or request_id is None:
                self._receive_unbound(envelope, now)
            else:
                self._receive_stray(request_id, envelope, now)
        elif not isinstance(method, str):
            self._blame(Fault.MALFORMED, "the method is no text")
        elif request_id is ABSENT:
            if self.state is not SessionState.PROBING:
                self._come_of(NotificationReader(self._calls, self._incoming).read(method, bytes(envelope.params)))
        elif self._is_modern:
            # "MUST: servers never send requests, clients never send responses" (spec_client 1).
            self._blame(Fault.SERVER_REQUEST, f"{method[:40]} in the modern era")
        else:
            params = bytes(envelope.params)
            self._come_of(self._incoming.receive(request_id, method, params, is_ready=self.state is _READY))

    def _receive_batch(self, raw: bytes, error: RemoteProtocolError, now: float) -> None:
        """Take what is no single message: each good element of an array counts (fault 77)."""
        for message in inbound.read_batch(raw, error, self.settings.max_batch):
            if isinstance(message, inbound.Blame):
                self._blame(message.fault, message.detail)
                self._come_of(self._outcomes.spoiled(raw, message.detail))
            elif self.state in _LISTENING:
                self._receive(message, now)

    def _receive_unbound(self, envelope: Envelope, now: float) -> None:
        """Take an answer without id, which only an error may lack."""
        if not envelope.error:
            self._blame(Fault.MALFORMED, "neither a method nor an id")
        elif self.state is SessionState.PROBING:
            # Nothing else is out, so it is for the probe, from a server that could not even read it.
            self._receive_handshake(envelope, now)
        else:
            error = inbound.read_error(bytes(envelope.error)).describe()
            self._blame(Fault.UNBOUND_ERROR, f"an error without id: {error[:120]}")

    def _receive_stray(self, request_id: object, envelope: Envelope, now: float) -> None:
        """Take an answer whose id, as it stands, is of no request in flight."""
        known = request_id if type(request_id) is int else inbound.our_id(request_id)
        if known is None or not (self.is_waiting(known) or self._calls.is_buried(known)):
            self._blame(Fault.UNKNOWN_ID, f"nobody waits for the id {repr(request_id)[:40]}")
            return
        if known is not request_id:
            self._blame(Fault.ID_TYPE, f"the answer to {known} has the id {repr(request_id)[:40]}")
        if known == self._handshake_id:
            self._receive_handshake(envelope, now)
        elif not self._calls.unearth(known):
            self._come_of(self._outcomes.answered(known, envelope))

    def _receive_handshake(self, envelope: Envelope, now: float) -> None:
        is_probe = self.state is SessionState.PROBING
        self._follow(self._handshake.answered(inbound.read_answer(envelope, is_modern=is_probe)), now)

    def _come_of(self, came: Event[W] | due.Due | None) -> None:
        """Let happen what came of a message."""
        match came:
            case happened.ResponseReceived():  # the hot path
                self._events.append(came)
            case due.Pong(known):
                self._queue(self._composer.compose_answer(known, {}))
            case due.Refuse(known, code, message):
                self._queue(self._composer.compose_error(known, code, message))
            case inbound.Blame(fault, detail):
                self._blame(fault, detail)
            case happened.Resend(_, revision):
                self.info = self.info and evolve(self.info, revision=revision)
                self._composer = self.settings.composer_for(revision)
                self._events.append(came)
            case None:
                pass
            case _:
                self._events.append(came)

    # ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, pinned_era: Era | None, now: float, *, remembered: Era | None = None) -> None:
        self._handshake = steps.Handshake(self.settings.is_http, pinned_era, remembered)
        self._follow(self._handshake.begin(), now)

    def _follow(self, step: steps.Step | None, now: float) -> None:
        """Do what the handshake decided."""
        ours, self.next_deadline = self.settings, None
        match step:
            case steps.Probe(revision):
                self.state = SessionState.PROBING
                if ours.probe_timeout is not None:
                    self.next_deadline = now + ours.probe_timeout
                self._queue(ours.composer_for(revision).compose_request(self._next_handshake_id(), DISCOVER, None))
            case steps.Initialize(revision, fell_back):
                if fell_back is not None:
                    self._events.append(happened.FellBack(fell_back))
                self.state = SessionState.INITIALIZING
                self._queue(ours.compose_initialize(self._next_handshake_id(), revision))
            case steps.Reopen(reason):
                self._end(SessionState.FAILED)
                self._events.append(happened.FellBack(reason, needs_reopen=True))
            case steps.Finish(info):
                self._finish(info)
            case steps.Fail(error):
                self._fail_session(error)

    def _finish(self, info: ServerInfo) -> None:
        self.info, self.state, self._handshake_id = info, _READY, None
        del self._handshake
        self._composer = self.settings.composer_for(info.revision)
        self._is_modern = self._outcomes.is_modern = info.era is Era.MODERN
        if not self._is_modern:
            self._queue(self._composer.compose_notification("notifications/initialized", None))
        self._events.append(happened.SessionReady(info))

    def _fail_session(self, error: McpActorsError) -> None:
        # Requests in flight, in a renewal, get an error each: a raised one collects tracebacks.
        self._events += [happened.ErrorReceived(waiter, evolve(error)) for waiter in self._end(SessionState.FAILED)]
        self._events.append(happened.SessionFailed(error))

    def _end(self, state: SessionState) -> list[W]:
        self.state, self.next_deadline, self._handshake_id = state, None, None
        self._incoming.open.clear()
        return self._calls.clear()

    def _next_handshake_id(self) -> int:
        """Give the handshake its next id; an answer to the one before comes too late from now on."""
        if self._handshake_id is not None:
            self._calls.bury(self._handshake_id)
        self._handshake_id = self._calls.take_id()
        self._outcomes.begin(self._handshake_id)
        return self._handshake_id

    def _require_ready(self) -> None:
        if self.state is not _READY:
            raise LocalProtocolError(reason=f"the session is {self.state}, not READY")

    def _queue(self, frame: Frame) -> None:
        if len(self._outbox) >= self.settings.max_outbox:
            self._blame(Fault.FLOOD, f"{len(self._outbox)} frames wait to be sent")
        else:
            self._outbox.append(frame)

    def _blame(self, fault: Fault, detail: str) -> None:
        self.fault_counts[fault] = self.fault_counts.get(fault, 0) + 1
        self._events.append(happened.PeerFault(fault, detail))
