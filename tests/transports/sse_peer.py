"""An HTTP+SSE server on the scripted peer: one event stream, whose words the test says, and POSTs that are echoed."""

from __future__ import annotations

from contextlib import asynccontextmanager

import trio
from attrs import define, field

from tests.transports.http_peer import HttpPeer, Reply, event, open_peer, sse_reply

ENDPOINT = b"/messages?sid=1"


def endpoint_event(data: bytes = ENDPOINT) -> bytes:
    return event(data, "endpoint")


@define(eq=False)
class SsePeer:
    """The server while it runs. GET opens the stream; what is posted comes back over it."""

    peer: HttpPeer = field(init=False)
    # What a GET gives before anything else.
    opening: tuple[bytes, ...] = (endpoint_event(),)
    # What a POST is answered with, and whether its body is echoed.
    receipt: Reply = field(factory=lambda: Reply(202))
    echoes: bool = True
    # Feeds of the streams so far.
    feeds: list[trio.MemorySendChannel[bytes]] = field(factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.peer.port}/sse?k=1"

    def script(self, asked):
        if asked.method == "GET":
            feed, pouring = trio.open_memory_channel[bytes](1000)
            self.feeds.append(feed)
            return sse_reply(*self.opening, pouring)
        if self.echoes and self.receipt.status < 300:
            self.feeds[-1].send_nowait(event(asked.body))
        return self.receipt

    def say(self, data: bytes) -> None:
        self.feeds[-1].send_nowait(data)

    def end_stream(self) -> None:
        self.feeds[-1].close()


@asynccontextmanager
async def open_sse_peer(**options):
    server = SsePeer(**options)
    async with open_peer(server.script) as server.peer:
        yield server
