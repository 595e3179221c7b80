"""Owns the time that a call may take, all its requests and pauses together.

What this is not: a timer, nor the clocks of one exchange (`protocol.clocks`), of which this is the wall's. `now` is an
argument; whoever does something for the call stops at `deadline`.

Rules.
Rule 1: made once, where a call begins: what follows (rounds, repetitions, a list that is looked at again, the polls of
a task) gets what is left (S199, S200).
Rule 2: it stands still while a person answers, however many questions are open at once (S202).
"""

from __future__ import annotations

import math

from mcp_actors.errors import LocalProtocolError

__all__ = ["Budget", "require_seconds"]


def require_seconds(timeout: float) -> None:
    """Raise `LocalProtocolError` for what is no number of seconds: by NaN, nothing would ever be over."""
    if not isinstance(timeout, float | int) or timeout != timeout:
        raise LocalProtocolError(reason="a timeout is a number of seconds")


class Budget:
    """What is left of the time of one call."""

    # By hand, as `Slot`: every call makes one.
    __slots__ = ("_left", "_questions", "deadline", "timeout")

    def __init__(self, timeout: float, now: float) -> None:
        """Begin a call now.

        Args:
            timeout: seconds; none or less: it is spent.

        Raises:
            LocalProtocolError: `timeout` is no number.
        """
        require_seconds(timeout)
        # Seconds that were given, for error texts; infinite where none were.
        self.timeout = timeout
        # When it is spent, if nobody is asked; infinite while somebody is.
        self.deadline = now + timeout
        # How many questions are open, and what was left when the first of them was put.
        self._questions = 0
        self._left = timeout

    def left(self, now: float) -> float:
        """Seconds that the call may still take; none or less once it is spent."""
        return self._left if self._questions else self.deadline - now

    def pause(self, now: float) -> None:
        """A person is asked: stand still. Nests; each `pause` wants its `resume`."""
        if not self._questions:
            self._left = self.deadline - now
            self.deadline = math.inf
        self._questions += 1

    def resume(self, now: float) -> None:
        """The person has answered: go on, once no question is open any more."""
        if not self._questions:
            return
        self._questions -= 1
        if not self._questions:
            self.deadline = now + self._left
