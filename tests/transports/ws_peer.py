"""WebSocket servers without a network: the peer end of a memory stream, so that time may be virtual."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress

import trio
import trio_websocket
from attrs import define, field
from trio.testing import memory_stream_pair


@define(eq=False)
class WsPeer:
    """Dials memory streams and serves each with `handler`, or with `raw` below WebSocket."""

    nursery: trio.Nursery
    handler: object = None
    raw: object = None
    # What is put around the peer's end of each stream, and where streams come from.
    wrap: object = None
    make_pair: object = memory_stream_pair
    subprotocol: str | None = "mcp"
    # The handshakes that came: path, headers (name -> value), proposed subprotocols.
    asked: list = field(factory=list)
    # The connections, and their streams.
    sockets: list = field(factory=list)
    streams: list = field(factory=list)
    # Messages received, oldest first.
    received: list = field(factory=list)

    async def dial(self, url, *, environ=None):
        ours, theirs = self.make_pair()
        self.streams.append(theirs)
        self.nursery.start_soon(self.raw or self.serve, theirs if self.wrap is None else self.wrap(theirs))
        return ours

    async def serve(self, stream):
        async with trio.open_nursery() as nursery:
            request = await trio_websocket.wrap_server_stream(nursery, stream, max_message_size=2**30)
            headers = {name.decode().lower(): value.decode() for name, value in request.headers}
            self.asked.append((request.path, headers, request.proposed_subprotocols))
            socket = await request.accept(subprotocol=self.subprotocol)
            self.sockets.append(socket)
            with suppress(trio_websocket.ConnectionClosed):
                await (self.handler or self.echo)(socket)

    async def echo(self, socket):
        while True:
            message = await socket.get_message()
            self.received.append(message)
            await socket.send_message(message)


@asynccontextmanager
async def open_ws_peer(**options):
    async with trio.open_nursery() as nursery:
        yield WsPeer(nursery, **options)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_ws_server():
    """An echo server on a loopback port; yields its URL and what ends it."""
    life = trio.CancelScope()

    async def handle(request):
        socket = await request.accept(subprotocol="mcp")
        with suppress(trio_websocket.ConnectionClosed):
            while True:
                await socket.send_message(await socket.get_message())

    async def live(task_status):
        with life:
            await trio_websocket.serve_websocket(
                handle, "127.0.0.1", 0, ssl_context=None, max_message_size=2**30, task_status=task_status
            )

    async with trio.open_nursery() as nursery:
        server = await nursery.start(live)
        yield f"ws://127.0.0.1:{server.port}/mcp", life.cancel
        nursery.cancel_scope.cancel()
