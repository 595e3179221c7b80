"""Owns what the answer to one POST means to a transport: messages, a refusal, or an answer that will never come.

What this is not: making the request (`http_client`), nor judging a refusal, which is the session's.

::

    status  content type         request                          notification, or our own answer
    2xx     application/json     deliver the body                 accepted, body ignored (fault 35)
    2xx     text/event-stream    deliver each message (fault 36)  accepted, body ignored
            that ended early     lose, unless it may be resumed
    2xx     none, body like JSON deliver the body                 accepted, body ignored
    2xx     none, body empty     lose: no answer can come (C10)   accepted
    2xx     anything else        refuse (fault 37)                accepted, body ignored
    other   any                  refuse                           noted; the session goes on

Rule 1: a type that is there is believed: ``text/plain`` is a wrong one, whatever the body (C10). Where there is none,
the body may be looked at (RFC 9110, 8.3): some servers forget the header.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import RemoteProtocolError, TransportBroken
from mcp_actors.origins import place_of
from mcp_actors.protocol.sse import SseParser
from mcp_actors.protocol.types import Refusal
from mcp_actors.transports.base import Turn

if TYPE_CHECKING:
    from mcp_actors.protocol.types import Frame
    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.cursor import Cursor
    from mcp_actors.transports.http_answer import HttpAnswer

__all__ = [
    "EVENT_STREAM",
    "JSON",
    "STREAM_ENDED",
    "deliver_events",
    "is_success",
    "refusal_of",
    "retry_after",
    "take_answer",
]

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
STREAM_ENDED: Final = "the server ended its event stream before the answer"
# Of a body that is no message, so much is kept for judging and showing it, and waited for so long.
MAX_REFUSAL_BYTES: Final = 64 * 1024
REFUSAL_SECONDS: Final = 5.0
# A longer Retry-After is cut to this: a week is as good as never.
MAX_RETRY_AFTER: Final = 7 * 86400.0


def is_success(status: int) -> bool:
    """Whether the peer accepted."""
    return 200 <= status < 300


async def take_answer(
    answer: HttpAnswer, frame: Frame, sink: Sink, *, max_bytes: int, had_session: bool, cursor: Cursor | None = None
) -> str | None:
    """Read the answer to a request and tell the sink what it is. Returns when nothing more is wanted of it.

    Args:
        answer: open; the caller closes it.
        frame: the request that it answers.
        sink: told exactly one outcome: messages with the answer among them, a refusal, or a loss.
        max_bytes: longest message.
        had_session: whether the request carried a wire session id.
        cursor: moves along with the event stream; None where streams are not resumed (C11).

    Returns:
        None: the sink was told the outcome. A text: why the event stream ended before the answer, when it may be
        resumed at `cursor`; then the sink was told of no outcome.

    Cancellation:
        Safe; nothing half-read is delivered.

    Source:
        MCP 2026-07-28, basic/transports, "Streamable HTTP"; C01, C10, faults 35-37, 42.
    """
    if not is_success(answer.status):
        sink.refuse(frame, await refusal_of(answer, had_session=had_session))
        return None
    kind = answer.content_type
    can_resume = False
    try:
        if kind == EVENT_STREAM:
            can_resume = cursor is not None
            await deliver_events(answer, frame, sink, cursor, max_bytes=max_bytes)
            reason = STREAM_ENDED
        elif kind == JSON or (not kind and await answer.looks_like_json()):
            body = await answer.read(max_bytes)
            if body.strip():
                sink.deliver(body)
            reason = f"the server answered HTTP {answer.status} without the answer in it"
        else:
            refusal = await refusal_of(answer, had_session=had_session)
            if refusal.body.strip():
                sink.refuse(frame, refusal)
                return None
            reason = f"the server answered HTTP {answer.status} with an empty body"
    except TransportBroken as exc:
        reason = exc.reason
    except RemoteProtocolError as exc:
        reason, can_resume = exc.reason, False
    if frame.request_id is None or not sink.is_waiting(frame.request_id):
        return None
    if can_resume and cursor is not None and cursor.event_id is not None:
        return reason
    sink.lose(frame, reason)
    return None


async def deliver_events(
    answer: HttpAnswer, frame: Frame, sink: Sink, cursor: Cursor | None, *, max_bytes: int
) -> None:
    """Deliver the messages of an event stream until it ends or nobody waits for the answer to `frame` any more.

    Raises:
        RemoteProtocolError: an event is longer than `max_bytes`.
        TransportBroken: the connection ended inside the stream.

    Cancellation:
        Safe. Closing the answer afterwards tells a modern server to stop (B17).

    Source:
        C02, faults 36, 39-41.
    """
    parser, turn = SseParser(max_bytes), Turn()
    request_id = frame.request_id
    while chunk := await answer.receive_some():
        for event in parser.feed(chunk):
            if cursor is not None:
                cursor.take(event)
            if event.data and event.event == "message":
                sink.deliver(event.data)
            if turn.spend(len(event.data or b"")):
                await trio.lowlevel.checkpoint()
        if request_id is None or not sink.is_waiting(request_id):
            return


async def refusal_of(answer: HttpAnswer, *, had_session: bool) -> Refusal:
    """Read what a session needs to judge an answer that is not a message. Bounded in bytes and seconds, never fails."""
    return Refusal(
        status=answer.status,
        content_type=answer.told(answer.content_type),
        body=answer.without_secrets(await answer.read_start(MAX_REFUSAL_BYTES, REFUSAL_SECONDS)),
        had_session=had_session,
        challenge=answer.header("www-authenticate"),
        retry_after=retry_after(answer.header("retry-after"), now=time.time()),
        url=place_of(answer.url),
    )


def retry_after(value: str | None, *, now: float) -> float | None:
    """Seconds that a Retry-After header asks for (fault 46).

    Args:
        value: the header: seconds or a date; None when there is none.
        now: the time of day, in seconds since the epoch.

    Returns:
        Seconds from now, between 0 and a week; None when it is absent or unreadable.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(moment - now, 0.0), MAX_RETRY_AFTER)
