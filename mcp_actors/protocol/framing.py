"""Owns newline framing: bytes of any chunking in, whole lines out, and one line per message back.

What this is not: JSON. A line may hold anything; whoever reads it decides (fault 9).

Theory. Each byte is searched once and copied once, so the time is linear in the size, and the memory stays near the
line's even when it comes in single bytes. Lines are cut on bytes (0x0A), never on text: a character split between reads
is whole again before anybody decodes it (fault 13).
"""

from __future__ import annotations

import re
from typing import Final

from attrs import field

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.chunks import ChunkBuffer
from mcp_actors.values import define

__all__ = ["LineFramer", "encode_line"]

_BLANK_LINES: Final = rb"\n(?:\r?\n)+"


@define(eq=False)
class LineFramer:
    """Cuts a byte stream into lines. LF and CR LF end a line; blank lines are dropped (faults 10-14)."""

    # Longest line accepted, without its end.
    max_line_bytes: int
    # The line that has not ended yet.
    _pending: ChunkBuffer = field(factory=ChunkBuffer, init=False, repr=False)
    # A line broke the bound; there is no way to find the next one that is worth the bytes.
    _is_over: bool = field(default=False, init=False)

    @property
    def is_over(self) -> bool:
        """Whether a line broke the bound: the next `feed` raises, if the last one did not."""
        return self._is_over

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take what one read gave and return the lines it completes, oldest first.

        Raises:
            RemoteProtocolError: a line is longer than the bound (fault 12). Lines that were complete before it are
                returned; the call that has none to return raises, and so does every later one.
        """
        if self._is_over:
            return self._overrun([])
        pending = self._pending
        # Blank lines may come by the hundred thousand, at a byte or two each. Each pass halves a run of them.
        while b"\n\n" in chunk:
            chunk = chunk.replace(b"\n\n", b"\n")
        if b"\n\r\n" in chunk:
            chunk = re.sub(_BLANK_LINES, b"\n", chunk)
        parts = chunk.split(b"\n")
        if pending and len(parts) > 1:
            pending.append(parts[0])
            parts[0] = pending.take()
        rest = parts.pop()
        lines: list[bytes] = []
        for part in parts:
            line = part[:-1] if part[-1:] == b"\r" else part
            if len(line) > self.max_line_bytes:
                return self._overrun(lines)
            if line and not line.isspace():
                lines.append(line)
        if rest:
            pending.append(rest)
            if len(pending) > self.max_line_bytes + 1:  # the one may be a CR
                return self._overrun(lines)
        return lines

    def _overrun(self, lines: list[bytes]) -> list[bytes]:
        self._is_over = True
        self._pending.clear()
        if not lines:
            raise RemoteProtocolError(reason=f"message too large: a line of more than {self.max_line_bytes} bytes")
        return lines


def encode_line(frame_data: bytes) -> bytes:
    """Make a line of one message: exactly one LF, on every platform (fault 14).

    Raises:
        LocalProtocolError: the data has a line break inside, which MCP forbids ("MUST NOT contain embedded newlines").
    """
    if b"\n" in frame_data or b"\r" in frame_data:
        raise LocalProtocolError(reason="a message with a line break inside cannot be framed")
    return frame_data + b"\n"
