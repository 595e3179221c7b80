"""Owns the frames of our own making that wait for the wire: the handshake, answers, cancels.

What this is not: the frames of calls, which their callers write (`calls`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import McpActorsError
from mcp_actors.protocol.types import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.transports.base import Transport

__all__ = ["Outgoing"]

logger = logging.getLogger("mcp_actors.connection")

# Frames that may wait; a peer that asks more without reading our answers is cut.
SIZE: Final = 256
# One of them may take so long on the wire, in seconds; only HTTP can be so slow.
TIMEOUT: Final = 30.0


class Outgoing:
    """Frames that wait for the wire, oldest first. `send_all` is its task; `post` never waits."""

    def __init__(self, transport: Transport, *, server: str, on_sent: Callable[[], None]) -> None:
        self._transport = transport
        self._server = server
        # Told after each frame.
        self._on_sent = on_sent
        # Frames posted that are not on the wire yet.
        self.unsent = 0
        # Whether a frame that cannot be sent is the end; so it is until the handshake is over.
        self.is_strict = True
        self._sender, self._waiting = trio.open_memory_channel[Frame](SIZE)

    def post(self, frame: Frame) -> bool:
        """Put a frame in the queue; false when there are too many."""
        try:
            self._sender.send_nowait(frame)
        except trio.WouldBlock:
            return False
        except trio.BrokenResourceError:
            return True  # it is ending: nobody is left to be told
        self.unsent += 1
        return True

    async def send_all(self) -> None:
        """Send one frame after the other. Runs until cancelled.

        Raises:
            McpActorsError: a frame of the handshake could not be sent.
        """
        with self._waiting:
            async for frame in self._waiting:
                try:
                    await self._send(frame)
                except McpActorsError as error:
                    if self.is_strict:
                        raise
                    logger.debug("[MCP:%s] x lost %s: %s", self._server, frame.method or "an answer", error.describe())
                self.unsent -= 1
                self._on_sent()

    async def _send(self, frame: Frame) -> None:
        if self._transport.is_exchange:
            with trio.move_on_after(TIMEOUT):
                await self._transport.send(frame)
        else:
            await self._transport.send(frame)
