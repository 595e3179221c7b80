"""Servers that repeat what they were given to know us by, in messages of JSON-RPC, over every transport."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import trio
import trio_websocket

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget, TransportName
from mcp_actors.errors import McpActorsError
from mcp_actors.runtime import open_runtime
from tests.transports.http_peer import Reply, json_reply, open_peer

SECRET = "tok/s3cret+x"
HEADERS = {"Authorization": f"Bearer {SECRET}"}

# A whole server, which answers one message of which it repeats a text in one way. Runs as a child as well.
SERVER = """
import json

def answer(message, said, way):
    method, known = message.get("method"), message.get("id")
    head = {"jsonrpc": "2.0", "id": known}
    if known is None:
        return []
    if way == "handshake" and method == "initialize" or way == "call" and method == "tools/call":
        return [{**head, "error": {"code": -32000, "message": f"bad {said}", "data": {"why": said}}}]
    if way == "list" and method == "tools/list":
        return [{**head, "error": {"code": -32000, "message": f"bad {said}"}}]
    if method == "tools/call" and way == "no code":
        return [{**head, "error": {"message": said}}]
    if method == "tools/call" and way == "odd":
        return [{"jsonrpc": "2.0", "method": f"notifications/{said}"}, {"jsonrpc": "2.0", "id": said, "result": {}},
                {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": said}}, {**head, "result": said}]
    if method == "tools/call" and way == "result":
        return [{**head, "result": {"content": [{"type": "text", "text": said}], "isError": True}}]
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "e"}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
        "ping": {},
    }
    if method in results:
        return [{**head, "result": results[method]}]
    return [{**head, "error": {"code": -32601, "message": "unknown"}}]
"""
CHILD = (
    SERVER
    + """
import os, sys
for line in sys.stdin:
    for message in answer(json.loads(line), os.environ.get("API_TOKEN") or sys.argv[-1], os.environ["WAY"]):
        print(json.dumps(message), flush=True)
"""
)
names: dict = {}
exec(SERVER, names)
answer = names["answer"]


@asynccontextmanager
async def over_stdio(way):
    yield StdioTarget(sys.executable, ("-c", CHILD), {"API_TOKEN": SECRET, "WAY": way})


@asynccontextmanager
async def over_stdio_with_arguments(way):
    yield StdioTarget(sys.executable, ("-c", CHILD, "--api-key", SECRET), {"WAY": way})


@asynccontextmanager
async def over_http(way):
    def reply(asked):
        if asked.method != "POST":
            return Reply(405)
        found = answer(json.loads(asked.body), asked.headers["authorization"], way)
        if len(found) > 1:
            events = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in found]
            return Reply(200, [("Content-Type", "text/event-stream")], events)
        return json_reply(json.dumps(found[0]).encode()) if found else Reply(202)

    async with open_peer(reply) as peer:
        yield RemoteTarget(peer.url, headers=HEADERS)


@asynccontextmanager
async def over_websocket(way):
    async def serve(request):
        given = dict(request.headers)[b"authorization"].decode()
        socket = await request.accept(subprotocol="mcp")
        with suppress(trio_websocket.ConnectionClosed):
            while True:
                for message in answer(json.loads(await socket.get_message()), given, way):
                    await socket.send_message(json.dumps(message))

    async with trio.open_nursery() as nursery:
        listen = partial(trio_websocket.serve_websocket, serve, "127.0.0.1", 0, ssl_context=None)
        server = await nursery.start(lambda task_status: listen(task_status=task_status))
        yield RemoteTarget(f"ws://127.0.0.1:{server.port}/", transport=TransportName.WS, headers=HEADERS)
        nursery.cancel_scope.cancel()


WIRES = [over_stdio, over_stdio_with_arguments, over_http, over_websocket]


@pytest.mark.parametrize("way", ["handshake", "list", "call", "no code", "odd"])
@pytest.mark.parametrize("wire", WIRES)
async def test_words_about_us_are_told_without_credentials(wire, way, caplog):
    """In no error, status, diagnostics or log stands what the server was given (fault 102, S352, S354, S414)."""
    caplog.set_level(logging.DEBUG, logger="mcp_actors")
    seen = ""

    with trio.fail_after(20):
        async with (
            wire(way) as target,
            open_runtime([ServerSpec("one", target)], settings=Settings()) as runtime,
        ):
            status = (await runtime.wait_ready())["one"]
            try:
                await runtime.call_tool("one.t", {})
            except McpActorsError as error:
                seen = f"{error} {error!r} {getattr(error, 'data', None)}"
            seen += f"{status} {runtime.snapshot}"

    assert "s3cret" not in seen + caplog.text
    assert "***" in seen + caplog.text


@pytest.mark.parametrize("wire", WIRES)
async def test_results_are_data_and_stay_as_they_were_sent(wire):
    """What a tool returns is for the caller, exactly, also where the tool says that it failed (S354)."""
    with trio.fail_after(20):
        async with wire("result") as target, open_runtime([ServerSpec("one", target)]) as runtime:
            await runtime.wait_ready()
            result = await runtime.call_tool("one.t", {})

    assert result.is_error
    assert SECRET in result.text


GARBAGE = [
    Reply(200, [("Content-Type", f"x/{SECRET}")], [b"?"]),
    Reply(401, [("WWW-Authenticate", f'Bearer error="x", error_description="{SECRET}"')]),
    Reply(200, [("Content-Type", "application/json"), ("Content-Encoding", "tok/s3cret+x")], [b"{}"]),
    Reply(307, [("Location", f"https://elsewhere.example/{SECRET}?{SECRET}")]),
    f"HTTP/1.1 200 OK\r\n{SECRET}\r\n\r\n".encode(),
    f"HTTP/{SECRET}\r\n\r\n".encode(),
    f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n{SECRET}\r\n".encode(),
]


@asynccontextmanager
async def says(reply):
    """A peer that answers each request with it: a `Reply`, or bytes that are no HTTP."""
    if isinstance(reply, Reply):
        async with open_peer(lambda _asked: reply) as peer:
            yield peer.url
        return

    async def serve(stream):
        with suppress(trio.BrokenResourceError):
            await stream.receive_some()
            await stream.send_all(reply)
            await stream.send_eof()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("transport", [TransportName.HTTP, TransportName.SSE, TransportName.WS])
@pytest.mark.parametrize("reply", GARBAGE, ids=range(len(GARBAGE)))
async def test_a_head_that_repeats_a_header_of_ours_is_not_quoted(reply, transport, caplog):
    """Content types, challenges, places to go to, and lines that are no HTTP at all (fault 102, S414)."""
    caplog.set_level(logging.DEBUG, logger="mcp_actors")

    with trio.fail_after(20):
        async with says(reply) as url:
            url = url.replace("http:", "ws:") if transport is TransportName.WS else url
            spec = ServerSpec("one", RemoteTarget(url, transport=transport, headers=HEADERS))
            async with open_runtime([spec], settings=Settings()) as runtime:
                status = (await runtime.wait_ready())["one"]
                seen = f"{status}"

    assert status.error
    assert "s3cret" not in seen + caplog.text
