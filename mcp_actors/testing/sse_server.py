"""Owns the HTTP+SSE face of a scripted server, as the revision 2024-11-05 had it (spec_client 6).

What this is not: streamable HTTP (`http_server`).
"""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import trio

from mcp_actors.testing.http_doorway import HttpAnswer, Responder, open_http_doorway
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp_actors.testing.http_doorway import DoorwayLimits, HttpRequest, Stream
    from mcp_actors.testing.scripted import ScriptedServer

__all__ = ["open_sse_server"]

# Messages of a client that wait for the server.
CAPACITY: Final = 1000


@asynccontextmanager
async def open_sse_server(
    server: ScriptedServer, *, port: int = 0, endpoint: str = "/messages", limits: DoorwayLimits | None = None
) -> AsyncGenerator[str, None]:
    """Serve over HTTP+SSE on 127.0.0.1 for the time of the block; yields the URL of the event stream.

    `endpoint` is announced as it is, with the session in its query: a test may announce a foreign one. The server
    should speak legacy revisions only.
    """
    sessions: dict[str, trio.MemorySendChannel[bytes]] = {}

    def decide(request: HttpRequest) -> HttpAnswer | Stream:
        if request.path == "/sse":
            return stream if request.method == "GET" else HttpAnswer(405, headers=(("allow", "GET"),))
        if request.method != "POST" or request.path != "/messages":
            return HttpAnswer(404)
        channel = sessions.get(parse_qs(request.query).get("session_id", [""])[0])
        if channel is None:
            return HttpAnswer(404)
        try:
            channel.send_nowait(request.body)
        except trio.WouldBlock:
            return HttpAnswer(503)
        return HttpAnswer(202)

    async def stream(responder: Responder) -> None:
        session_id = secrets.token_hex(16)
        sessions[session_id], incoming = trio.open_memory_channel[bytes](CAPACITY)
        try:
            await responder.raw_event(
                b"event: endpoint\ndata: %s?session_id=%s\n\n" % (_bytes(endpoint), _bytes(session_id))
            )
            await server.serve(_SseLink(responder, incoming))
            responder.abort()
        finally:
            sessions.pop(session_id).close()

    async with open_http_doorway(decide, port=port, limits=limits) as bound:
        yield f"http://127.0.0.1:{bound}/sse"


@define(eq=False)
class _SseLink:
    """One event stream out, POSTs in."""

    responder: Responder
    incoming: trio.MemoryReceiveChannel[bytes]

    async def receive(self) -> bytes:
        return await self.incoming.receive()

    async def send(self, data: bytes) -> None:
        await self.responder.raw_event(b"event: message\ndata: " + data + b"\n\n")


def _bytes(text: str) -> bytes:
    return text.encode("ascii")
