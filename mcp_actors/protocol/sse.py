"""Owns the parser of server-sent events: bytes of any chunking in, events out.

What this is not: JSON, reconnecting, or clamping of `retry`; the transport does those.

Theory. The WHATWG rules, on bytes and always UTF-8: a line ends with CR, LF or CR LF, a blank line ends an event, and a
BOM at the start of the stream is skipped. One deviation on purpose: a block without data that carries an `id` or a
`retry` is reported too, with `data` None, so that the cursor of a resumable stream moves (fault 41, C02).
Source: WHATWG HTML, "Server-sent events", section "Interpreting an event stream"; S082.
"""

from __future__ import annotations

from typing import Final

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.chunks import ChunkBuffer
from mcp_actors.values import define, frozen

__all__ = ["SseEvent", "SseParser"]

_BOM: Final = b"\xef\xbb\xbf"
# More digits than any sane pause has; int() of endless ones would be quadratic.
_MAX_RETRY_DIGITS: Final = 15


@frozen
class SseEvent:
    """One block of the stream."""

    # "message" where the peer named none.
    event: str
    # Data lines joined by LF; None when there is nothing to deliver.
    data: bytes | None = field(repr=lambda data: "None" if data is None else f"<{len(data)} bytes>")
    # The id given in this very block; None when it gave none ("" resets the cursor).
    id: str | None = None
    # Milliseconds to wait before reconnecting, as sent.
    retry: int | None = None


@define(eq=False)
class SseParser:
    """Cuts an event stream into events. Linear in the size, bounded in memory."""

    # Longest event accepted: its data, or one line of anything.
    max_event_bytes: int
    # The line that has not ended yet.
    _line: ChunkBuffer = field(factory=ChunkBuffer, init=False, repr=False)
    # The last chunk ended with CR: an LF that follows belongs to it.
    _skips_lf: bool = field(default=False, init=False)
    _is_first_line: bool = field(default=True, init=False)
    # Fields of the block under way. Most events have one data line, which then is never copied again.
    _data: bytes | bytearray | None = field(default=None, init=False, repr=False)
    _event: str = field(default="", init=False)
    _id: str | None = field(default=None, init=False)
    _retry: int | None = field(default=None, init=False)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take what one read gave and return the events it completes, oldest first.

        Raises:
            RemoteProtocolError: an event is larger than the bound.
        """
        if self._skips_lf and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._skips_lf = False
        if chunk:
            self._skips_lf = chunk[-1:] == b"\r"
        events: list[SseEvent] = []
        for piece in chunk.splitlines(keepends=True):  # of bytes: CR, LF and CR LF only
            end = 2 if piece.endswith(b"\r\n") else 1 if piece[-1:] in (b"\r", b"\n") else 0
            if end == 0:  # only the last piece can be unfinished
                self._line.append(piece)
                self._check(len(self._line))
                continue
            line = piece[:-end]
            if self._line:
                self._line.append(line)
                line = self._line.take()
            if line:
                self._take_line(line)
            else:
                self._is_first_line = False
                event = self._finish_event()
                if event is not None:
                    events.append(event)
        return events

    def _take_line(self, line: bytes) -> None:
        """Apply one line that is not blank to the block under way."""
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        colon = line.find(b":")
        if colon == 0:
            return  # a comment: keep-alive
        if colon < 0:
            name, value = line, b""
        else:
            name = line[:colon]
            # One space is removed, not all (fault 40).
            value = line[colon + 2 :] if line[colon + 1 : colon + 2] == b" " else line[colon + 1 :]
        if name == b"data":
            self._take_data(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self._retry = int(value) if len(value) <= _MAX_RETRY_DIGITS else 10**_MAX_RETRY_DIGITS

    def _take_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        self._check(len(self._data))

    def _finish_event(self) -> SseEvent | None:
        """Close the block under way; None when it held nothing of use."""
        data = bytes(self._data) if self._data else None  # bytes of bytes is no copy
        event = None
        if data is not None or self._id is not None or self._retry is not None:
            event = SseEvent(event=self._event or "message", data=data, id=self._id, retry=self._retry)
        self._data, self._event, self._id, self._retry = None, "", None, None
        return event

    def _check(self, size: int) -> None:
        if size > self.max_event_bytes:
            raise RemoteProtocolError(reason=f"message too large: an event of more than {self.max_event_bytes} bytes")
