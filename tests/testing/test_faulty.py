"""Every fault of the faulty wire, on virtual time over the memory transport."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from mcp_actors.errors import TransportBroken, TransportClosed
from mcp_actors.protocol.types import Refusal
from mcp_actors.testing.contracts import RecordingSink, echo_frame
from mcp_actors.testing.faulty import FaultyTransport
from mcp_actors.transports.base import Diagnostics
from mcp_actors.transports.memory import MemoryTransport


async def echo(link):
    while True:
        try:
            await link.send(await link.receive())
        except trio.EndOfChannel:
            return


@asynccontextmanager
async def open_wire(serve=echo):
    wire, sink, ends = FaultyTransport(MemoryTransport(serve)), RecordingSink(), []

    async def run(task_status):
        try:
            await wire.run(sink, task_status=task_status)
        except TransportBroken as exc:
            ends.append(exc)

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        yield wire, sink, ends
        nursery.cancel_scope.cancel()


async def settle(seconds=0.0):
    with trio.move_on_after(seconds):
        await trio.sleep_forever()
    await trio.testing.wait_all_tasks_blocked()


async def test_counts(autojump_clock):
    """The wire counts frames both ways and shows them."""
    async with open_wire() as (wire, sink, _):
        for number in range(3):
            await wire.send(echo_frame(number))
        await sink.until(lambda sink: len(sink.delivered) == 3)

        assert (wire.frames_sent, wire.frames_received) == (3, 3)
        assert repr(wire) == "<FaultyTransport <MemoryTransport open> | 3 sent, 3 received>"


@pytest.mark.parametrize("frames", range(6))
async def test_cut_after(frames, autojump_clock):
    """The wire breaks right after the n-th frame of either direction, for every n; nothing passes afterwards."""
    async with open_wire() as (wire, sink, ends):
        with wire.cut_after(frames=frames):
            for number in range(4):
                try:
                    await wire.send(echo_frame(number))
                except TransportBroken:
                    break
                await settle()
        await settle()

        assert [str(end) for end in ends] == [str(end) for end in sink.endings] == ["the wire was cut by the test"]
        assert wire.frames_sent + wire.frames_received <= frames + 1
        assert len(sink.delivered) == frames // 2
        assert "the wire was cut by the test" in wire.diagnostics().notes
        with pytest.raises(TransportBroken):
            await wire.send(echo_frame(9))


async def test_cut_ends_a_waiting_send(autojump_clock):
    """A send that waits for room is failed by the cut."""
    errors = []

    async def deaf(link):
        await trio.sleep_forever()

    async with open_wire(deaf) as (wire, _, ends):

        async def flood():
            try:
                while True:
                    await wire.send(echo_frame(1))
            except TransportBroken as exc:
                errors.append(exc)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            await trio.testing.wait_all_tasks_blocked()
            wire.cut()

        await settle(2)
        assert len(errors) == len(ends) == 1


async def test_cut_is_withdrawn(autojump_clock):
    """A planned cut that did not come is forgotten at the end of the block."""
    async with open_wire() as (wire, sink, ends):
        with wire.cut_after(frames=100):
            await wire.send(echo_frame(1))
        for number in range(200):
            await wire.send(echo_frame(number))
        await sink.until(lambda sink: len(sink.delivered) == 201)

        assert ends == []


async def test_delay(autojump_clock):
    """Frames are held back for exactly so long each way, in order, and the delay ends with its block."""
    async with open_wire() as (wire, sink, _):
        start = trio.current_time()
        with wire.delay(2.0):
            await wire.send(echo_frame(1))
            assert trio.current_time() == start + 2
            await wire.send(echo_frame(2))
            await sink.until(lambda sink: len(sink.delivered) == 1)
            assert trio.current_time() == start + 4
            await sink.until(lambda sink: len(sink.delivered) == 2)
            assert trio.current_time() == start + 6
        await wire.send(echo_frame(3))
        await sink.until(lambda sink: len(sink.delivered) == 3)

        assert trio.current_time() == start + 6
        assert sink.delivered == [echo_frame(number).data for number in (1, 2, 3)]


async def test_delayed_frames_arrive_before_the_end(autojump_clock):
    """What was held back when the wire ended by itself still arrives, before run raises."""

    async def last_words(link):
        await link.send(await link.receive())

    async with open_wire(last_words) as (wire, sink, ends):
        with wire.delay(1.0):
            await wire.send(echo_frame(1))
            await settle()

        assert sink.delivered == [echo_frame(1).data]
        assert "ended" in ends[0].reason


async def test_garble(autojump_clock):
    """What arrives inside the block is no JSON; afterwards it is whole again."""
    async with open_wire() as (wire, sink, _):
        with wire.garble():
            await wire.send(echo_frame(1))
            await settle()
        await wire.send(echo_frame(1))
        await settle()

        garbled, whole = sink.delivered
        with pytest.raises(UnicodeDecodeError):
            garbled.decode()
        assert whole == echo_frame(1).data


async def test_half_close(autojump_clock):
    """What we send goes nowhere, and nobody says so; what they send still arrives."""
    ring = trio.Event()

    async def rings(link):
        await ring.wait()
        await link.send(b"{}")
        await echo(link)

    async with open_wire(rings) as (wire, sink, ends):
        with wire.half_close():
            await wire.send(echo_frame(1))
            ring.set()
            await settle()

        assert (sink.delivered, ends) == ([b"{}"], [])


class Exchanging:
    """An inner transport like HTTP: each send is answered by a refusal and a loss."""

    kind, is_exchange, is_eager, is_full, shutdown_bound = "http", True, False, False, 1.0

    async def run(self, sink, *, task_status):
        self.sink = sink
        task_status.started()
        await trio.sleep_forever()

    async def send(self, frame):
        self.sink.refuse(frame, Refusal(404))
        self.sink.lose(frame, "never")

    def session_ready(self, info):
        self.info = info

    def diagnostics(self):
        return Diagnostics(pid=7)


async def test_exchange_outcomes(autojump_clock):
    """Refusals pass, a loss of what was answered meanwhile does not, and a deaf exchange waits for ever."""
    wire, sink = FaultyTransport(Exchanging()), RecordingSink()
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: wire.run(sink, task_status=task_status))
        wire.session_ready("info")
        sink.expect(1)
        with wire.delay(1.0):
            await wire.send(echo_frame(1))
            await sink.until(lambda sink: bool(sink.refused))
        await settle(2)
        with wire.half_close(), trio.move_on_after(10) as scope:
            await wire.send(echo_frame(2))
        nursery.cancel_scope.cancel()

    assert sink.lost == []
    assert scope.cancelled_caught
    assert (wire.inner.info, wire.diagnostics().pid, wire.shutdown_bound) == ("info", 7, 1.0)


async def test_closed(autojump_clock):
    """After run has been left by us, send says closed, not broken."""
    async with open_wire() as (wire, _, ends):
        pass

    assert ends == []
    with pytest.raises(TransportClosed):
        await wire.send(echo_frame(1))
