"""A loopback HTTP/1.1 server on h11, scripted per request: what the tests of this room talk to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import h11
import trio
from attrs import define, field, frozen


@frozen
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    # Lower-case name -> value, several joined by ", ".
    headers: dict[str, str]
    body: bytes
    # Names as sent, in order.
    names: tuple[str, ...] = ()


@frozen
class Reply:
    """What to answer: chunks go out one by one; a number pauses so many seconds, `HOLD` until the peer hangs up.

    A memory channel pours until it is closed.
    """

    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    chunks: Sequence[bytes | float | trio.MemoryReceiveChannel[bytes]] = ()
    # False: the connection is cut after the chunks, in the middle of the body.
    is_whole: bool = True
    # Body framed by Content-Length instead of chunks.
    is_sized: bool = False


HOLD = float("inf")
CUT = Reply(status=0)  # hang up without an answer


def json_reply(body: bytes, status: int = 200, **headers: str) -> Reply:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Reply(status, [("Content-Type", "application/json"), *named], [body], is_sized=True)


def sse_reply(*chunks: bytes | float, is_whole: bool = True, **headers: str) -> Reply:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Reply(200, [("Content-Type", "text/event-stream"), *named], chunks, is_whole=is_whole)


def event(data: bytes, name: str | None = None) -> bytes:
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + data + b"\n\n"


Script = Callable[[Asked], Reply | Awaitable[Reply]]


@define(eq=False)
class HttpPeer:
    """The server while it runs. `script` may be replaced at any time."""

    script: Script
    port: int = 0
    asked: list[Asked] = field(factory=list)
    # Connections accepted so far, and open now.
    accepted: int = 0
    connections: int = 0
    # Requests whose client hung up before the answer was whole.
    hung_up: int = 0
    _changed: trio.Event = field(factory=trio.Event)
    _life: trio.CancelScope = field(factory=trio.CancelScope)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def of(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]

    async def until(self, claim: Callable[[HttpPeer], bool]) -> None:
        """Wait until something the peer saw makes `claim` true."""
        while not claim(self):
            await self._changed.wait()

    def stop(self) -> None:
        """Go away: nothing listens any more, every connection is cut."""
        self._life.cancel()

    def tell(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.accepted += 1
        self.connections += 1
        self.tell()
        try:
            async with stream:
                await self._converse(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError, OSError):
            pass
        finally:
            self.connections -= 1
            self.tell()

    async def _converse(self, stream: trio.abc.Stream) -> None:
        wire = h11.Connection(h11.SERVER)
        while True:
            asked = await self._next_request(wire, stream)
            if asked is None:
                return
            self.asked.append(asked)
            self.tell()
            reply = self.script(asked)
            if not isinstance(reply, Reply):
                reply = await reply
            if reply is CUT or not await self._reply(wire, stream, reply):
                return
            wire.start_next_cycle()

    async def _next_request(self, wire: h11.Connection, stream: trio.abc.Stream) -> Asked | None:
        head, body = None, b""
        while True:
            step = wire.next_event()
            if step is h11.NEED_DATA:
                wire.receive_data(await stream.receive_some(65536))
            elif isinstance(step, h11.Request):
                head = step
            elif isinstance(step, h11.Data):
                body += step.data
            elif isinstance(step, h11.EndOfMessage):
                assert head is not None
                headers: dict[str, str] = {}
                for name, value in head.headers:
                    key, text = name.decode(), value.decode()
                    headers[key] = f"{headers[key]}, {text}" if key in headers else text
                names = tuple(name.decode() for name, _ in head.headers.raw_items())
                return Asked(head.method.decode(), head.target.decode(), headers, body, names)
            else:
                return None

    async def _reply(self, wire: h11.Connection, stream: trio.abc.Stream, reply: Reply) -> bool:
        headers = list(reply.headers)
        if reply.is_sized:
            size = sum(len(chunk) for chunk in reply.chunks if isinstance(chunk, bytes))
            headers.append(("Content-Length", str(size)))
        elif not any(name.lower() == "content-length" for name, _ in headers) and reply.status not in (204, 304):
            headers.append(("Transfer-Encoding", "chunked"))
        await stream.send_all(wire.send(h11.Response(status_code=reply.status, headers=headers)))
        try:
            for chunk in reply.chunks:
                if isinstance(chunk, bytes):
                    await stream.send_all(wire.send(h11.Data(data=chunk)))
                elif isinstance(chunk, trio.MemoryReceiveChannel):
                    if not await _pour(wire, stream, chunk):
                        self.hung_up += 1
                        return False
                elif not await _pause(stream, chunk):
                    self.hung_up += 1
                    return False
        except trio.BrokenResourceError:
            self.hung_up += 1
            raise
        if not reply.is_whole:
            return False
        await stream.send_all(wire.send(h11.EndOfMessage()))
        return wire.our_state is h11.DONE and wire.their_state is h11.DONE


async def _pause(stream: trio.abc.Stream, seconds: float) -> bool:
    """Wait, or notice that the client hung up; False when it did."""
    with trio.move_on_after(seconds):
        await stream.receive_some(1)
        return False
    return True


async def _pour(wire: h11.Connection, stream: trio.abc.Stream, feed: trio.MemoryReceiveChannel[bytes]) -> bool:
    """Send what comes out of `feed` until it is closed; False when the client hung up before."""
    is_whole = False

    async def watch() -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(1)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        async for data in feed:
            await stream.send_all(wire.send(h11.Data(data=data)))
        is_whole = True
        nursery.cancel_scope.cancel()
    return is_whole


@asynccontextmanager
async def open_peer(script: Script):
    """Run a peer on a free loopback port; on exit every connection is closed."""
    peer = HttpPeer(script)

    async def live(task_status):
        with peer._life:
            await trio.serve_tcp(peer.serve, 0, host="127.0.0.1", task_status=task_status)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(live)
        peer.port = listeners[0].socket.getsockname()[1]
        try:
            yield peer
        finally:
            nursery.cancel_scope.cancel()
