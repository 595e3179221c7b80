"""The lines that a person types."""

from __future__ import annotations

import os

import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.cli.stdin_lines import StdinLines


async def test_lines_are_read_as_they_come():
    """Pieces become lines, several lines at once are kept, the last one may lack its end; then there are none."""
    reader, writer = os.pipe()
    lines = StdinLines(reader)
    read = []

    async def collect():
        while (line := await lines.read_line()) is not None:
            read.append(line)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        for piece in (b"fir", b"st\nsecond\r\nth", "ird \u00e4".encode()):
            os.write(writer, piece)
            await wait_all_tasks_blocked()
        os.close(writer)
    os.close(reader)

    assert read == ["first", "second", "third \u00e4"]


async def test_a_cancelled_read_swallows_nothing():
    """A dialog that closes leaves what is typed afterwards to the next one."""
    reader, writer = os.pipe()
    lines = StdinLines(reader)
    os.write(writer, b"half")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lines.read_line)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    os.write(writer, b" and half\n")

    assert await lines.read_line() == "half and half"
    os.close(reader)
    os.close(writer)
