"""Owns how much of a WebSocket's bytes is handed on at once: as much as holds few frames. Pure.

What this is not: WebSocket. It reads lengths alone, and judges nothing: what is no frame is found out by the library,
which takes all that it is given in one go. Thirty thousand empty frames fit into one read, and keep everybody waiting
for half a second (invariant 4).
"""

from __future__ import annotations

from typing import Final

from mcp_actors.values import define

__all__ = ["MAX_FRAMES", "Portions"]

# A few milliseconds of the dearest.
MAX_FRAMES: Final = 256
MASK_BYTES: Final = 4
# Marker in a header's second byte -> bytes of length that follow it (RFC 6455, section 5.2).
WIDTHS: Final = {126: 2, 127: 8}


@define(eq=False)
class Portions:
    """Follows the frames of one direction."""

    # Bytes of the frame's payload that are still to come.
    _rest: int = 0
    # What there is of a header that is not whole yet.
    _head: bytes = b""

    def measure(self, data: bytes) -> int:
        """How many bytes of `data` to hand on now; the others come first the next time."""
        at = frames = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
                at += step
            elif frames == MAX_FRAMES:
                break
            else:
                self._head += data[at : at + 1]
                at += 1
                size = _payload_bytes(self._head)
                if size is not None:
                    self._rest, self._head = size, b""
                    frames += 1
        return at


def _payload_bytes(head: bytes) -> int | None:
    """Length of the payload behind a header; None while the header is not whole."""
    if len(head) < 2:
        return None
    marker = head[1] & 0x7F
    width = WIDTHS.get(marker, 0)
    if len(head) < 2 + width + MASK_BYTES * (head[1] >> 7):
        return None
    return int.from_bytes(head[2 : 2 + width]) if width else marker
