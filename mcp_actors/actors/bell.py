"""Owns `Bell`: how tasks sleep until there is something to look at, or never will be again.

What this is not: what there is to look at. Whoever rings keeps that, bounded, and is held up by nobody.

The rule: a bell remembers no ring. Who waits looks first, without a checkpoint in between, and looks again when woken::

    while not self._changed:
        await self._bell.wait()
"""

from __future__ import annotations

import trio
from attrs import field

from mcp_actors.values import define

__all__ = ["Bell"]


@define(eq=False)
class Bell:
    """Wakes whoever waits; costs nothing while nobody does."""

    # Whether it was told that it is not rung any more.
    is_over: bool = False
    # Who waits; few, as a rule one or nobody.
    _tasks: tuple[trio.lowlevel.Task, ...] = field(default=(), repr=False)

    def ring(self) -> None:
        """Wake all who wait."""
        tasks, self._tasks = self._tasks, ()
        for task in tasks:
            trio.lowlevel.reschedule(task)

    def end(self) -> None:
        """Wake who waits, now and for ever: nothing more will come."""
        self.is_over = True
        self.ring()

    async def wait(self) -> None:
        """Wait for the next ring.

        Raises:
            StopAsyncIteration: it is over; what rang last is to be looked at before.

        Cancellation:
            Safe.
        """
        if self.is_over:
            raise StopAsyncIteration
        me = trio.lowlevel.current_task()
        self._tasks = (*self._tasks, me)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._tasks = tuple(task for task in self._tasks if task is not me)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
