"""The contract test itself: it passes what is right and fails each way of being wrong."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from attrs import define

from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.types import Frame, Refusal
from mcp_actors.testing import contracts
from mcp_actors.testing.contracts import RecordingSink, check_transport, echo_frame, running
from mcp_actors.transports.base import Diagnostics


@define(slots=False)
class Wrong:
    """A small transport over nothing that echoes by itself; subclasses break one clause each."""

    kind = "wrong"
    is_exchange = False
    is_eager = False
    is_full = False
    shutdown_bound = 1.0
    is_open = False
    sink = None

    def __attrs_post_init__(self):
        self.gone = trio.Event()

    async def run(self, sink, *, task_status):
        self.sink, self.is_open = sink, True
        task_status.started()
        try:
            await self.gone.wait()
            raise TransportBroken(reason="gone")
        finally:
            self.is_open = False

    async def send(self, frame):
        if not self.is_open:
            raise contracts.TransportClosed
        await trio.lowlevel.checkpoint()
        self.sink.deliver(frame.data)

    def session_ready(self, info):
        pass

    def diagnostics(self):
        return Diagnostics()


class Cuts(Wrong):
    async def send(self, frame):
        await super().send(Frame(frame.data[:1_000_000] + b"}" * (len(frame.data) > 1_000_000), frame.request_id))


class Repeats(Wrong):
    async def send(self, frame):
        await super().send(frame)
        self.sink.deliver(frame.data)


class HalfSends(Wrong):
    async def send(self, frame):
        try:
            await super().send(frame)
        except trio.Cancelled:
            self.sink.deliver(frame.data[:100])
            raise


class Loses(Wrong):
    async def send(self, frame):
        await trio.lowlevel.checkpoint()
        self.sink.lose(frame, "never")


class StaysOpen(Wrong):
    async def send(self, frame):
        await trio.lowlevel.checkpoint()
        self.sink.deliver(frame.data)


class IsSlow(Wrong):
    async def run(self, sink, *, task_status):
        try:
            await super().run(sink, task_status=task_status)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)


class LeavesTask(Wrong):
    async def run(self, sink, *, task_status):
        trio.lowlevel.spawn_system_task(trio.sleep, 3)
        await super().run(sink, task_status=task_status)


class EndsSilently(Wrong):
    is_exchange = True
    is_eager = False
    is_full = False

    async def run(self, sink, *, task_status):
        self.sink, self.is_open = sink, True
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self.is_open = False


@define
class WrongPair:
    transport: Wrong

    async def end_peer(self):
        self.transport.gone.set()


def pairs(kind):
    @asynccontextmanager
    async def make():
        yield WrongPair(kind())

    return make


async def test_right(autojump_clock):
    """A transport that keeps the contract passes every check."""
    await check_transport(pairs(Wrong))


def find_assertion(exc):
    if isinstance(exc, BaseExceptionGroup):
        return any(find_assertion(inner) for inner in exc.exceptions)
    return isinstance(exc, AssertionError | trio.TooSlowError)


@pytest.mark.parametrize("kind", [Cuts, Repeats, HalfSends, Loses, StaysOpen, IsSlow, LeavesTask, EndsSilently])
async def test_wrong(kind, autojump_clock):
    """A transport that breaks a clause fails."""
    with pytest.raises((AssertionError, BaseExceptionGroup, trio.TooSlowError)) as caught:
        with trio.fail_after(30):
            await check_transport(pairs(kind))

    assert find_assertion(caught.value)


async def test_sink_outcomes(autojump_clock):
    """A request waits until it has one outcome: an answer, a refusal, or a loss; noise is kept and answers nothing."""
    sink = RecordingSink()
    for number in range(5):
        sink.expect(number)
    sink.deliver(b"no json")
    sink.deliver(b"[1]")
    sink.deliver(b'{"id":0,"method":"ping"}')
    sink.deliver(b'{"id":1,"result":{}}')
    sink.refuse(echo_frame(2), Refusal(404))
    sink.lose(echo_frame(3), "never")
    sink.forget(4)
    sink.lose(Frame(b"{}"), "a notification")
    sink.ended(TransportBroken(reason="gone"))

    assert [sink.is_waiting(number) for number in range(5)] == [True, False, False, False, False]
    assert len(sink.delivered) == 4
    assert len(sink.endings) == 1


async def test_sink_until(autojump_clock):
    """Any number of tasks may wait for what the sink is told."""
    sink, woken = RecordingSink(), []

    async def wait(count):
        await sink.until(lambda sink: len(sink.delivered) >= count)
        woken.append(count)

    async with trio.open_nursery() as nursery:
        for count in (1, 2, 2):
            nursery.start_soon(wait, count)
        await trio.testing.wait_all_tasks_blocked()
        sink.deliver(b"{}")
        await trio.testing.wait_all_tasks_blocked()
        assert woken == [1]
        sink.deliver(b"{}")

    assert woken == [1, 2, 2]


async def test_running(autojump_clock):
    """The block runs beside the transport, which is cancelled at its end and may break before."""
    transport = Wrong()
    async with running(transport, RecordingSink()):
        assert transport.is_open
        transport.gone.set()
        await trio.testing.wait_all_tasks_blocked()
        assert not transport.is_open
