"""How tasks sleep until there is something to look at."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.bell import Bell


async def test_a_ring_wakes_all_who_wait_and_none_who_comes_later() -> None:
    """Who comes after a ring waits for the next one: it has looked before."""
    bell, woken = Bell(), 0

    async def wait() -> None:
        nonlocal woken
        await bell.wait()
        woken += 1

    async with trio.open_nursery() as nursery:
        bell.ring()
        for _ in range(3):
            nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        before = woken
        bell.ring()
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        after = woken
        bell.ring()

    assert (before, after, woken) == (0, 3, 4)


async def test_who_is_cancelled_takes_nothing_from_the_others() -> None:
    """Of two who wait one gives up; the other is woken all the same."""
    bell = Bell()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait)
        await wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await bell.wait()
        bell.ring()


async def test_an_end_is_told_to_who_waits_and_to_who_comes_later() -> None:
    """Who waits looks once more; from then on waiting is the end of an iteration."""
    bell = Bell()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait)
        await wait_all_tasks_blocked()
        bell.end()

    assert bell.is_over
    with pytest.raises(StopAsyncIteration):
        await bell.wait()
