"""`ladder`: the rungs as a table, and the climb over trees that are played here."""

from __future__ import annotations

import math
from signal import SIGCONT, SIGINT, SIGKILL, SIGTERM

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.config.settings import Settings
from mcp_actors.transports.ladder import MARGIN, Hurry, bound, climb, rungs

LADDER = rungs(Settings())
EOF_STEP = "eof"


class PlayedTree:
    """A tree that ends so many seconds after the step that it obeys; members may outlive the leader."""

    def __init__(self, obeys, *, takes=0.0, members=0.0, zombies=False, stopped=False) -> None:
        self.obeys, self.takes, self.members, self.zombies = obeys, takes, members, zombies
        self.steps: list[object] = []
        # Whether signals stay pending until it is woken.
        self.stopped = stopped
        self.dies = math.inf

    def _take(self, step) -> None:
        assert not self.is_gone(), "signalled after it was gone"
        self.steps.append(step)
        if not self.stopped or step == SIGKILL:
            self._obey(step)

    def _obey(self, step) -> None:
        if step in (self.obeys, SIGKILL) and self.dies == math.inf and self.obeys is not None:
            self.dies = trio.current_time() + (self.takes if step == self.obeys else 0)

    def close_input(self) -> None:
        self._take(EOF_STEP)

    def find_strays(self) -> None:
        pass

    def signal(self, number) -> None:
        if number != SIGCONT:
            self._take(number)
        elif self.stopped:
            self.stopped = False
            self._obey(self.steps[-1])

    def is_gone(self) -> bool:
        return not self.zombies and trio.current_time() >= self.dies + self.members

    def is_past_help(self) -> bool:
        return self.zombies and trio.current_time() >= self.dies

    async def wait(self) -> None:
        await trio.sleep_until(self.dies)

    async def rest(self, seconds) -> None:
        await trio.sleep(seconds)


def test_ladder_is_the_articles_order() -> None:
    """End of input goes with SIGINT, then SIGTERM, then SIGKILL, two seconds each; the first two wake (S136, S138)."""
    assert [(rung.signal, rung.wait, rung.closes_input, rung.wakes) for rung in LADDER] == [
        (SIGINT, 2.0, True, True),
        (SIGTERM, 2.0, False, True),
        (SIGKILL, 2.0, False, False),
    ]
    assert bound(LADDER) == 6.0 + MARGIN


def test_waits_may_be_zero_and_a_kill_is_still_reaped() -> None:
    """Zero is a length too; only the wait for the reaper keeps a floor (S138)."""
    waits = [rung.wait for rung in rungs(Settings(stop_interrupt=0, stop_terminate=0, stop_reap=0))]

    assert waits[:2] == [0, 0]
    assert waits[2] > 0


@pytest.mark.parametrize(
    ("tree", "steps", "seconds"),
    [
        (PlayedTree(EOF_STEP), [EOF_STEP, SIGINT], 0.0),
        (PlayedTree(SIGINT, takes=1.5), [EOF_STEP, SIGINT], 1.5),
        (PlayedTree(SIGTERM, takes=0.5), [EOF_STEP, SIGINT, SIGTERM], 2.5),
        (PlayedTree(SIGINT, stopped=True), [EOF_STEP, SIGINT], 0.0),
        (PlayedTree(SIGTERM, stopped=True), [EOF_STEP, SIGINT, SIGTERM], 2.0),
        (PlayedTree(SIGINT, takes=3.0), [EOF_STEP, SIGINT, SIGTERM], 3.0),
        (PlayedTree(SIGKILL), [EOF_STEP, SIGINT, SIGTERM, SIGKILL], 4.0),
        (PlayedTree(None), [EOF_STEP, SIGINT, SIGTERM, SIGKILL], 6.0),
    ],
    ids=["eof", "int", "term", "int-stopped", "term-stopped", "late", "kill", "unkillable"],
)
async def test_rungs_end_when_the_tree_is_gone(tree, steps, seconds, autojump_clock) -> None:
    """Each rung is left at the moment the tree is gone, and the whole is the sum of the waits (S137, S143)."""
    if tree.obeys == EOF_STEP:
        tree._take = tree.steps.append
        tree.dies = 0.0
        tree.is_gone = lambda: len(tree.steps) >= 2
    start = trio.current_time()

    await climb(tree, LADDER, Hurry())

    assert tree.steps == steps
    assert trio.current_time() - start == pytest.approx(seconds)


async def test_members_that_outlive_the_leader_are_waited_for(autojump_clock) -> None:
    """The leader's end is not the group's: the climb goes on until nobody is left (fault 1)."""
    tree = PlayedTree(SIGINT, members=2.5)
    start = trio.current_time()

    last = await climb(tree, LADDER, Hurry())

    assert tree.steps == [EOF_STEP, SIGINT, SIGTERM]
    assert last is not None
    assert last.name == "terminate"
    assert 2.5 <= trio.current_time() - start <= 2.7


async def test_zombies_of_others_do_not_hold_the_climb(autojump_clock) -> None:
    """A group of which only unreaped members of other parents are left counts as ended."""
    tree = PlayedTree(SIGINT, zombies=True)
    start = trio.current_time()

    await climb(tree, LADDER, Hurry())

    assert tree.steps == [EOF_STEP, SIGINT]
    assert trio.current_time() - start < 0.2


async def test_nothing_is_signalled_when_nothing_is_left() -> None:
    """A tree that is gone already is not touched: its number may be somebody else's."""
    tree = PlayedTree(SIGINT)
    tree.dies = -math.inf

    assert await climb(tree, LADDER, Hurry()) is None
    assert tree.steps == []


async def test_hurry_skips_the_waits_but_not_the_reaping(autojump_clock) -> None:
    """Pressing the switch ends the wait under way and those to come; the killed tree is still waited for."""
    tree, hurry = PlayedTree(SIGKILL), Hurry()
    start = trio.current_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(climb, tree, LADDER, hurry)
        await wait_all_tasks_blocked()
        await trio.sleep(0.5)
        hurry.press()

    assert tree.steps == [EOF_STEP, SIGINT, SIGTERM, SIGKILL]
    assert trio.current_time() - start == pytest.approx(0.5)


async def test_hurry_pressed_before_is_remembered(autojump_clock) -> None:
    """A ladder that begins in a hurry waits for nothing but the reaper."""
    tree, hurry = PlayedTree(SIGKILL), Hurry()
    hurry.press()
    start = trio.current_time()

    await climb(tree, LADDER, hurry)

    assert trio.current_time() == start
    assert tree.steps[-1] == SIGKILL


async def test_climb_is_shielded(autojump_clock) -> None:
    """A cancelled caller still leaves nothing behind (S143)."""
    tree = PlayedTree(SIGKILL)
    start = trio.current_time()

    with trio.CancelScope() as scope:
        scope.cancel()
        await climb(tree, LADDER, Hurry())

    assert tree.steps[-1] == SIGKILL
    assert trio.current_time() - start == pytest.approx(4.0)


async def test_fifty_climb_in_the_time_of_one(autojump_clock) -> None:
    """Fifty trees that ignore everything end together, not one after the other (fault 3)."""
    trees = [PlayedTree(SIGKILL) for _ in range(50)]
    start = trio.current_time()

    async with trio.open_nursery() as nursery:
        for tree in trees:
            nursery.start_soon(climb, tree, LADDER, Hurry())

    assert trio.current_time() - start == pytest.approx(4.0)
    assert all(tree.is_gone() for tree in trees)
