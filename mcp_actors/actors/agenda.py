"""Owns `Agenda`: who is due at which moment, however many they are and however often they change their mind.

What this is not: a clock. `now` is an argument, and nobody is woken.

Theory. A heap whose entries are crossed out by being forgotten: what `_moments` does not say any more, or says
otherwise, is stepped over when its turn comes. Where more of them are crossed out than not, the heap is made anew. So n
keys cost n log n comparisons, whatever becomes of them.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Agenda"]

K = TypeVar("K")

# So many entries may be crossed out in any heap: a small one is not made anew all the time.
SLACK: Final = 64


@define(eq=False)
class Agenda(Generic[K]):
    """Maps key -> the moment at which it is due, infinite for never."""

    _moments: dict[K, float] = field(factory=dict, init=False)
    # (moment, number, key); numbers keep keys from being compared.
    _heap: list[tuple[float, int, K]] = field(factory=list, init=False)
    _numbers: Iterator[int] = field(factory=count, init=False, repr=False)

    def __contains__(self, key: K) -> bool:
        return key in self._moments

    def set(self, key: K, moment: float) -> None:
        """Note when it is due; what was noted of it before counts no more."""
        self._moments[key] = moment
        heapq.heappush(self._heap, (moment, next(self._numbers), key))
        if len(self._heap) > 2 * len(self._moments) + SLACK:
            self._heap = [(moment, next(self._numbers), key) for key, moment in self._moments.items()]
            heapq.heapify(self._heap)

    def drop(self, key: K) -> None:
        """Forget it; also one that was never noted."""
        self._moments.pop(key, None)

    @property
    def first(self) -> float:
        """The first moment at which somebody is due; infinite for never."""
        while self._heap:
            moment, _, key = self._heap[0]
            if self._moments.get(key) == moment:
                return moment
            heapq.heappop(self._heap)
        return math.inf

    def take(self, now: float) -> list[K]:
        """Cross out those who are due, earliest first."""
        due: list[K] = []
        while self.first <= now < math.inf:
            key = heapq.heappop(self._heap)[2]
            del self._moments[key]
            due.append(key)
        return due
