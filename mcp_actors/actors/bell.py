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
    # What those who wait now wait for; None: nobody does.
    _next: trio.Event | None = field(default=None, repr=False)

    def ring(self) -> None:
        """Wake all who wait."""
        waiting, self._next = self._next, None
        if waiting is not None:
            waiting.set()

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
        if self._next is None:
            self._next = trio.Event()
        await self._next.wait()
