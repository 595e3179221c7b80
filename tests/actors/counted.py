"""Owns `Counted`: seconds that count how often they are compared, so that a test can tell n log n from n squared."""

from __future__ import annotations

__all__ = ["Counted"]


class Counted(float):
    """A moment or a duration; what it is added to becomes one as well."""

    # Of all there are; a test begins at 0.
    comparisons = 0

    def __lt__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) < float(other)

    def __le__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) <= float(other)

    def __gt__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) > float(other)

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return float(self) == other

    def __add__(self, other: float) -> Counted:
        return Counted(float(self) + float(other))

    __radd__ = __add__
    __hash__ = float.__hash__
