"""The calls in flight over one session: what becomes of those that come when there is nobody to answer any more."""

from __future__ import annotations

import json

import pytest
import trio
from attrs import define, field

from mcp_actors.actors.alarms import Alarms
from mcp_actors.actors.calls import Calls
from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.session import Session, SessionSettings
from mcp_actors.protocol.types import Era, Frame
from mcp_actors.transports.memory import MemoryTransport


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
            await calls.ask("ping", None, timeouts=CallTimeouts())

    assert len(calls) == 0


@define
class Exchanges:
    """As much of a transport as is used: notes what each exchange carries."""

    is_exchange: bool = True
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
            await calls.ask("ping", None, timeouts=CallTimeouts())

    assert caller.cancelled_caught
    assert (wire.sent, len(posted)) in (([], 0), (["ping"], 1))


@define
class Full:
    """A message stream that takes nothing until `is_read`, and notes what it took."""

    is_exchange: bool = False
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
            await calls.ask("ping", None, timeouts=timeouts)
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()

    assert len(calls) == 0
    assert took == seconds
    assert (wire.sent, len(posted)) == ((["ping"], 1) if end == "read" else ([], 0))
