"""The HTTP+SSE face announces its endpoint, takes messages there and answers on the stream."""

from __future__ import annotations

import json

import pytest
import trio
from plain_http import HELLO, POSTING, open_wire, request

from mcp_actors.testing.scripted import LEGACY_REVISIONS, ScriptedServer
from mcp_actors.testing.sse_server import open_sse_server
from mcp_actors.testing.synthetic import synthetic_server


async def opened(stream):
    """The announced endpoint of a new event stream."""
    await stream.send("GET", "/sse", accept="text/event-stream")
    assert (await stream.head())[0] == 200
    name, data = (await stream.part()).decode().splitlines()[:2]
    assert name == "event: endpoint"
    return data.removeprefix("data: ")


async def message(stream):
    return json.loads((await stream.part()).removeprefix(b"event: message\ndata: "))


async def test_conversation_goes_over_stream_and_posts():
    """POSTs are 202 and their answers come on the stream; a second client has its own."""
    server = synthetic_server(era="legacy")
    with trio.fail_after(10):
        async with open_sse_server(server) as url, open_wire(url) as stream, open_wire(url) as posts:
            async with open_wire(url) as second:
                endpoint = await opened(stream)
                assert endpoint != await opened(second)
                assert (await posts.post(HELLO, endpoint)).status == 202
                assert (await message(stream))["result"]["protocolVersion"] == "2025-11-25"
                await posts.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, endpoint)
                await posts.post(request("tools/list"), endpoint)
                assert len((await message(stream))["result"]["tools"]) == 10
                assert len(server.clients) == 2

    assert (server.violations, server.clients) == ([], [])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/sse", 405),
        ("GET", "/messages", 404),
        ("POST", "/messages", 404),
        ("POST", "/messages?session_id=x", 404),
    ],
)
async def test_other_exchanges_are_refused(method, path, status):
    """A POST to the stream's URL is 405, which tells a client to fall back to this transport (spec_client 6)."""
    with trio.fail_after(10):
        async with open_sse_server(ScriptedServer()) as url, open_wire(url) as wire:
            assert status == (await wire.ask(method, path, b"", **POSTING)).status


async def test_scripted_death_ends_the_stream():
    """`die_on` and `hang_up` drop the event stream, and its endpoint is gone."""
    server = ScriptedServer(revisions=LEGACY_REVISIONS)
    server.die_on("ping")
    with trio.fail_after(10):
        async with open_sse_server(server) as url, open_wire(url) as posts:
            for end in ("die", "hang up"):
                async with open_wire(url) as stream:
                    endpoint = await opened(stream)
                    await posts.post(HELLO, endpoint)
                    assert (await message(stream))["id"] == "hello"
                    if end == "die":
                        await posts.post(request("ping"), endpoint)
                    else:
                        server.hang_up()
                    while await stream.stream.receive_some():
                        pass
                    assert (await posts.post(request("ping"), endpoint)).status == 404
