"""Owns what a file is after it was parsed: its value, and the way to the positions in it.

What this is not: the parsing (`jsonc`), nor what the values mean (`formats`, `validate`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.config.notes import KeyPath
    from mcp_actors.jsontypes import Json

__all__ = ["Document", "find_odd_number"]


@define
class Document:
    """A parsed file."""

    value: Json
    # The text in which positions count: comments blanked, lengths kept. Empty when there are none (TOML).
    text: str = field(repr=False)
    # Keys that stand twice in one object, in file order; the last one is used.
    duplicates: tuple[str, ...] = ()
    # Whether numbers in it may be infinite or none; see `find_odd_number`.
    has_odd_numbers: bool = False
    _places: dict[KeyPath, int] | None = field(default=None, repr=False, init=False)
    _lines: list[int] = field(factory=list, repr=False, init=False)

    def locate(self, path: KeyPath) -> tuple[int, int] | None:
        """Line and column (from 1) of `path`, or of its nearest parent that stands in the file."""
        if not self.text:
            return None
        if self._places is None:
            from mcp_actors.config.positions import key_places, line_starts  # asked for where something is to be told

            self._places = key_places(self.text)
            self._lines = line_starts(self.text)
        while path and path not in self._places:
            path = path[:-1]
        offset = self._places.get(path, 0)
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1


def find_odd_number(value: Json) -> KeyPath | None:
    """Where in `value` the first number stands that is infinite or none; None when there is none."""
    if isinstance(value, float):
        return None if math.isfinite(value) else ()
    steps: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, Mapping):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    return next(((step, *path) for step, inner in steps if (path := find_odd_number(inner)) is not None), None)
