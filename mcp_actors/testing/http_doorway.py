"""Owns a small HTTP/1.1 server on h11 for loopback: requests come as values, answers go as values or as event streams.

What this is not: MCP (`http_server` is), nor fit for the public internet: no TLS, no HTTP/2.

Rules. (1) No exception leaves a connection's task. (2) Everything is bounded: header, body, and the time for each.
(3) When the client hangs up, its running request is cancelled. (4) Only loopback names are served, so that a web page
cannot reach a server by a name of its own (DNS rebinding).
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import h11
import trio
from attrs import field

from mcp_actors.groups import bare_errors
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

__all__ = [
    "Decide",
    "DoorwayLimits",
    "HttpAnswer",
    "HttpRequest",
    "Responder",
    "Stream",
    "encode_event",
    "open_http_doorway",
]

log = logging.getLogger("mcp_actors.testing.http")

READ_BYTES = 64 * 1024
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
# What a client may send ahead while its request runs; more waits in the kernel.
MAX_AHEAD_BYTES = 64 * 1024


@frozen
class DoorwayLimits:
    """Sizes in bytes, times in seconds."""

    max_header_bytes: int = 64 * 1024
    max_body_bytes: int = 64 * 1024 * 1024
    # From the first byte wanted to the whole request; covers the idle time between requests.
    request_timeout: float = 75.0
    # One write.
    write_timeout: float = 30.0


@frozen
class HttpRequest:
    """One request. `headers` maps lower-case name -> value; repeated ones are joined by ", "."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The target's query; empty when there is none."""
        return self.target.partition("?")[2]


@frozen
class HttpAnswer:
    """One whole answer."""

    status: int = 200
    body: bytes = field(default=b"", repr=False)
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


# Runs an answer that takes time; is cancelled when the client hangs up.
Stream: TypeAlias = "Callable[[Responder], Awaitable[None]]"
# Looks at a request: an answer at once, or something to run.
Decide: TypeAlias = "Callable[[HttpRequest], HttpAnswer | Stream]"


class _Aborted(trio.BrokenResourceError):
    """End this connection without another byte."""


