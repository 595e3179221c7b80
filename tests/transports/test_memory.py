"""Links and the transport inside one process, on virtual time."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from mcp_actors.errors import TransportBroken, TransportClosed
from mcp_actors.protocol.types import Frame
from mcp_actors.testing.contracts import RecordingSink, echo_frame
from mcp_actors.transports.memory import CAPACITY, MemoryTransport, open_links


async def echo(link):
    while True:
        try:
            await link.send(await link.receive())
        except trio.EndOfChannel:
            return


async def test_delivery_is_deferred(autojump_clock):
    """A message is never handed over inside the sender's call, but by another task in its own turn (S088)."""
    tasks = []

    class TaskSink(RecordingSink):
        def deliver(self, raw):
            tasks.append(trio.lowlevel.current_task())

    sink = TaskSink()
    transport = MemoryTransport(echo)
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: transport.run(sink, task_status=task_status))
        await transport.send(Frame(b"x"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert len(tasks) == 1
    assert tasks[0] is not trio.lowlevel.current_task()


async def test_order_and_bound(autojump_clock):
    """Messages keep their order, and a writer waits when the other end is a full capacity behind."""
    left, right = open_links()
    for number in range(CAPACITY):
        assert not left.is_full
        await left.send(b"%d" % number)
    assert left.is_full
    with trio.move_on_after(1) as scope:
        await left.send(b"too much")

    assert scope.cancelled_caught
    assert [await right.receive() for _ in range(CAPACITY)] == [b"%d" % number for number in range(CAPACITY)]


@pytest.mark.parametrize("closer", [0, 1])
async def test_close_one_end(closer, autojump_clock):
    """Closing one end closes the other exactly once: what was sent is still received, then the channel ends (S088)."""
    links = open_links()
    ours, theirs = links[closer], links[1 - closer]
    await ours.send(b"last")
    ours.close()
    ours.close()

    assert await theirs.receive() == b"last"
    with pytest.raises(trio.EndOfChannel):
        await theirs.receive()
    with pytest.raises(trio.BrokenResourceError):
        await theirs.send(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await ours.send(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await ours.receive()


async def returns(link):
    await link.receive()


async def raises(link):
    await link.receive()
    raise LookupError("no such thing")


async def raises_group(link):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, link)


async def closes(link):
    await link.receive()
    link.close()
    await trio.sleep_forever()


async def sleeps(link):
    await trio.sleep_forever()


ENDINGS = {
    returns: (type(None), "the server in this process ended"),
    closes: (type(None), "the server in this process ended"),
    raises: (LookupError, "the server in this process failed: LookupError: no such thing"),
    raises_group: (ExceptionGroup, "the server in this process failed: ExceptionGroup: "),
}


@pytest.mark.parametrize("serve", ENDINGS, ids=lambda serve: serve.__name__)
async def test_serve_ends(serve, autojump_clock):
    """When serve ends, run raises TransportBroken alone, with what serve raised as its cause, and so does send."""
    cause, reason = ENDINGS[serve]
    transport = MemoryTransport(serve)
    ends = []

    sink = RecordingSink()

    async def run(task_status):
        try:
            await transport.run(sink, task_status=task_status)
        except TransportBroken as exc:
            ends.append(exc)

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        await transport.send(Frame(b"go"))

    [broken] = ends
    assert [end.reason for end in sink.endings] == [broken.reason]
    assert isinstance(broken.__cause__, cause)
    assert broken.reason.startswith(reason)
    with pytest.raises(TransportClosed):
        await transport.send(Frame(b"late"))


async def test_send_to_an_end_that_closed(autojump_clock):
    """A send between the server's end and the end of run says that the wire is broken, and why."""
    transport = MemoryTransport(raises)
    errors = []

    async with trio.open_nursery() as nursery:

        async def run(task_status):
            with pytest.raises(TransportBroken):
                await transport.run(RecordingSink(), task_status=task_status)

        async def flood():
            try:
                while True:
                    await transport.send(Frame(b"x"))
            except (TransportBroken, TransportClosed) as exc:
                errors.append(exc)

        await nursery.start(run)
        for _ in range(20):
            nursery.start_soon(flood)

    assert len(errors) == 20


async def test_leave_in_order(autojump_clock):
    """Leaving run closes the link and lets serve finish on its own."""
    done = []

    async def serve(link):
        await echo(link)
        await trio.sleep(0.5)
        done.append(trio.current_time())

    transport, sink = MemoryTransport(serve), RecordingSink()
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: transport.run(sink, task_status=task_status))
        await transport.send(echo_frame(1))
        await sink.until(lambda sink: bool(sink.delivered))
        start = trio.current_time()
        nursery.cancel_scope.cancel()

    assert done == [start + 0.5]


async def test_leave_a_stubborn_server(autojump_clock):
    """A server that ignores the end of its link is cancelled after exactly the bound."""
    transport = MemoryTransport(sleeps)
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: transport.run(RecordingSink(), task_status=task_status))
        start = trio.current_time()
        nursery.cancel_scope.cancel()

    assert trio.current_time() == start + transport.shutdown_bound


async def test_failure_while_leaving(autojump_clock):
    """What serve raises while we leave is nobody's business any more."""

    async def serve(link):
        try:
            await echo(link)
        finally:
            raise LookupError("late")

    transport = MemoryTransport(serve)
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: transport.run(RecordingSink(), task_status=task_status))
        nursery.cancel_scope.cancel()

    assert repr(transport) == "<MemoryTransport closed>"


async def test_cancelled_send_sweep(autojump_clock):
    """A sender cancelled while it waits for room sends nothing; those that go on keep their order."""
    gate = trio.Event()
    got = []

    async def serve(link):
        await gate.wait()
        while True:
            try:
                got.append(await link.receive())
            except trio.EndOfChannel:
                return

    transport = MemoryTransport(serve)
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: transport.run(RecordingSink(), task_status=task_status))
        sent = [b"%d" % number for number in range(CAPACITY)]
        for data in sent:
            await transport.send(Frame(data))
        with trio.move_on_after(1):
            await transport.send(Frame(b"cancelled"))
        gate.set()
        await transport.send(Frame(b"after"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert got == [*sent, b"after"]
