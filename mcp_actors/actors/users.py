"""Owns the count of calls in progress on one connection, so that a connection that is replaced can drain first.

What this is not: a limit, or a refusal. Whoever is in the middle of something may go on asking; who comes next is sent
to the successor by whoever finds `are_leaving` set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.actors.bell import Bell
from mcp_actors.values import define

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Users"]


@define(eq=False)
class Users:
    """The users of one connection. Enter it for as long as the connection is needed; it may be entered twice."""

    count: int = 0
    # Nobody new should come.
    are_leaving: bool = False
    # Rung when the last one has left.
    _bell: Bell = field(factory=Bell, repr=False)

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.count -= 1
        if self.are_leaving and not self.count:
            self._bell.ring()

    async def leave(self) -> None:
        """Let nobody new come, and wait until all have left. Cancellation: safe; nobody new comes all the same."""
        self.are_leaving = True
        while self.count:
            await self._bell.wait()
