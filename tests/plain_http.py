"""The plainest HTTP client there is, to test HTTP servers with: one connection, one exchange at a time."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import h11
import trio

META = "io.modelcontextprotocol/"
ENVELOPE = {
    META + "protocolVersion": "2026-07-28",
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "t", "version": "1"},
}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
POSTING = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Answer:
    """Status, headers (lower-case name -> value) and whole body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """Data of the server-sent events, decoded."""
        return events_of(self.body)


def events_of(body):
    blocks = [block for block in body.split(b"\n\n") if block.startswith(b"data: ")]
    return [json.loads(block.removeprefix(b"data: ")) for block in blocks]


class Wire:
    """One connection."""

    def __init__(self, stream):
        self.stream = stream
        self.conn = h11.Connection(h11.CLIENT)

    async def send(self, method, path="/mcp", body=b"", **headers):
        lines = {"host": "127.0.0.1", "content-length": str(len(body))}
        lines |= {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        self.conn.send(request := h11.Request(method=method, target=path, headers=list(lines.items())))
        fresh = h11.Connection(h11.CLIENT)
        data = fresh.send(request) + (fresh.send(h11.Data(data=body)) or b"") + (fresh.send(h11.EndOfMessage()) or b"")
        self.conn.send(h11.Data(data=body))
        self.conn.send(h11.EndOfMessage())
        await self.stream.send_all(data)

    async def event(self):
        while (event := self.conn.next_event()) is h11.NEED_DATA:
            self.conn.receive_data(await self.stream.receive_some())
        return event

    async def head(self):
        event = await self.event()
        return event.status_code, {name.decode(): value.decode() for name, value in event.headers}

    async def part(self):
        """Next part of the body; None at its end."""
        event = await self.event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def read(self):
        status, headers = await self.head()
        body = b""
        while (part := await self.part()) is not None:
            body += part
        if self.conn.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            self.conn.start_next_cycle()
        return Answer(status, headers, body)

    async def ask(self, method, path="/mcp", body=b"", **headers):
        await self.send(method, path, body, **headers)
        return await self.read()

    async def send_message(self, message, path="/mcp", **headers):
        await self.send("POST", path, json.dumps(message).encode(), **{**POSTING, **headers})

    async def post(self, message, path="/mcp", **headers):
        await self.send_message(message, path, **headers)
        return await self.read()


@asynccontextmanager
async def open_wire(url):
    """A connection to the host and port of `url`."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        yield Wire(stream)


def request(method, params=None, request_id=1):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def modern(method, params=None, request_id=1, **meta):
    """A modern request and the headers that mirror it."""
    params = params or {}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
    if method in NAMED:
        headers["mcp_name"] = params.get(NAMED[method])
    return request(method, {**params, "_meta": {**ENVELOPE, **meta}}, request_id), headers


HELLO = request(
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    "hello",
)


async def greet(wire, path="/mcp"):
    """Initialize a legacy session; the headers of every later request."""
    answer = await wire.post(HELLO, path)
    headers = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
    assert (await wire.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, path, **headers)).status == 202
    return headers
