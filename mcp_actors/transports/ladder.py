"""Owns the stop ladder: in which order, and for how long, a process tree is asked and then made to end.

What this is not: knowledge of processes. The driver climbs over a `Tree`, which `process.Child` and a leftover of
an earlier run both are.

Rule 1: each rung is skipped as soon as the whole group is gone; end-of-file on a pipe proves nothing (S137).
Rule 2: the climb is shielded, and bounded by the sum of the rungs, whoever else is being stopped (S143).
Rule 3: the order is the articles': end-of-file together with SIGINT, SIGTERM, SIGKILL (S136).
Rule 4: whoever was stopped (SIGSTOP, a terminal's SIGTTIN) is woken to take SIGINT or SIGTERM, which stay pending
otherwise. SIGKILL needs no waking, and so it ends what a debugger holds as well.
"""

from __future__ import annotations

import signal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import field

from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.config.settings import Settings

__all__ = ["MARGIN", "Hurry", "Rung", "Tree", "bound", "climb", "rungs"]

# What a stop may take beyond its waits on a busy machine, in seconds.
MARGIN: Final = 1.0
# A killed process needs a moment to be reaped even where the settings allow none.
_LEAST_REAP: Final = 0.5
# The group is looked at after so many seconds, then twice as many, up to the last.
_FIRST_LOOK: Final = 0.001
_LAST_LOOK: Final = 0.1
# From this pause on a look reads the process table too, which is dear.
_THOROUGH_LOOK: Final = 0.032


@frozen
class Rung:
    """One step: what is done to the group, and how long it is waited for."""

    name: str
    signal: signal.Signals
    # Seconds.
    wait: float
    closes_input: bool = False
    # Whether a hurry skips its wait.
    can_hurry: bool = True
    # Whether SIGCONT follows, for those that are stopped (rule 4).
    wakes: bool = False


class Tree(Protocol):
    """What can be made to end: a leader and whoever it started."""

    def close_input(self) -> None:
        """Let the leader see the end of its input."""

    def find_strays(self) -> None:
        """Look for members that left the group, while the leader still lives."""

    def signal(self, number: int) -> None:
        """Send a signal to all of it."""

    def is_gone(self) -> bool:
        """Whether nothing of it is left. Cheap."""
        ...

    def is_past_help(self) -> bool:
        """Whether only zombies of other parents are left. Dear."""
        ...

    async def wait(self) -> object:
        """Wait until the leader has ended."""

    async def rest(self, seconds: float) -> None:
        """Let so many seconds pass."""


@define(eq=False)
class Hurry:
    """A switch that is pressed once: every wait of every ladder that holds it ends, and none begins any more."""

    is_on: bool = False
    # The waits under way.
    _scopes: set[trio.CancelScope] = field(factory=set, repr=False)

    def press(self) -> None:
        """Skip what is left of all waits (a second signal to `run`)."""
        self.is_on = True
        for scope in self._scopes:
            scope.cancel()

    async def wait_gone(self, tree: Tree, rung: Rung) -> None:
        """Wait until nothing of it is left, shielded, for as long as the rung says or until the switch is pressed."""
        with trio.CancelScope(deadline=trio.current_time() + rung.wait, shield=True) as scope:
            if rung.can_hurry:
                self._scopes.add(scope)
                if self.is_on:
                    scope.cancel()
            try:
                await _wait_gone(tree)
            finally:
                self._scopes.discard(scope)


@lru_cache(maxsize=8)  # asked for at every stop of a fleet that shares its settings
def rungs(settings: Settings) -> tuple[Rung, ...]:
    """The ladder as a table, first rung first.

    Source:
        S136, S138, S140.
    """
    return (
        Rung("interrupt", signal.SIGINT, settings.stop_interrupt, closes_input=True, wakes=True),
        Rung("terminate", signal.SIGTERM, settings.stop_terminate, wakes=True),
        Rung("kill", signal.SIGKILL, max(settings.stop_reap, _LEAST_REAP), can_hurry=False),
    )


def bound(ladder: Sequence[Rung]) -> float:
    """Seconds that climbing it takes at most."""
    return sum(rung.wait for rung in ladder) + MARGIN


async def climb(tree: Tree, ladder: Sequence[Rung], hurry: Hurry) -> Rung | None:
    """Make the tree end.

    Returns:
        The last rung that was needed; None when nothing was left to stop. Whether it worked is `tree.is_gone`.

    Cancellation:
        Shielded, for at most `bound` seconds.

    Source:
        S136, S137, S139, S140, S143, S145; faults 1, 3.
    """
    used: Rung | None = None
    for rung in ladder:
        if tree.is_gone() or (used is not None and tree.is_past_help()):
            break
        used = rung
        tree.find_strays()
        if rung.closes_input:
            tree.close_input()
        tree.signal(rung.signal)
        if rung.wakes:
            tree.signal(signal.SIGCONT)
        await hurry.wait_gone(tree, rung)
    return used


async def _wait_gone(tree: Tree) -> None:
    await tree.wait()
    pause = _FIRST_LOOK
    while not tree.is_gone():
        if pause >= _THOROUGH_LOOK and tree.is_past_help():
            return
        await tree.rest(pause)
        pause = min(2 * pause, _LAST_LOOK)
