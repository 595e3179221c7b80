"""Owns the order in which a person is asked: first come, first served over all servers, one dialog at a time (S287).

What this is not: the questions. They are numbers here, given in the order of arrival; of pages it is known besides
whether their server said that they are done.

Rule 1: a question counts against the caps from its arrival until it is answered, also while hooks look at it.
Rule 2: a dialog opens when no other is open, for the oldest question that waits. A question that hooks still look at
holds up nobody.
"""

from __future__ import annotations

from typing import Final

from attrs import field

from mcp_actors.values import define

__all__ = ["Pages", "Queue"]

# Pages whose completion may still be told; the oldest are forgotten.
MAX_PAGES: Final = 1024


@define(eq=False)
class Queue:
    """The numbers of the open questions."""

    max_per_server: int
    max_open: int
    # Maps number -> server, oldest first.
    _open: dict[int, str] = field(factory=dict, init=False)
    # Those that wait for their dialog; never holds the current one.
    _waiting: set[int] = field(factory=set, init=False)
    # Whose dialog is open.
    current: int | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self._open)

    def arrive(self, number: int, server: str) -> bool:
        """Take a question in; False when its server, or all together, have too many open."""
        if len(self._open) >= self.max_open or sum(s == server for s in self._open.values()) >= self.max_per_server:
            return False
        self._open[number] = server
        return True

    def line_up(self, number: int) -> None:
        """Let a question wait for its dialog."""
        self._waiting.add(number)

    def close_dialog(self, number: int) -> None:
        """Give the turn back, or stop waiting for it; the question stays open. Its dialog must be closed by now."""
        self._waiting.discard(number)
        if self.current == number:
            self.current = None

    def leave(self, number: int) -> None:
        """Forget a question; one that is not in here is no matter."""
        self.close_dialog(number)
        self._open.pop(number, None)

    def next_turn(self) -> int | None:
        """Give the turn to the oldest question that waits, if no dialog is open; None when there is nothing to do."""
        if self.current is not None or not self._waiting:
            return None
        self.current = min(self._waiting)
        self._waiting.discard(self.current)
        return self.current


@define(eq=False)
class Pages:
    """The pages that people were asked to visit, by server and elicitation id (F10)."""

    # Maps page -> whether its server told of its completion; oldest first.
    _is_done: dict[tuple[str, str], bool] = field(factory=dict, init=False)

    def begin(self, server: str, elicitation_id: str) -> None:
        """A person is asked to visit it, for the first time or again."""
        page = (server, elicitation_id)
        self._is_done.pop(page, None)
        self._is_done[page] = False
        if len(self._is_done) > MAX_PAGES:
            del self._is_done[next(iter(self._is_done))]

    def complete(self, server: str, elicitation_id: str) -> bool:
        """Take a server's notice; False: the page is unknown or done, and the notice no matter."""
        page = (server, elicitation_id)
        if self._is_done.get(page, True):
            return False
        self._is_done[page] = True
        return True

    def is_done(self, server: str, elicitation_id: str | None) -> bool:
        """Whether its server said so already."""
        return elicitation_id is not None and self._is_done.get((server, elicitation_id), False)
