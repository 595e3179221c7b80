"""The calls in flight over one session: what becomes of those that come when there is nobody to answer any more."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.actors.alarms import Alarms
from mcp_actors.actors.calls import Calls
from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.session import Session, SessionSettings
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
