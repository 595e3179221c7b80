"""Owns the last lines of a child that are no messages, cleaned and bounded, and how many a second may be logged.

What this is not: a log. It decides which lines may be logged; its owner logs them. No clock: `now` is passed in.

Rule 1: memory is bounded whatever is written (fault 7); Rule 2: a line is split on bytes and decoded whole, so a
character that came in two reads is exact (fault 13); Rule 3: nothing that moves a cursor or hides text survives;
Rule 4: nor a secret that the child was given (S352).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.sent_secrets import starred
from mcp_actors.shown import cut, visible
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_LINES", "MAX_LINE_CHARS", "LastLines", "LineLimit", "clean_line"]

MAX_LINE_CHARS: Final = 500
MAX_LINES: Final = 40
# A line is cut to so many bytes before it is decoded: four for each character, and room for escapes.
_MAX_LINE_BYTES: Final = 4 * MAX_LINE_CHARS + 512


def clean_line(raw: bytes, secrets: Sequence[str] = ()) -> str:
    """Decode one line, take out what could fool a terminal, star secrets, and cut it. Blanks stay: of a traceback."""
    text = raw[:_MAX_LINE_BYTES].decode("utf-8", "replace").replace("\t", "    ")
    return cut(starred(visible(text).rstrip(), secrets), MAX_LINE_CHARS)


@define(eq=False)
class LastLines:
    """Splits bytes into lines and keeps the last `MAX_LINES` of them."""

    # What is starred in them, longest first.
    secrets: tuple[str, ...] = field(default=(), repr=False)
    # Oldest first.
    _lines: tuple[str, ...] = field(default=(), repr=False)
    # The line that has not ended yet, cut.
    _open: bytes = field(default=b"", repr=False)

    def feed(self, chunk: bytes) -> list[str]:
        """Take what was read. Returns the lines that it ended, at most `MAX_LINES`, the last of them."""
        ended = chunk.split(b"\n")
        ended[0] = self._open + ended[0][: _MAX_LINE_BYTES - len(self._open)]
        self._open = ended.pop()[:_MAX_LINE_BYTES]
        fresh = [line for line in map(self._shown, ended[-MAX_LINES:]) if line]
        self._lines = (*self._lines, *fresh)[-MAX_LINES:]
        return fresh

    def add(self, raw: bytes) -> None:
        """Take one whole line."""
        self._lines = (*self._lines, self._shown(raw))[-MAX_LINES:]

    def tail(self) -> tuple[str, ...]:
        """The kept lines and the open one, oldest first."""
        last = self._shown(self._open) if self._open else ""
        return (*self._lines, last) if last else self._lines

    def _shown(self, raw: bytes) -> str:
        return clean_line(raw, self.secrets)


@define(eq=False)
class LineLimit:
    """Lets at most `burst` lines through for each second, and counts the others (fault 8)."""

    burst: int = 20
    # Second that is being counted, and how many were let through in it.
    _second: int = -1
    _used: int = 0
    _held: int = 0

    def admit(self, lines: list[str], now: float) -> list[str]:
        """Choose what may be logged now. A gap is named by the first line after it."""
        if int(now) != self._second:
            self._second, self._used = int(now), 0
        room = max(self.burst - self._used, 0)
        chosen = lines[:room]
        self._used += len(chosen)
        if chosen and self._held:
            chosen.insert(0, f"({self._held} lines not shown)")
            self._held = 0
        self._held += max(len(lines) - room, 0)
        return chosen
