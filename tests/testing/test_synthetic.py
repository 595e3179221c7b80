"""The servers of the storm start, list and answer over each transport."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio
from plain_client import connected, text_of
from plain_http import modern, open_wire

from mcp_actors.config.specs import EraChoice, InProcessTarget, RemoteTarget, StdioTarget
from mcp_actors.testing.stdio_server import synthetic_tools
from mcp_actors.testing.synthetic import (
    http_command,
    memory_specs,
    remote_specs,
    stdio_specs,
    synthetic_command,
    synthetic_server,
)


@pytest.mark.parametrize(("era", "choice"), [("both", "auto"), ("legacy", "legacy"), ("modern", "modern")])
def test_specs_name_their_servers_and_pin_their_era(era, choice):
    """Each transport has N specs with names of their own; a server of one era is pinned to it."""
    kinds = {
        StdioTarget: stdio_specs(3, era=era, tools=5),
        RemoteTarget: remote_specs(3, "http://127.0.0.1:1/m", era=era),
        InProcessTarget: memory_specs(3, era=era),
    }

    for kind, specs in kinds.items():
        assert [spec.name for spec in specs] == ["s000", "s001", "s002"]
        assert {type(spec.target) for spec in specs} == {kind}
        assert {spec.era for spec in specs} == {EraChoice(choice)}
    assert kinds[RemoteTarget][2].target.url == "http://127.0.0.1:1/m/2"
    assert kinds[StdioTarget][0].target.args[-4:] == ("--era", era, "--tools", "5")


def test_command_turns_options_into_words():
    """Options become `--name value`, underscores dashes."""
    command, args = synthetic_command(start_delay=0.5, tools=2)

    assert command == sys.executable
    assert args[-4:] == ("--start-delay", "0.5", "--tools", "2")


async def test_scripted_synthetic_server_has_the_same_tools(autojump_clock):
    """Memory and HTTP offer what the process offers, progress and pauses included; `die` ends the wire, not us."""
    server = synthetic_server(12)
    async with connected(server) as client:
        listed = (await client.call("tools/list"))["tools"]
        assert [tool["name"] for tool in listed] == list(synthetic_tools(12))
        assert text_of(await client.call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})) == "3"
        start = trio.current_time()
        assert text_of(await client.call("tools/call", {"name": "sleep", "arguments": {"seconds": 9}})) == "slept"
        assert trio.current_time() - start == 9
        await client.ask("tools/call", {"name": "progress", "arguments": {"steps": 2}}, progressToken="p")
        assert [(await client.read())["params"]["progress"] for _ in range(2)] == [1, 2]
        assert text_of((await client.read())["result"]) == "done"
        await client.ask("tools/call", {"name": "die", "arguments": {"status": 1}})
        with pytest.raises(trio.EndOfChannel):
            await client.read()


@pytest.mark.slow
async def test_http_process_serves_many_and_ends_with_its_input():
    """It prints its port first, serves as many as ordered, and exits with 0 at end-of-file."""
    command, args = http_command(2, tools=3, answers="json")
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(_started, [command, *args])
            port = int(await process.stdout.receive_some())
            async with open_wire(f"http://127.0.0.1:{port}") as wire:
                message, headers = modern("tools/list")
                statuses = [(await wire.post(message, f"/m/{number}", **headers)).status for number in range(3)]
            await process.stdin.aclose()

            assert await process.wait() == 0

    assert statuses == [200, 200, 404]


async def _started(command, task_status):
    await trio.run_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, task_status=task_status)
