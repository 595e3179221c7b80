"""Owns what is seen of a peer below a WebSocket: signs of life, floods, a handshake that ends early or goes otherwise.

What this is not: WebSocket (`websocket`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.transports.frame_portions import Portions
from mcp_actors.transports.http_answer import BROKEN_ERRORS, NO_WORDS, explain
from mcp_actors.transports.websocket_handshake import HEAD_END
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WatchedStream"]

WRITE_BYTES: Final = 256 * 1024
HANDSHAKE_READ_BYTES: Final = 4096
# Of the answer to the handshake, headers and body.
MAX_HANDSHAKE_BYTES: Final = 64 * 1024


@define(eq=False)
class WatchedStream(trio.abc.Stream):
    """A stream that notes signs of life of its peer, and bounds what a handshake may send."""

    _stream: trio.abc.Stream
    # When the peer last gave a sign of life, on trio's clock.
    alive: float = field(factory=trio.current_time)
    # Called when the stream ends during the handshake; None afterwards.
    _on_end: Callable[[], None] | None = None
    # What the handshake brought so far.
    heard: bytes = field(default=b"", repr=False)
    # What was read and not handed on; empty but in a flood of small frames.
    _kept: bytes = field(default=b"", repr=False)
    _portions: Portions = field(factory=Portions, repr=False)
    # Why it broke, for people; empty while it has not, and where nobody said.
    fault: str = ""

    def begin_handshake(self, on_end: Callable[[], None]) -> None:
        """Call `on_end` when the stream ends, or brings too much, before `end_handshake`."""
        self._on_end = on_end

    def end_handshake(self) -> None:
        """Let everything through from now on."""
        self._portions.measure(self.heard.partition(HEAD_END)[2])  # frames that came along were handed on
        self._on_end, self.heard = None, b""

    async def wait_silent(self, interval: float, timeout: float, ask: Callable[[], None]) -> None:
        """Wait until the peer is silent for `timeout` seconds after it was asked for a sign of life.

        Args:
            interval: seconds of silence after which it is asked.
            timeout: a length that is part of what is waited for, not a bound of the waiting.
            ask: asks it, without waiting.

        Cancellation:
            Safe.

        Source:
            S127.
        """
        while True:
            await trio.sleep_until(self.alive + interval)
            mark = self.alive
            if trio.current_time() < mark + interval:
                continue
            ask()
            await trio.sleep(timeout)
            if self.alive == mark:
                return

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As trio's, but few frames at once; a broken stream has ended."""
        if self._kept:
            await trio.lowlevel.checkpoint()
            return self._portion(self._kept)
        try:
            data = bytes(await self._stream.receive_some(max_bytes if self._on_end is None else HANDSHAKE_READ_BYTES))
        except BROKEN_ERRORS as exc:
            data = self._note(exc)
        self.alive = trio.current_time()
        if self._on_end is None:
            return self._portion(data)
        self.heard += data
        if not data or len(self.heard) > MAX_HANDSHAKE_BYTES:
            self._on_end()
            return b""
        return data

    def _portion(self, data: bytes) -> bytes:
        """Hand on the start of what was read, and keep the rest."""
        size = self._portions.measure(data)
        self._kept = data[size:]
        return data[:size]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As trio's; each part of a large message that got away is a sign of life.

        Cancellation:
            Unsafe: a part may be sent.
        """
        rest = memoryview(data)
        try:
            while len(rest) > WRITE_BYTES:
                await self._stream.send_all(rest[:WRITE_BYTES])
                rest = rest[WRITE_BYTES:]
                self.alive = trio.current_time()
            await self._stream.send_all(rest)
        except BROKEN_ERRORS as exc:
            self._note(exc)
            if self._on_end is not None:
                self._on_end()
            raise

    async def wait_send_all_might_not_block(self) -> None:
        """As trio's."""
        await self._stream.wait_send_all_might_not_block()

    def _note(self, exc: BaseException) -> bytes:
        """Keep the first thing that went wrong, where there are words for it; nothing can be read any more."""
        words = explain(exc)
        if not self.fault and words != NO_WORDS:
            self.fault = words
        return b""

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
