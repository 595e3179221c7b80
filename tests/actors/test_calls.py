"""The calls in flight over one session: what becomes of those that come when there is nobody to answer any more."""

from __future__ import annotations

import json
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import define, field

from mcp_actors.actors.alarms import Alarms
from mcp_actors.actors.calls import Calls
from mcp_actors.actors.slots import Request
from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.session import Session, SessionSettings
from mcp_actors.protocol.types import Era, Frame
from mcp_actors.transports.memory import MemoryTransport
from tests.actors.counted import Counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def ping(timeouts: CallTimeouts) -> Request:
    """A request that begins now, with all its clocks."""
    return Request("ping", None, Budget(timeouts.wall, trio.current_time()), timeouts)


@pytest.mark.parametrize("is_held", [False, True])
async def test_a_call_that_comes_after_the_end_fails_with_its_cause(is_held: bool) -> None:
    """S146, S205: so does one that waited for a renewal, or is sent again: told is the end, not a mistake of ours."""

    async def serve(_: object) -> None:
        raise AssertionError("nothing is sent")

    def no(*_: object) -> None:
        raise AssertionError("nothing is told")

    async with trio.open_nursery() as nursery:
        calls = Calls(Session(SessionSettings()), MemoryTransport(serve), nursery, Alarms(), post=no, react=no)
        if is_held:
            calls.hold()
        calls.fail_all(TransportBroken(reason="planted"))

        with pytest.raises(TransportBroken, match="planted"):
            await calls.ask(ping(CallTimeouts()))

    assert len(calls) == 0


@define
class Exchanges:
    """As much of a transport as is used: notes what each exchange carries."""

    is_exchange: bool = True
    is_eager: bool = False
    is_full: bool = False
    sent: list[str] = field(factory=list)

    async def send(self, frame: Frame) -> None:
        self.sent.append(frame.method)


def ready_session() -> Session:
    session: Session = Session(SessionSettings(is_http=True, pinned_era=Era.LEGACY))
    session.open(0.0)
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}}
    session.receive_message(json.dumps({"jsonrpc": "2.0", "id": 1, "result": info}).encode(), 0.0)
    session.frames_to_send()
    return session


@pytest.mark.parametrize("attempt", range(10))
async def test_an_exchange_that_is_given_up_at_once_is_withdrawn_only_where_it_began(attempt: int) -> None:
    """B18, S204: whichever of both tasks comes first, the server is told to forget just what it may have seen."""
    wire, posted = Exchanges(), []

    async with trio.open_nursery() as nursery:
        calls = Calls(ready_session(), wire, nursery, Alarms(), post=posted.append, react=list)  # type: ignore[arg-type]
        with trio.CancelScope() as caller:
            caller.cancel()
            await calls.ask(ping(CallTimeouts()))

    assert caller.cancelled_caught
    assert (wire.sent, len(posted)) in (([], 0), (["ping"], 1))


@define
class Full:
    """A message stream that takes nothing until `is_read`, and notes what it took."""

    is_exchange: bool = False
    is_eager: bool = False
    is_full: bool = True
    is_read: trio.Event = field(factory=trio.Event)
    sent: list[str] = field(factory=list)

    async def send(self, frame: Frame) -> None:
        await self.is_read.wait()
        self.sent.append(frame.method)


