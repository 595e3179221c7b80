"""Owns the resumption of a legacy response stream that ended before its answer: GET with ``Last-Event-ID`` (C07).

What this is not: a repetition of the request. The server goes on with what it was asked; only the reading resumes. The
modern era has none of it (C11), nor does a stream whose events had no ids: its request is lost at once (fault 42).

Rules.

- The pause is what `retry` said, exactly, else a second.
- Two attempts in a row that bring nothing are enough; any event with an id or a message starts the count anew, so that
  a server may close the stream as often as it likes ("polling", revision 2025-11-25).
- A refusal that does not pass (404: the server has forgotten the stream) ends it at once (fault 42).
- The answer may meanwhile come over any other stream; then nobody waits here any more (C09).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import RemoteProtocolError, TransportError
from mcp_actors.transports.http_exchange import EVENT_STREAM, STREAM_ENDED, deliver_events, is_success
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_actors.protocol.types import Frame
    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.cursor import Cursor
    from mcp_actors.transports.http_client import HttpClient

__all__ = ["PASSING_STATUSES", "Resuming", "is_passing", "resume"]

# Refusals that pass: conflict with a stream that the server still thinks is open, too early, too many (fault 45).
PASSING_STATUSES: Final = frozenset({408, 409, 425, 429})


@frozen
class Resuming:
    """How patiently a stream is resumed."""

    # Seconds before each attempt when the server asked for no pause.
    wait: float = 1.0
    # Attempts in a row without progress (spec_client 5.3).
    attempts: int = 2


def is_passing(status: int) -> bool:
    """Whether a stream that was refused with this status may be had later."""
    return status >= 500 or status in PASSING_STATUSES


async def resume(
    client: HttpClient,
    headers: Callable[[], Sequence[tuple[bytes, bytes]] | None],
    frame: Frame,
    sink: Sink,
    cursor: Cursor,
    *,
    reason: str,
    max_bytes: int,
    resuming: Resuming,
) -> None:
    """Read on until the answer to `frame` came, or cannot come any more; the sink is told which.

    Args:
        client: of the endpoint.
        headers: gives those of a GET; None once its wire session is not ours any more.
        frame: the request that waits for its answer.
        sink: told of messages, or of the loss.
        cursor: where the stream stands; has an id.
        reason: why the stream ended, for the loss.
        max_bytes: longest message.
        resuming: the patience.

    Raises:
        AuthError: the credentials did not do any more.

    Cancellation:
        Safe. The stream is closed, which is no cancel to a legacy server.

    Source:
        MCP 2025-11-25, basic/transports, "Resumability and Redelivery"; C07, C09, faults 42, 44.
    """
    assert frame.request_id is not None
    left = resuming.attempts
    while left and cursor.event_id is not None:
        left -= 1
        await trio.sleep(resuming.wait if cursor.wish is None else cursor.wish)
        known = headers()
        if not sink.is_waiting(frame.request_id) or known is None:
            break
        try:
            answer = await client.request("GET", [*known, (b"Accept", EVENT_STREAM.encode()), *cursor.header()])
        except TransportError as exc:
            # Not the bare reason: "cannot reach" would say that the request never arrived.
            reason = f"the event stream could not be resumed: {exc.reason}"
            if exc.http_status is not None:  # a redirect that leads nowhere
                break
            continue
        before = cursor.steps
        try:
            if not is_success(answer.status) or answer.content_type != EVENT_STREAM:
                reason = f"the event stream could not be resumed: HTTP {answer.status}"
                if is_passing(answer.status):
                    continue
                break
            await deliver_events(answer, frame, sink, cursor, max_bytes=max_bytes)
            reason = STREAM_ENDED
        except TransportError as exc:
            reason = exc.reason
        except RemoteProtocolError as exc:
            reason = exc.reason
            break
        finally:
            await answer.aclose()
        if cursor.steps != before:
            left = resuming.attempts
        if not sink.is_waiting(frame.request_id):
            return
    if sink.is_waiting(frame.request_id):
        sink.lose(frame, reason)
