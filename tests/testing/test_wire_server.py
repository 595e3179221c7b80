"""A scripted server runs as a process that speaks lines, and ends as its script says."""

from __future__ import annotations

import json
import sys

import pytest
import trio
from trio.testing import memory_stream_pair

from mcp_actors.testing.wire_server import StdioLink

PROGRAM = """
from mcp_actors.testing import ScriptedServer

server = ScriptedServer("child", instructions="hi")
server.add_tool("echo", lambda call: call["text"])
server.die_on("ping", status=7)
other = ScriptedServer("other")
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def run(path, messages, *words):
    path.write_text(PROGRAM)
    text = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    command = [sys.executable, "-m", "mcp_actors.testing.wire_server", str(path), *words]
    with trio.fail_after(20):
        done = await trio.run_process(command, stdin=text, capture_stdout=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "name"), [((), "child"), (("other",), "other")])
async def test_process_serves_what_the_file_names(tmp_path, words, name):
    """The server called `server`, or as ordered, is served until end-of-file; the status is 0."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}

    status, [answer] = await run(tmp_path / "program.py", [hello], *words)

    assert (0, name) == (status, answer["result"]["serverInfo"]["name"])


@pytest.mark.slow
async def test_process_dies_as_scripted(tmp_path):
    """`die_on` ends the process with its status and without an answer."""
    status, answers = await run(tmp_path / "program.py", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}])

    assert (status, answers) == (7, [])


async def test_link_gives_lines_whatever_the_chunks(autojump_clock):
    """Lines are received whole, blank ones skipped, and the end is the end of the channel."""
    near, far = memory_stream_pair()
    link = StdioLink(far, far)

    for byte in b"one\n\n\r\ntwo\r\nthree":
        await near.send_all(bytes([byte]))
    await near.send_eof()

    assert [await link.receive(), await link.receive()] == [b"one", b"two"]
    with pytest.raises(trio.EndOfChannel):
        await link.receive()


async def test_link_writes_one_line_for_each_message(autojump_clock):
    """Each message leaves with exactly one line feed."""
    near, far = memory_stream_pair()
    link = StdioLink(far, far)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(link.send, b"%d" % number)
    await far.send_eof()
    received = b"".join([chunk async for chunk in near])

    assert set(range(20)) == {int(line) for line in received.splitlines()}
