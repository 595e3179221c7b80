"""The lines that a person types."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.cli.stdin_lines import MAX_LINE_BYTES, StdinLines

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize("text", [b"", b"one\ntwo\n"])
async def test_what_is_no_terminal_is_read_to_its_end(tmp_path: Path, text: bytes):
    """A file or /dev/null as standard input cannot be waited for, and ends like any other."""
    path = tmp_path / "in"
    path.write_bytes(text)
    fd = os.open(path if text else os.devnull, os.O_RDONLY)
    lines = StdinLines(fd)

    assert [await lines.read_line() for _ in range(3)] == ([*text.decode().split(), None] if text else [None] * 3)
    os.close(fd)


async def test_a_line_without_end_ends_the_input(tmp_path: Path):
    """Invariant 5: what is poured in without a line end is given up, and not kept."""
    path = tmp_path / "in"
    path.write_bytes(b"x" * 10 * MAX_LINE_BYTES)
    fd = os.open(path, os.O_RDONLY)
    lines = StdinLines(fd)

    first = await lines.read_line()

    assert first is not None
    assert len(first) < 2 * MAX_LINE_BYTES
    assert await lines.read_line() is None
    os.close(fd)
