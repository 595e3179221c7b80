"""Owns `Bell`: how one task sleeps until there is something to look at, or never will be again.

What this is not: what there is to look at. Whoever rings keeps that, bounded, and is held up by nobody.
"""

from __future__ import annotations

import trio
from attrs import field

from mcp_actors.values import define

__all__ = ["Bell"]


@define(eq=False)
class Bell:
    """Rung for one task that waits. Rings that it did not wait for count as one."""

    # Whether it was told that it is not rung any more.
    is_over: bool = False
    _rung: trio.Event = field(factory=trio.Event, repr=False)

    def ring(self) -> None:
        """Wake who waits, or who waits next."""
        self._rung.set()

    def end(self) -> None:
        """Wake who waits, now and for ever: nothing more will come."""
        self.is_over = True
        self._rung.set()

    async def wait(self) -> None:
        """Wait for the next ring.

        Raises:
            StopAsyncIteration: it is over, and what rang last was heard.

        Cancellation:
            Safe.
        """
        if self.is_over:
            raise StopAsyncIteration
        await self._rung.wait()
        self._rung = trio.Event()
