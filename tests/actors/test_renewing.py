"""A wire session that the server forgot, and a person who has to sign in again before there is another one."""

from __future__ import annotations

import trio
import trio.testing
from scripted_fleet import echo_server, spec

from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.types import Refusal
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS
from tests.actors.played_wire import PlayedWire

WELCOME = {
    "protocolVersion": LEGACY_REVISIONS[0],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "n", "version": "1"},
}
FORGOTTEN = {"code": -32001, "message": "Session not found"}
# Longer than a renewal and a call may take.
THOUGHT = 50.0


async def test_a_person_who_signs_in_meanwhile_takes_no_time_of_it(autojump_clock):
    """S202, S205: the renewal waits, and so do the call that learned of the loss and one that came later."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    begun: list[str] = []
    done: list[str] = []

    async def initialize(message):
        begun.append("session")
        if len(begun) == 1:
            return None
        with connection.paused():
            await trio.sleep(THOUGHT)
        return WELCOME

    async def call_tool(message):
        if len(begun) > 1:
            return {"content": []}
        body = encode({"jsonrpc": "2.0", "id": message["id"], "error": FORGOTTEN})
        return Refusal(404, body=body, had_session=True, content_type="application/json")

    async def call(name):
        await runtime.call_tool("mcp__one__echo", {"text": name}, timeout=10)
        done.append(name)

    wire = PlayedWire("http", server, {"tools/call": call_tool, "initialize": initialize})
    async with open_runtime([spec("one", server)], transports=lambda _: wire) as runtime:
        await runtime.wait_ready()
        connection = await runtime.connection("one")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "first")
            # Between the loss and the moment that a person is asked.
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(call, "later")

    assert sorted(done) == ["first", "later"]
    assert begun == ["session", "session"]
