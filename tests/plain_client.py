"""The plainest MCP client there is, to test servers with: it shares no code with the real one."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import trio

from mcp_actors.testing.words import META
from mcp_actors.transports.memory import open_links

ENVELOPE = {
    META + "protocolVersion": "2026-07-28",
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "t", "version": "1"},
}


class Client:
    """The plainest client there is: it writes what it is told and reads what comes."""

    def __init__(self, link, *, is_modern=False):
        self.link = link
        self.is_modern = is_modern
        self.sent = 0

    async def write(self, method, params=None, **members):
        message = {"jsonrpc": "2.0", "method": method, **members}
        if params is not None:
            message["params"] = params
        await self.link.send(json.dumps(message).encode())

    async def ask(self, method, params=None, **meta):
        """Write a request; its id."""
        self.sent += 1
        envelope = {**(ENVELOPE if self.is_modern else {}), **meta}
        params = {**(params or {}), "_meta": envelope} if envelope else params
        await self.write(method, params, id=self.sent)
        return self.sent

    async def read(self):
        return json.loads(await self.link.receive())

    async def call(self, method, params=None, **meta):
        """A request and the next message, which must answer it: the result or the error."""
        request_id = await self.ask(method, params, **meta)
        answer = await self.read()
        assert request_id == answer["id"]
        return answer.get("result", answer.get("error"))

    async def greet(self):
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        await self.call("initialize", hello)
        await self.write("notifications/initialized")


@asynccontextmanager
async def connected(server, *, is_modern=False):
    """A client of `server` over a memory link; a legacy one has said hello."""
    near, far = open_links()
    async with trio.open_nursery() as nursery:

        async def serve():
            await server.serve(far)
            far.close()

        nursery.start_soon(serve)
        client = Client(near, is_modern=is_modern)
        if not is_modern:
            await client.greet()
        yield client
        near.close()


def text_of(result):
    """The text of a result with one content."""
    [content] = result["content"]
    return content["text"]
