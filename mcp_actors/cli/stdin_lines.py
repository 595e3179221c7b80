"""Owns the lines that a person types: what was read of the terminal and not yet asked for.

What this is not: what a line means (`prompter`).
"""

from __future__ import annotations

import os
import sys

import trio
from attrs import define, field

__all__ = ["StdinLines"]


@define(eq=False)
class StdinLines:
    """Reads lines of a terminal, cancellably: no thread stays behind that would swallow the next line."""

    _fd: int = 0
    _held: bytes = field(default=b"", init=False)
    _is_ended: bool = field(default=False, init=False)

    async def read_line(self) -> str | None:
        """The next line without its end; None at the end of input. Cancellation: safe; what was typed is kept."""
        while b"\n" not in self._held and not self._is_ended:
            if sys.platform == "win32":
                chunk = await trio.to_thread.run_sync(os.read, self._fd, 4096, abandon_on_cancel=True)
            else:
                await trio.lowlevel.wait_readable(self._fd)
                chunk = os.read(self._fd, 4096)
            self._held += chunk
            self._is_ended = not chunk
        line, end, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r") if line or end else None