@define(eq=False)
class Responder:
    """The answer to one request. Writing raises `trio.BrokenResourceError` once the client is gone."""

    _stream: trio.SocketStream
    _conn: h11.Connection
    _limits: DoorwayLimits
    is_started: bool = False
    is_finished: bool = False
    is_aborted: bool = False
    _lock: trio.Lock = field(factory=trio.Lock)

    async def answer(self, answer: HttpAnswer) -> None:
        """Write a whole answer."""
        async with self._lock:
            self.is_started = self.is_finished = True
            headers = [("content-length", str(len(answer.body))), *answer.headers]
            if answer.body:
                headers.append(("content-type", answer.content_type))
            await self._send(
                h11.Response(status_code=answer.status, headers=headers), h11.Data(data=answer.body), h11.EndOfMessage()
            )

    async def start_events(self, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Begin an event stream; once is enough, more is harmless."""
        async with self._lock:
            if not self.is_started:
                self.is_started = True
                fixed = [
                    ("content-type", "text/event-stream"),
                    ("cache-control", "no-cache"),
                    ("x-accel-buffering", "no"),
                ]
                await self._send(h11.Response(status_code=200, headers=[*fixed, *headers]))

    async def event(self, data: bytes, *, event_id: str | None = None, retry_ms: int | None = None) -> None:
        """Write one event of the default type."""
        await self.raw_event(encode_event(data, event_id=event_id, retry_ms=retry_ms))

    async def comment(self) -> None:
        """Write a keep-alive comment."""
        await self.raw_event(b": keep-alive\n\n")

    async def raw_event(self, block: bytes) -> None:
        """Write these bytes into the event stream."""
        await self.start_events()
        async with self._lock:
            await self._send(h11.Data(data=block))

    async def finish(self) -> None:
        """End the event stream."""
        async with self._lock:
            self.is_finished = True
            await self._send(h11.EndOfMessage())

    def abort(self) -> None:
        """Have the connection end without another byte, once the stream function returns."""
        self.is_aborted = True

    async def _send(self, *events: h11.Event) -> None:
        if self.is_aborted:
            raise _Aborted
        try:
            data = b"".join([self._conn.send(event) or b"" for event in events])
            # Shielded: half a chunk would garble the stream for the next write; bounded: a reader may be stuck.
            with trio.fail_after(self._limits.write_timeout, shield=True):
                await self._stream.send_all(data)
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError) as exc:
            self.is_aborted = True
            raise _Aborted from exc


def encode_event(data: bytes, *, event_id: str | None = None, retry_ms: int | None = None) -> bytes:
    """One server-sent event of the default type."""
    lines = [] if event_id is None else [b"id: " + event_id.encode()]
    if retry_ms is not None:
        lines.append(b"retry: %d" % retry_ms)
    lines += [b"data: " + line for line in data.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"


@asynccontextmanager
async def open_http_doorway(
    decide: Decide, *, port: int = 0, limits: DoorwayLimits | None = None
) -> AsyncGenerator[int, None]:
    """Serve HTTP on 127.0.0.1 for the time of the block; yields the port.

    On exit the listener and every connection are closed and no task is left.
    """
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    doorway = _Doorway(decide, limits or DoorwayLimits())
    with bare_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, doorway.serve_connection, listeners)
            yield int(listeners[0].socket.getsockname()[1])
            nursery.cancel_scope.cancel()


@frozen
class _Doorway:
    decide: Decide
    limits: DoorwayLimits

    async def serve_connection(self, stream: trio.SocketStream) -> None:
        """Serve one connection; nothing leaves but cancellation (rule 1)."""
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=self.limits.max_header_bytes)
        try:
            while await self._serve_request(stream, conn):
                conn.start_next_cycle()
            with trio.move_on_after(1):  # let the client read what we said before the socket goes
                await stream.send_eof()
                while await stream.receive_some(READ_BYTES):
                    pass
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError):
            pass  # the client is gone, or a script wanted it so
        except Exception:
            log.exception("Failed on a connection")
        finally:
            await trio.aclose_forcefully(stream)

    async def _serve_request(self, stream: trio.SocketStream, conn: h11.Connection) -> bool:
        """Serve one request. Returns whether the connection can take another."""
        responder = Responder(stream, conn, self.limits)
        try:
            with trio.move_on_after(self.limits.request_timeout) as scope:
                request = await self._read_request(stream, conn)
            if scope.cancelled_caught:
                return False
        except h11.RemoteProtocolError as exc:
            if conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                await responder.answer(HttpAnswer(exc.error_status_hint or 400, str(exc).encode(), "text/plain"))
            return False
        if request is None:
            return False
        if isinstance(request, HttpAnswer):
            await responder.answer(request)
            return False
        decision = self._refuse_strangers(request) or self.decide(request)
        if isinstance(decision, HttpAnswer):
            await responder.answer(decision)
        else:
            await _run_watched(decision, responder, stream, conn)
        return bool(conn.our_state is h11.DONE and conn.their_state is h11.DONE)

    async def _read_request(self, stream: trio.SocketStream, conn: h11.Connection) -> HttpRequest | HttpAnswer | None:
        """The next request; None at end-of-file, an answer when it is refused for its size."""
        head: h11.Request | None = None
        body: list[bytes] = []
        size = 0
        while True:
            event = conn.next_event()
            if event is h11.NEED_DATA:
                if conn.they_are_waiting_for_100_continue:
                    await stream.send_all(conn.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                conn.receive_data(await stream.receive_some(READ_BYTES))
            elif isinstance(event, h11.Request):
                head = event
                # h11 bounds what is incomplete; what came whole in one read is bounded here.
                if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > (
                    self.limits.max_header_bytes
                ):
                    return HttpAnswer(431)
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > self.limits.max_body_bytes:
                    return HttpAnswer(413)
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return HttpRequest(head.method.decode(), head.target.decode(), _headers(head), b"".join(body))
            else:  # end-of-file
                return None

    def _refuse_strangers(self, request: HttpRequest) -> HttpAnswer | None:
        """Source: MCP, transports, "Security Warning": servers MUST validate the Origin header."""
        origin = request.headers.get("origin")
        for value in (request.headers.get("host"), origin.partition("://")[2] if origin is not None else None):
            if value is not None and _name_of(value) not in LOOPBACK_NAMES:
                return HttpAnswer(403, b"not a loopback name", "text/plain")
        return None


def _headers(head: h11.Request) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _name_of(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


async def _run_watched(run: Stream, responder: Responder, stream: trio.SocketStream, conn: h11.Connection) -> None:
    """Run an answer that takes time; cancel it when the client hangs up (rule 3)."""
    has_hung_up = False

    async def watch() -> None:
        nonlocal has_hung_up
        ahead = 0
        while ahead < MAX_AHEAD_BYTES:
            try:
                data = await stream.receive_some(READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            conn.receive_data(data)
            ahead += len(data)
            if not data:
                has_hung_up = True
                nursery.cancel_scope.cancel()
                return

    with bare_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await run(responder)
            nursery.cancel_scope.cancel()
    if has_hung_up or responder.is_aborted or not responder.is_started:
        raise _Aborted
