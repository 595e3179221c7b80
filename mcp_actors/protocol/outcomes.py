"""Owns what comes of a request of ours once its answer, its refusal or its loss is known: one event for its waiter.

What this is not: the reading of answers (`inbound`) or the meaning of refusals (`recovery`); nor answers that match no
request, which `session` sorts out.

Rule: a request is tried twice at most. A resend that meets the same end is an error (S124, S205, A03).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import field

from mcp_actors.errors import RemoteProtocolError, TransportBroken
from mcp_actors.protocol import recovery
from mcp_actors.protocol.events import (
    ErrorReceived,
    ListenEnded,
    Resend,
    ResponseReceived,
    SessionDoubted,
    SessionExpired,
)
from mcp_actors.protocol.inbound import read_answer, shown_id
from mcp_actors.protocol.refusals import read_refusal
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.protocol.calls import Calls
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.jsonrpc import Envelope
    from mcp_actors.protocol.recovery import SessionExpiry
    from mcp_actors.protocol.types import Refusal

__all__ = ["Outcomes"]

W = TypeVar("W")


@define(eq=False)
class Outcomes(Generic[W]):
    """The judge of answers to requests in flight. Every method takes the request out of the table."""

    calls: Calls[W]
    expiry: SessionExpiry
    is_modern: bool = field(default=False, init=False)
    # The first id of the wire session; requests with earlier ones were sent under one that is gone.
    began_at: int = field(default=0, init=False)
    # Whether this wire session has answered a request with a result: evidence that its URL is right.
    has_served: bool = field(default=False, init=False)

    def begin(self, first_id: int) -> None:
        """Learn that a handshake is said under this id; what came before belongs to another wire session."""
        self.began_at, self.has_served = first_id, False

    def answered(self, request_id: int, envelope: Envelope) -> Event[W]:
        """Judge an answer. This is the hot path, so a result stays undecoded."""
        answer = read_answer(envelope, is_modern=self.is_modern)
        if not isinstance(answer, bytes):
            return self.failed(request_id, answer)
        if self.is_modern and self.calls.listener(request_id) is not None:
            self.calls.bury(request_id)  # its last notices may come late
            return ListenEnded(self.calls.settle(request_id))
        self.has_served = True
        return ResponseReceived(self.calls.settle(request_id), answer)

    def failed(self, request_id: int, error: McpActorsError) -> Event[W]:
        """Judge an error: one that asks for another revision is worth one more try."""
        is_resend = self.calls.is_resend(request_id)
        waiter = self.calls.settle(request_id)
        if not self.is_modern or not recovery.is_version_error(error):
            return ErrorReceived(waiter, error)
        revision = recovery.renegotiated(error)
        if revision is None or is_resend:
            return ErrorReceived(waiter, recovery.unsupported(error))
        return Resend(waiter, revision, error)

    def refused(self, request_id: int, refusal: Refusal) -> Event[W]:
        """Judge an HTTP answer that is no message: it may tell of a lost wire session."""
        error = read_refusal(refusal, is_connecting=False)
        is_current = request_id > self.began_at
        has_served = self.has_served or not is_current
        if (
            self.is_modern
            or self.calls.is_resend(request_id)
            or not recovery.is_expired(refusal, self.expiry, has_served=has_served)
        ):
            return self.failed(request_id, error)
        return SessionExpired(self.calls.settle(request_id), error, needs_renewal=is_current)

    def doubts(self, refusal: Refusal) -> list[Event[W]]:
        """Judge the refusal of what waits for no answer."""
        return [SessionDoubted()] if not self.is_modern and recovery.is_doubted(refusal) else []

    def spoiled(self, raw: bytes, reason: str) -> Event[W] | None:
        """Learn of a message that cannot be read: where it shows the id of a request in flight, that was its answer."""
        request_id = shown_id(raw)
        if request_id not in self.calls.waiting:
            return None
        return ErrorReceived(self.calls.settle(request_id), RemoteProtocolError(reason=f"the answer is {reason}"))

    def lost(self, request_id: int, reason: str) -> Event[W]:
        """Learn that no answer can come any more."""
        return ErrorReceived(self.calls.settle(request_id), TransportBroken(reason=reason))
