"""`selector`: several descriptors, one task."""

from __future__ import annotations

import os

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.transports.selector import Selector


class Pipes:
    """Pipes whose readers a selector has; what each step took is noted."""

    def __init__(self, count: int) -> None:
        self.selector = Selector()
        self.ends = [os.pipe() for _ in range(count)]
        self.taken: list[tuple[int, bytes]] = []
        for at, (reader, _) in enumerate(self.ends):
            self.selector.on_readable(reader, self.step(at))

    def step(self, at: int):
        async def take() -> None:
            self.taken.append((at, os.read(self.ends[at][0], 100)))

        return take

    def write(self, at: int, data: bytes = b"x") -> None:
        os.write(self.ends[at][1], data)

    def close(self) -> None:
        for reader, writer in self.ends:
            self.selector.forget(reader)
            os.close(reader)
            os.close(writer)
        self.selector.close()


@pytest.fixture
def pipes():
    pipes = Pipes(3)
    yield pipes
    pipes.close()


async def test_one_turn_takes_what_is_ready(pipes) -> None:
    """All that is ready is taken in one turn, and nothing else is touched."""
    pipes.write(0)
    pipes.write(2)

    with trio.fail_after(5):
        await pipes.selector.turn()

    assert sorted(pipes.taken) == [(0, b"x"), (2, b"x")]


async def test_turn_waits_for_the_first(pipes, nursery) -> None:
    """A turn in which nothing is ready lasts until something is."""
    nursery.start_soon(pipes.selector.turn)
    await wait_all_tasks_blocked()
    assert pipes.taken == []

    pipes.write(1)
    with trio.fail_after(5):
        while not pipes.taken:
            await trio.lowlevel.checkpoint()

    assert pipes.taken == [(1, b"x")]


async def test_added_while_it_is_waited_for(pipes, nursery) -> None:
    """What is added during a turn counts in it: a writer of another task asks for room."""
    reader, writer = os.pipe()
    given = trio.Event()

    async def give() -> None:
        pipes.selector.forget(writer)
        given.set()

    nursery.start_soon(pipes.selector.turn)
    await wait_all_tasks_blocked()
    pipes.selector.on_writable(writer, give)
    with trio.fail_after(5):
        await given.wait()

    assert writer not in pipes.selector
    os.close(reader)
    os.close(writer)


async def test_cancelled_or_failed_turn_loses_nothing(pipes) -> None:
    """What a turn did not take is there in the next one (rule 1)."""

    async def fail() -> None:
        raise ZeroDivisionError

    with trio.move_on_after(0) as scope:
        pipes.write(0)
        await pipes.selector.turn()
    assert scope.cancelled_caught
    reader = pipes.ends[1][0]
    pipes.selector.forget(reader)
    pipes.selector.on_readable(reader, fail)
    pipes.write(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await pipes.selector.turn()
    pipes.selector.forget(reader)
    pipes.selector.on_readable(reader, pipes.step(1))
    pipes.write(2)
    await pipes.selector.turn()

    assert sorted(pipes.taken)[-2:] == [(1, b"x"), (2, b"x")]
    assert (0, b"x") in pipes.taken


async def test_step_may_have_others_forgotten(pipes) -> None:
    """What an earlier step of the same turn had forgotten is not called any more, even if it was ready."""
    calls = []

    def forgetting(at: int):
        async def step() -> None:
            calls.append(at)
            for reader, _ in pipes.ends:
                pipes.selector.forget(reader)

        return step

    for at, (reader, _) in enumerate(pipes.ends):
        pipes.selector.forget(reader)
        pipes.selector.on_readable(reader, forgetting(at))
        pipes.write(at)

    await pipes.selector.turn()

    assert len(calls) == 1
    assert not any(reader in pipes.selector for reader, _ in pipes.ends)


async def test_likeliest_is_looked_at_before_all_are_asked(pipes) -> None:
    """What is likeliest is taken alone where it is ready; where it is not, all are asked in the same turn (rule 3)."""
    likeliest = pipes.ends[0][0]
    os.set_blocking(likeliest, False)

    async def take() -> bool:
        try:
            pipes.taken.append((0, os.read(likeliest, 1)))
        except BlockingIOError:
            return False
        return True

    pipes.selector.likeliest = take
    pipes.write(0)
    pipes.write(1)
    await pipes.selector.turn()
    assert pipes.taken == [(0, b"x")]

    await pipes.selector.turn()
    assert pipes.taken == [(0, b"x"), (1, b"x")]


async def test_likeliest_without_end_starves_nobody(pipes) -> None:
    """One that is ready in every turn does not keep the others waiting for long (rule 3, invariant 4)."""

    async def take() -> bool:
        return True

    pipes.selector.likeliest = take
    pipes.write(0)
    pipes.write(1)

    turns = 0
    while not pipes.taken:
        await pipes.selector.turn()
        turns += 1

    assert 1 < turns < 20
    assert sorted(pipes.taken) == [(0, b"x"), (1, b"x")]