ENDS = {
    "wall": (CallTimeouts(wall=5), 5.0, "the wall clock ran out after 5 s"),
    "queue": (CallTimeouts(queue=3, wall=5), 3.0, "the queue clock ran out after 3 s"),
    "now": (CallTimeouts(wall=0), 0.0, "the wall clock ran out after 0 s"),
    "broken": (CallTimeouts(), 2.0, "planted"),
    "read": (CallTimeouts(queue=3, wall=8), 8.0, "the wall clock ran out after 8 s"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_call_ends_in_time_that_the_peer_does_not_read(end: str, autojump_clock: object) -> None:
    """S199, invariant 1: its clocks hold while it waits for room on the wire; only what went out is withdrawn there."""
    wire, posted = Full(), []
    timeouts, seconds, text = ENDS[end]

    async with trio.open_nursery() as nursery:
        alarms = Alarms()
        nursery.start_soon(alarms.run)
        calls = Calls(ready_session(), wire, nursery, alarms, post=posted.append, react=list)  # type: ignore[arg-type]

        async def happens() -> None:
            await trio.sleep(1)
            if end == "read":
                wire.is_read.set()
            await trio.sleep(1)
            if end == "broken":
                calls.fail_all(TransportBroken(reason="planted"))

        nursery.start_soon(happens)
        began = trio.current_time()
        with pytest.raises((trio.TooSlowError, TransportBroken), match=text):
            await calls.ask(ping(timeouts))
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()

    assert len(calls) == 0
    assert took == seconds
    assert (wire.sent, len(posted)) == ((["ping"], 1) if end == "read" else ([], 0))


@asynccontextmanager
async def open_calls(wire: object) -> AsyncIterator[Calls]:
    """The calls over a wire that nobody answers on."""
    async with trio.open_nursery() as nursery:
        alarms = Alarms()
        nursery.start_soon(alarms.run)
        yield Calls(ready_session(), wire, nursery, alarms, post=[].append, react=list)  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()


# How a request waits for `WAIT` seconds before the transport has it.
WAIT = 10.0
# Its clocks -> how many seconds after the beginning it ends, and by which.
SILENCES = {
    "idle": (CallTimeouts(idle=4), WAIT + 4, "the idle clock ran out after 4 s"),
    "first byte": (CallTimeouts(first_byte=3, idle=4), WAIT + 3, "the first-byte clock ran out after 3 s"),
    "later wall": (CallTimeouts(idle=4, wall=15), WAIT + 4, "the idle clock ran out after 4 s"),
    "wall": (CallTimeouts(idle=4, wall=12), 12, "the wall clock ran out after 12 s"),
    "wall, before it is sent": (CallTimeouts(idle=4, wall=6), 6, "the wall clock ran out"),
    "queue, before it is sent": (CallTimeouts(queue=5, idle=4), 5, "the queue clock ran out"),
}


@define
class Slow:
    """A message stream that looks free and keeps a sender waiting."""

    is_exchange: bool = False
    is_eager: bool = False
    is_full: bool = False

    async def send(self, frame: Frame) -> None:
        await trio.sleep(WAIT)


@pytest.mark.parametrize("what", SILENCES)
@pytest.mark.parametrize("where", ["full wire", "send", "renewal"])
async def test_the_silence_of_a_server_counts_from_when_the_transport_has_the_request(
    what: str, where: str, autojump_clock: object
) -> None:
    """S076, S201: nobody is silent who was not asked yet; the wall counts from the call, whatever happens."""
    timeouts, seconds, text = SILENCES[what]
    wire = Slow(is_full=where == "full wire") if where != "renewal" else Full(is_full=False)

    async with open_calls(wire) as calls, trio.open_nursery() as nursery:
        if isinstance(wire, Full):
            wire.is_read.set()
            calls.hold()

            async def renew() -> None:
                await trio.sleep(WAIT)
                calls.release()

            nursery.start_soon(renew)
        began = trio.current_time()
        # In `send` itself nothing ends it but its caller; what ran out is told afterwards.
        is_late = where == "send" and seconds < WAIT
        with pytest.raises(trio.TooSlowError, match=text):
            await calls.ask(ping(timeouts))
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()

    assert took == (WAIT if is_late else seconds)
    assert len(calls) == 0


async def test_an_exchange_is_on_its_way_when_it_begins(autojump_clock: object) -> None:
    """S076: over HTTP sending is the exchange itself, so the clocks run during it."""
    async with open_calls(Slow(is_exchange=True)) as calls:
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError, match="the first-byte clock ran out after 3 s"):
            await calls.ask(ping(CallTimeouts(first_byte=3, idle=4)))

    assert trio.current_time() - began == 3


@define
class Mute:
    """A message stream that takes everything."""

    is_exchange: bool = False
    is_eager: bool = False
    is_full: bool = False

    async def send(self, frame: Frame) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.deadline(2000)
@pytest.mark.parametrize("order", ["rising", "falling", "mixed", "equal"])
async def test_many_deadlines_cost_few_looks(order: str, autojump_clock: object) -> None:
    """S204, invariant 4: a thousand calls with a thousand deadlines on a mute server are no thousand times thousand."""
    count, ended = 1000, list[float]()
    after = {
        "rising": range(1, count + 1),
        "falling": range(count, 0, -1),
        "mixed": [1 + number * 7919 % count for number in range(count)],
        "equal": [1] * count,
    }[order]
    Counted.comparisons = 0

    async with open_calls(Mute()) as calls:

        async def call(seconds: int) -> None:
            with pytest.raises(trio.TooSlowError):
                await calls.ask(ping(CallTimeouts(wall=Counted(seconds))))
            ended.append(seconds)

        began = trio.current_time()
        async with trio.open_nursery() as callers:
            for seconds in after:
                callers.start_soon(call, seconds)
        took = trio.current_time() - began

    assert (ended, took) == (sorted(after), max(after))
    assert Counted.comparisons < 10 * count * math.log2(count)


@pytest.mark.deadline(2000)
async def test_calls_that_are_over_leave_nothing_to_look_at(autojump_clock: object) -> None:
    """Invariant 5: what is kept of deadlines follows the calls in flight, also where many looks found others."""
    async with open_calls(Mute()) as calls:
        for _ in range(500):
            async with trio.open_nursery() as callers:
                callers.start_soon(_give_up_after, calls, 2.0)
                with pytest.raises(trio.TooSlowError):
                    await calls.ask(ping(CallTimeouts(wall=1.0)))

    assert len(calls._agenda._heap) < 200


async def _give_up_after(calls: Calls, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await calls.ask(ping(CallTimeouts(wall=10_000.0)))
