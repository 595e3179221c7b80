"""Owns the optional GET stream of legacy HTTP: opens it, reads it, opens it again (C06, S081).

What this is not: needed. Whatever becomes of the stream, calls go on over POST (faults 33, 43, 45).

When to try again is decided by `Reopening`, which is pure: the wait doubles from 1 s to 30 s and starts anew only after
the stream proved itself by living for a while or by delivering a message. A server that accepts and closes streams for
ever is asked at the same slow pace as one that refuses the connection.

A stream that was open and is then refused may say that the session is gone (C03, S205): the sink is told, which finds
out by a request; the pace is that of the transport and not of one session, so that nothing begins sessions for ever.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import trio
from attrs import field

from mcp_actors.errors import McpActorsError, RemoteProtocolError, TransportError
from mcp_actors.protocol.sse import SseParser
from mcp_actors.protocol.types import Frame
from mcp_actors.transports.base import Turn
from mcp_actors.transports.cursor import Cursor
from mcp_actors.transports.http_exchange import EVENT_STREAM, is_success, refusal_of
from mcp_actors.transports.http_resume import is_passing
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.http_answer import HttpAnswer
    from mcp_actors.transports.http_client import HttpClient

__all__ = ["PushStream", "Reopening"]


@define
class Reopening:
    """When to open the stream again. Durations are seconds."""

    first: float = 1.0
    factor: float = 2.0
    longest: float = 30.0
    # A stream that lived so long has proved itself.
    proof: float = 30.0
    # Streams in a row without a message for which a wish shorter than `first` is granted.
    believed: int = 3
    # Such streams so far.
    _empty: int = field(default=0, init=False)
    # The wait that is due next, without spread.
    _due: float = field(default=0.0, init=False)

    def wait_after(
        self, lived: float, *, has_delivered: bool, has_moved: bool = False, retry: float | None, spread: float
    ) -> float:
        """Decide how long to wait after a stream ended or could not be opened.

        Args:
            lived: how long it was open; 0 when it never was.
            has_delivered: whether a message came over it.
            has_moved: whether at least an event id came over it: the server closes its streams on purpose.
            retry: what the server asked for in a `retry` field, within a cursor's bounds; None when it did not.
            spread: chance, in [0, 1): makes a wait of our own up to a quarter longer.

        Source:
            Faults 43, 44; S081, C07.
        """
        is_proved = has_delivered or lived >= self.proof
        self._due = self.first if is_proved or not self._due else min(self._due * self.factor, self.longest)
        self._empty = 0 if is_proved else self._empty + 1
        # Closing on purpose, again and again with nothing to say, is believed of a server that leaves us time.
        is_polled = has_moved and retry is not None and (retry >= self.first or self._empty <= self.believed)
        if retry is not None and (is_proved or is_polled):
            return retry  # "the client MUST wait": no more and no less
        return max(self._due * (1 + spread / 4), retry or 0.0)


@define(eq=False)
class PushStream:
    """The GET stream of one wire session."""

    client: HttpClient
    headers: Callable[[], Sequence[tuple[bytes, bytes]]]
    note: Callable[[str], None]
    max_bytes: int
    reopening: Reopening = field(factory=Reopening)
    # Whether the headers hold a session's id.
    has_session: bool = False
    cursor: Cursor = field(factory=Cursor)
    # Whether the server ever had a stream for us.
    _was_open: bool = field(default=False, init=False)

    async def run(self, sink: Sink) -> None:
        """Keep the stream open. Runs until cancelled, or until the server says that it has none.

        Cancellation:
            Safe; the stream is closed.

        Source:
            MCP 2025-11-25, basic/transports, "Listening for Messages from the Server"; C06, faults 33, 43, 45.
        """
        while True:
            opened, has_delivered, before = trio.current_time(), False, self.cursor.steps
            try:
                answer = await self.client.request("GET", self._headers())
            except McpActorsError as exc:
                if not isinstance(exc, TransportError) or exc.http_status is not None:
                    self.note(f"no GET stream: {exc.describe()}")
                    return
                lived, ending = 0.0, exc.reason
            else:
                try:
                    if (refusal := _refusal(answer)) is not None:
                        self.note(f"no GET stream: {refusal}")
                        if self._was_open:
                            sink.refuse(Frame(b""), await refusal_of(answer, had_session=self.has_session))
                        return
                    self._was_open = self._was_open or is_success(answer.status)
                    opened = trio.current_time()
                    has_delivered, ending = await self._read(answer, sink)
                    lived = trio.current_time() - opened if is_success(answer.status) else 0.0
                finally:
                    await answer.aclose()
            wait = self.reopening.wait_after(
                lived,
                has_delivered=has_delivered,
                has_moved=self.cursor.steps != before,
                retry=self.cursor.wish,
                spread=random.random(),
            )
            self.note(f"GET stream ended: {ending}")
            await trio.sleep(wait)

    def _headers(self) -> Sequence[tuple[bytes, bytes]]:
        return [*self.headers(), (b"Accept", EVENT_STREAM.encode()), *self.cursor.header()]

    async def _read(self, answer: HttpAnswer, sink: Sink) -> tuple[bool, str]:
        """Deliver what comes until the stream ends. Returns whether a message came, and how it ended."""
        if not is_success(answer.status):
            return False, f"HTTP {answer.status}"
        parser, turn = SseParser(self.max_bytes), Turn()
        has_delivered = False
        try:
            while chunk := await answer.receive_some():
                for event in parser.feed(chunk):
                    self.cursor.take(event)
                    if event.data and event.event == "message":
                        sink.deliver(event.data)
                        has_delivered = True
                    if turn.spend(len(event.data or b"")):
                        await trio.lowlevel.checkpoint()
        except (TransportError, RemoteProtocolError) as exc:
            return has_delivered, exc.reason
        return has_delivered, "closed by the server"


def _refusal(answer: HttpAnswer) -> str | None:
    """Why the server has no stream for us; None when it has one, or may have one later."""
    if is_success(answer.status):
        return None if answer.content_type == EVENT_STREAM else f"HTTP {answer.status} {answer.content_type or 'empty'}"
    return None if is_passing(answer.status) else f"HTTP {answer.status}"
