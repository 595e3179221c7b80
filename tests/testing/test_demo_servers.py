"""The demo's fleet is complete: every server has a call, and every call works."""

from __future__ import annotations

import json

import trio
from plain_client import connected, text_of

from mcp_actors.config.specs import InProcessTarget, RemoteTarget, RestartType, StdioTarget
from mcp_actors.testing.demo_servers import DEMO_CALLS, calculator_server, demo_specs, library_server

CALLS = {call.server: call for call in DEMO_CALLS}


def test_fleet_shows_every_kind_of_server():
    """Three programs, one remote and one in this process, each with one call."""
    specs = demo_specs("http://127.0.0.1:1/mcp")

    kinds = [type(spec.target) for spec in specs]
    assert kinds == [StdioTarget, StdioTarget, StdioTarget, RemoteTarget, InProcessTarget]
    assert [spec.name for spec in specs] == list(CALLS)
    assert {spec.restart for spec in specs[:3]} == {RestartType.PERMANENT}


async def test_calls_on_scripted_servers_work(autojump_clock):
    """The library finds its book, with progress; the calculator adds."""
    async with connected(library_server()) as client:
        await client.ask("tools/call", {"name": "find_book", "arguments": CALLS["library"].arguments}, progressToken=1)
        reports = [await client.read() for _ in range(4)]
        found = text_of((await client.read())["result"])
    async with connected(calculator_server()) as client:
        total = text_of(await client.call("tools/call", {"name": "sum", "arguments": CALLS["calculator"].arguments}))

    assert [report["params"]["progress"] for report in reports] == [1, 2, 3, 4]
    assert "The Old Man and the Sea" in found
    assert total == "6.5"


async def test_calls_on_programs_work():
    """Each program starts by its spec and answers its call."""
    for spec in demo_specs("http://127.0.0.1:1/mcp")[:3]:
        params = {"name": CALLS[spec.name].tool, "arguments": CALLS[spec.name].arguments}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        with trio.fail_after(10):
            done = await trio.run_process(
                [spec.target.command, *spec.target.args], stdin=json.dumps(call).encode() + b"\n", capture_stdout=True
            )

        assert not json.loads(done.stdout)["result"].get("isError"), spec.name
