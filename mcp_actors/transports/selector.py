"""Owns waiting for several descriptors in one task, and doing for each that is ready what it is there for.

What this is not: a loop, or a second scheduler. Its owner asks for one turn after the other, in its own task, and is
cancelled there.

Theory. trio waits for one descriptor in a task; a child has four, and three tasks more for each of many children are
dear. A selector is itself a descriptor that is readable while one of its own is ready (epoll and kqueue both), so one
wait stands for all of them.

Rule 1: readiness is a level, not an edge: what a cancelled or failed turn did not take is there in the next one.
Rule 2: an entry is taken out before its descriptor is closed.
Rule 3: to ask which is ready costs more than to look at the likeliest, so that is looked at first; but now and then all
are asked, since it may be ready without end.
"""

from __future__ import annotations

import selectors
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import trio

__all__ = ["Selector", "Step"]

Step: TypeAlias = Callable[[], Awaitable[object]]

# The others are asked after so many turns at the latest.
_ALL_ASKED: Final = 16


class Selector:
    """A few descriptors, each with what to do when it is ready. Owned by one task."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        # Readable while one of them is ready; as a number, which trio asks nobody for.
        self._any = self._selector.fileno()
        # What to do when a descriptor is ready.
        self._steps: dict[int, Step] = {}
        # Of the descriptor that is likeliest ready: takes what is there, and says whether anything was (rule 3).
        self.likeliest: Callable[[], Awaitable[bool]] | None = None
        # Turns since all were asked.
        self._unasked = 0

    def __contains__(self, fd: int) -> bool:
        return fd in self._steps

    def on_readable(self, fd: int, take: Step) -> None:
        """From now on, have `take` called in each turn in which something can be read (an end of file can)."""
        self._add(fd, selectors.EVENT_READ, take)

    def on_writable(self, fd: int, give: Step) -> None:
        """From now on, have `give` called in each turn in which it takes bytes, or is broken."""
        self._add(fd, selectors.EVENT_WRITE, give)

    def _add(self, fd: int, event: int, step: Step) -> None:
        self._selector.register(fd, event)
        self._steps[fd] = step

    def forget(self, fd: int) -> None:
        """Look at it no more; nothing happens where it is not looked at."""
        if self._steps.pop(fd, None) is not None:
            self._selector.unregister(fd)

    async def turn(self) -> None:
        """Wait until at least one is ready, and have done what is to be done for it. Cancellation: safe (rule 1)."""
        await trio.lowlevel.wait_readable(self._any)
        self._unasked += 1
        if self._unasked < _ALL_ASKED and self.likeliest is not None and await self.likeliest():
            return
        self._unasked = 0
        for key, _ in self._selector.select(0):
            if (step := self._steps.get(key.fd)) is not None:  # an earlier step may have had it forgotten
                await step()

    def close(self) -> None:
        """Forget all, and give back the selector's own descriptor. No task may be in `turn`."""
        self._steps.clear()
        self._selector.close()
