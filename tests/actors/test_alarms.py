"""One clock wakes all who have a deadline: at its moment, once, and without harm from the others."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import define, field

from mcp_actors.actors.alarms import Alarms
from mcp_actors.actors.calls import Calls
from mcp_actors.protocol.session import Session, SessionSettings
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@define(eq=False)
class Sleeper:
    """Notes when it was woken, and wants to be woken `again` seconds later, so often."""

    alarms: Alarms
    again: tuple[float, ...] = ()
    woken: list[float] = field(factory=list)

    def wake(self, now: float) -> None:
        self.woken.append(now)
        if self.again:
            self.alarms.set(self, now + self.again[0])
            self.again = self.again[1:]


@asynccontextmanager
async def running() -> AsyncIterator[Alarms]:
    alarms = Alarms()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alarms.run)
        yield alarms
        nursery.cancel_scope.cancel()


async def test_each_is_woken_at_its_moment_once(autojump_clock: object) -> None:
    """Earlier and later ones, two at the same moment, one that asks again, one in the past: each exactly then."""
    async with running() as alarms:
        began = trio.current_time()
        sleepers = [Sleeper(alarms) for _ in range(5)] + [Sleeper(alarms, again=(1, 10))]
        for sleeper, after in zip(sleepers, (5, 2, 9, 2, -1, 3), strict=True):
            alarms.set(sleeper, began + after)
        await trio.sleep(30)

    told = [[moment - began for moment in sleeper.woken] for sleeper in sleepers]
    assert told == [[5], [2], [9], [2], [0], [3, 4, 14]]


@pytest.mark.parametrize("sooner", [False, True])
async def test_the_last_wish_of_a_sleeper_counts(sooner: bool, autojump_clock: object) -> None:
    """Rule 1: who asks for another moment is not woken at the one before, be it sooner or later."""
    async with running() as alarms:
        began = trio.current_time()
        sleeper = Sleeper(alarms)
        for after in (7, 3) if sooner else (3, 7):
            alarms.set(sleeper, began + after)
        await trio.sleep(30)

    assert [moment - began for moment in sleeper.woken] == [3 if sooner else 7]


async def test_who_is_dropped_is_left_alone(autojump_clock: object) -> None:
    """Also when it never asked; the others sleep on."""
    async with running() as alarms:
        first, second = Sleeper(alarms), Sleeper(alarms)
        for sleeper in (first, second):
            alarms.set(sleeper, trio.current_time() + 1)
        for _ in range(2):
            alarms.drop(first)
        await trio.sleep(2)

    assert (len(first.woken), len(second.woken)) == (0, 1)


async def test_a_look_that_fails_is_the_end_of_its_own_wire_only(autojump_clock: object) -> None:
    """Rule 2, S135: a bug in what one connection does at its deadline reaches its nursery, and no other sleeper."""

    async def serve(_: object) -> None:
        raise AssertionError("nothing is sent")

    def react() -> None:
        raise ArithmeticError("planted")

    async with running() as alarms:
        other = Sleeper(alarms)
        with pytest.RaisesGroup(ArithmeticError):
            async with trio.open_nursery() as life:
                session = Session(SessionSettings(probe_timeout=1))
                calls = Calls(session, MemoryTransport(serve), life, alarms, post=print, react=react)
                session.open(trio.current_time())
                calls.watch_for(session.next_deadline)
                alarms.set(other, trio.current_time() + 2)
                await trio.sleep(30)
        await trio.sleep(2)

    assert len(other.woken) == 1
