"""WebSocket against an implementation of others, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import AuthRequired, TransportBroken
from mcp_actors.protocol.types import Frame
from mcp_actors.testing.contracts import CHECKS, RecordingSink, echo_frame
from mcp_actors.transports.websocket import WebSocketTransport

pytest.importorskip("websockets")

SCRIPT = Path(__file__).parent / "children" / "websocket_echo.py"


@asynccontextmanager
async def open_server():
    """Run the echo server; yields its port, its process and a function that reads a line of what it saw."""
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            child = await nursery.start(
                partial(
                    trio.run_process,
                    [sys.executable, str(SCRIPT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    check=False,
                )
            )
            lines = Lines(child.stdout)
            yield int(await lines.next()), child, lines
            await child.stdin.aclose()


class Lines:
    """Lines of a stream, one by one."""

    def __init__(self, stream):
        self.stream, self.rest = stream, b""

    async def next(self):
        while b"\n" not in self.rest:
            self.rest += await self.stream.receive_some()
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()


@asynccontextmanager
async def open_pair(path="/mcp"):
    async with open_server() as (port, child, lines):
        target = RemoteTarget(f"ws://127.0.0.1:{port}{path}", transport=TransportName.WS, headers={"X-Team": "blue"})
        yield Pair(WebSocketTransport(ServerSpec("s", target), Settings()), child, lines)


class Pair:
    def __init__(self, transport, child, lines):
        self.transport, self.child, self.lines = transport, child, lines

    async def end_peer(self):
        self.child.kill()


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_contract(check):
    """The transport keeps every clause of the contract with a server that shares no code with it."""
    with trio.fail_after(30):
        await check(open_pair)


@pytest.mark.slow
async def test_handshake():
    """The other side sees path, query, subprotocol and headers (S084)."""
    async with open_pair("/mcp?k=1") as pair, trio.open_nursery() as nursery:
        await nursery.start(pair.transport.run, RecordingSink())

        assert await pair.lines.next() == "/mcp?k=1 mcp blue"
        assert pair.transport.diagnostics().notes == ()
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_locked():
    """A 401 of the other side asks for credentials (S085)."""
    async with open_pair("/locked") as pair:
        with pytest.raises(AuthRequired, match="HTTP 401"):
            await pair.transport.run(RecordingSink())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "words"), [(b'"close"', "4001 PRIVATE_RESERVED: as you wish"), (b'"binary"', "binary frame")]
)
async def test_ends(said, words):
    """The other side's close and its binary frame break the wire, and say why."""
    async with open_pair() as pair:
        sink, ended = RecordingSink(), []

        async def serve(task_status):
            with pytest.raises(TransportBroken) as caught:
                await pair.transport.run(sink, task_status=task_status)
            ended.append(str(caught.value))

        async with trio.open_nursery() as nursery:
            await nursery.start(serve)
            await pair.transport.send(Frame(said))

        assert words in ended[0]


@pytest.mark.slow
async def test_pieces_and_bulk():
    """A fragmented message, ten megabytes and five thousand small messages arrive whole and in order."""
    async with open_pair() as pair:
        sink = RecordingSink()
        async with trio.open_nursery() as nursery:
            await nursery.start(lambda task_status: pair.transport.run(sink, task_status=task_status))
            await pair.transport.send(Frame(b'"pieces"'))
            large = echo_frame(0, "z" * 10_000_000)
            await pair.transport.send(large)
            small = [echo_frame(number) for number in range(1, 5001)]
            for frame in small:
                await pair.transport.send(frame)
            await sink.until(lambda sink: len(sink.delivered) == 5002)
            nursery.cancel_scope.cancel()

        assert sink.delivered == [b'{"a":1}', large.data, *(frame.data for frame in small)]
