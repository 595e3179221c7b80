"""Owns the lines that a person types: what was read of the terminal and not yet asked for.

What this is not: what a line means (`prompter`).
"""

from __future__ import annotations

import os
import sys
from typing import Final

import trio
from attrs import field

from mcp_actors.values import define

__all__ = ["StdinLines"]

# Of a line; a terminal takes 4096, an address that is pasted into a pipe may be longer. What is longer is no line.
MAX_LINE_BYTES: Final = 64 * 1024


@define(eq=False)
class StdinLines:
    """Reads lines of a terminal, cancellably: no thread stays behind that would swallow the next line."""

    _fd: int = 0
    _held: bytes = field(default=b"", init=False)
    _is_ended: bool = field(default=False, init=False)

    async def read_line(self) -> str | None:
        """The next line without its end; None at the end of input. Cancellation: safe; what was typed is kept."""
        while b"\n" not in self._held and not self._is_ended:
            chunk = await self._read()
            self._held += chunk
            self._is_ended = not chunk or len(self._held) > MAX_LINE_BYTES
        line, end, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r") if line or end else None

    async def _read(self) -> bytes:
        if sys.platform == "win32":
            return await trio.to_thread.run_sync(os.read, self._fd, 4096, abandon_on_cancel=True)
        try:
            await trio.lowlevel.wait_readable(self._fd)
        except PermissionError:  # a file, or /dev/null: there is nothing to wait for
            await trio.lowlevel.checkpoint()
        return os.read(self._fd, 4096)
