"""`outbox`: frames go out whole, few writes, no waiting without need."""

from __future__ import annotations

import contextlib
import os

import pytest
import trio
from trio.lowlevel import current_task
from trio.testing import wait_all_tasks_blocked

from mcp_actors.transports.outbox import Outbox


class Pipe:
    """A pipe with an outbox on one end, read by the test on the other."""

    def __init__(self, nursery) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(self.reader, False)
        self.asked = 0
        self.nursery = nursery
        self.outbox = Outbox()
        self.outbox.begin(writer, self.ask)

    def ask(self) -> None:
        self.asked += 1
        self.nursery.start_soon(self.flush)

    async def flush(self) -> None:
        waits = True
        while waits:
            await trio.lowlevel.wait_writable(self.outbox.fd)
            waits = self.outbox.flush()

    def read(self, size=1 << 20) -> bytes:
        try:
            return os.read(self.reader, size)
        except BlockingIOError:
            return b""

    async def read_all(self, count) -> bytes:
        data = b""
        while len(data) < count:
            await trio.lowlevel.wait_readable(self.reader)
            data += os.read(self.reader, 1 << 20)
        return data

    def close(self) -> None:
        self.outbox.close()
        for fd in (self.reader, self.outbox.fd):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture
async def pipe(nursery):
    pipe = Pipe(nursery)
    yield pipe
    pipe.close()
    nursery.cancel_scope.cancel()


class Steps(trio.abc.Instrument):
    """Counts the steps of one task."""

    def __init__(self) -> None:
        self.task, self.count = current_task(), 0

    def before_task_step(self, task) -> None:
        self.count += task is self.task


async def test_quiet_wire_is_written_without_a_checkpoint(pipe) -> None:
    """The first frame, and each after an answer, is in the pipe when `put` returns; no other task ran."""
    steps = Steps()
    trio.lowlevel.add_instrument(steps)

    for n in range(5):
        assert await pipe.outbox.put(b"%d\n" % n)
        assert pipe.read() == b"%d\n" % n
        pipe.outbox.heard()

    trio.lowlevel.remove_instrument(steps)
    assert (steps.count, pipe.asked) == (0, 0)


async def test_burst_becomes_one_write(pipe) -> None:
    """What many senders of one turn send while nothing was heard goes out in one write, in order."""
    for n in range(64):
        await pipe.outbox.put(b"%d\n" % n)
    at_once = pipe.read()
    await wait_all_tasks_blocked()

    assert at_once == b"0\n1\n"
    assert pipe.read() == b"".join(b"%d\n" % n for n in range(2, 64))
    assert (pipe.outbox.flush(), pipe.asked) == (False, 1)


async def test_large_frame_goes_out_whole(pipe) -> None:
    """A frame that does not fit is finished by the writer, and what follows waits its turn."""
    large = b"x" * 3_000_000 + b"\n"

    assert not pipe.outbox.is_full
    assert await pipe.outbox.put(large)
    assert pipe.outbox.is_full
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.outbox.put, b"y\n")
        data = await pipe.read_all(len(large) + 2)

    assert data == large + b"y\n"
    assert not pipe.outbox.is_full


async def test_senders_wait_for_room(pipe) -> None:
    """Beyond the bound a sender waits, and goes on when the peer has read (fault 18)."""
    sent = []

    async def sender(n):
        assert await pipe.outbox.put(bytes([65 + n]) * 400_000 + b"\n")
        sent.append(n)

    async with trio.open_nursery() as nursery:
        for n in range(8):
            nursery.start_soon(sender, n)
        await wait_all_tasks_blocked()
        held = len(sent)
        data = await pipe.read_all(8 * 400_001)

    assert held < 8
    assert len(sent) == 8
    assert sorted(line[:1] for line in data.split(b"\n")[:-1]) == [bytes([65 + n]) for n in range(8)]
    assert {len(line) for line in data.split(b"\n")[:-1]} == {400_000}


async def test_cancelled_sender_tears_nothing(pipe) -> None:
    """A sender cancelled while it waits for room sent nothing; every frame in the pipe is whole."""
    line = b"x" * 700_000 + b"\n"
    for _ in range(2):
        await pipe.outbox.put(line)

    with trio.move_on_after(0.01) as scope:
        await pipe.outbox.put(b"never\n")
    data = await pipe.read_all(2 * len(line))
    await wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert data + pipe.read() == 2 * line


async def test_closed_peer_is_told_once_to_each(pipe) -> None:
    """Nobody waits for a reader that is gone: waiting and later senders learn it."""
    answers = []

    async def sender():
        answers.append(await pipe.outbox.put(b"x" * 800_000 + b"\n"))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(sender)
        await wait_all_tasks_blocked()
        os.close(pipe.reader)

    assert await pipe.outbox.put(b"late\n") is False
    assert answers.count(False) >= 1
    assert len(answers) == 6
    assert pipe.outbox.is_broken


async def test_direct_write_to_a_closed_peer(pipe) -> None:
    """The hot path learns it too, without raising, and has its owner learn it."""
    os.close(pipe.reader)

    assert await pipe.outbox.put(b"x\n") is False
    assert (pipe.outbox.is_broken, pipe.asked) == (True, 1)
    assert await pipe.outbox.put(b"x\n") is False
    assert pipe.outbox.flush() is False


async def test_close_sends_what_fits_in_order(pipe) -> None:
    """Closing flushes what the pipe takes at once and refuses what comes later."""
    for n in range(5):
        await pipe.outbox.put(b"%d\n" % n)

    pipe.outbox.close()

    assert pipe.read() == b"0\n1\n2\n3\n4\n"
    assert await pipe.outbox.put(b"x\n") is False


async def test_close_after_a_cancelled_writer_keeps_the_order() -> None:
    """A writer that was cancelled inside a frame leaves its rest first in line."""
    line = bytes(range(65, 91)) * 40_000 + b"\n"
    async with trio.open_nursery() as nursery:
        pipe = Pipe(nursery)
        await pipe.outbox.put(line)
        await wait_all_tasks_blocked()
        await pipe.outbox.put(b"next\n")
        nursery.cancel_scope.cancel()

    data = pipe.read()
    pipe.outbox.close()
    data += pipe.read()
    pipe.close()

    assert len(data) > 65536
    assert line.startswith(data)


async def test_what_is_put_before_there_is_a_pipe_goes_out_first(nursery) -> None:
    """Frames are kept in order until the outbox begins; what the pipe does not take at once is asked for (rule 1)."""
    pipe = Pipe(nursery)
    writer, pipe.outbox = pipe.outbox.fd, Outbox()
    big = b"x" * 100_000 + b"\n"
    with trio.fail_after(10):
        assert await pipe.outbox.put(b"a\n")
        assert await pipe.outbox.put(big)
        assert pipe.asked == 0

        pipe.outbox.begin(writer, pipe.ask)
        assert pipe.asked == 1
        assert await pipe.outbox.put(b"b\n")

        assert await pipe.read_all(len(big) + 4) == b"a\n" + big + b"b\n"
    pipe.close()


async def test_a_pipe_that_is_broken_at_the_beginning_is_told_of(nursery) -> None:
    """Who begins with a pipe whose other end is closed is asked for a flush, by which its owner learns that."""
    asked = []
    outbox = Outbox()
    reader, writer = os.pipe()
    os.close(reader)
    assert await outbox.put(b"a\n")

    outbox.begin(writer, lambda: asked.append(True))

    assert (asked, outbox.is_broken, outbox.flush()) == ([True], True, False)
    assert not await outbox.put(b"b\n")
    os.close(writer)
