"""Owns the frames of our own making that wait for the wire: the handshake, answers, cancels.

What this is not: the frames of calls, which their callers write (`calls`).

Rule 1: only answers speak against a peer. It decides how many it wants, and one that asks without reading them is cut;
how many calls are withdrawn at once is its clients' doing, and no reason to end the connection (S204).
Rule 2: frames of a handshake have its deadline and no other (fault 89).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import McpActorsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.protocol.types import Frame
    from mcp_actors.transports.base import Transport

__all__ = ["Outgoing"]

logger = logging.getLogger("mcp_actors.connection")

# Answers that may wait: as many as the requests that one read of a pipe can bring.
MAX_ANSWERS: Final = 8192
# Other frames that may wait, a few megabytes of cancels; those beyond are lost.
MAX_OURS: Final = 65_536
# One of them may take so long on the wire, in seconds; only HTTP can be so slow.
TIMEOUT: Final = 30.0


class Outgoing:
    """Frames that wait for the wire, oldest first. `post` never waits; a task runs while there are any."""

    def __init__(
        self, transport: Transport, nursery: trio.Nursery, *, server: str, on_sent: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._nursery = nursery
        self._server = server
        # Told after each frame.
        self._on_sent = on_sent
        # Frames that are not on the wire yet; the first may be on its way.
        self._frames: deque[Frame] = deque()
        # Of these, how many are answers.
        self._answers = 0
        # Whether a frame that cannot be sent is the end; so it is until the handshake is over.
        self.is_strict = True

    @property
    def unsent(self) -> int:
        """How many frames are not on the wire yet."""
        return len(self._frames)

    def post(self, frame: Frame) -> bool:
        """Put a frame in the queue; false when it is one answer too many."""
        is_answer = not frame.method
        if is_answer and self._answers >= MAX_ANSWERS:
            return False
        if not is_answer and self.unsent - self._answers >= MAX_OURS:
            logger.debug("[MCP:%s] x lost %s: too many wait", self._server, frame.method)
            return True
        self._answers += is_answer
        self._frames.append(frame)
        if len(self._frames) == 1:
            self._nursery.start_soon(self._send_all)
        return True

    async def _send_all(self) -> None:
        """Send one frame after the other, as long as there are any.

        Raises:
            McpActorsError: a frame of the handshake could not be sent.
        """
        while self._frames:
            frame = self._frames[0]
            try:
                await self._send(frame)
            except McpActorsError as error:
                if self.is_strict:
                    raise
                logger.debug("[MCP:%s] x lost %s: %s", self._server, frame.method or "an answer", error.describe())
            del self._frames[0]
            self._answers -= not frame.method
            self._on_sent()

    async def _send(self, frame: Frame) -> None:
        if self._transport.is_exchange and not self.is_strict:
            with trio.move_on_after(TIMEOUT):
                await self._transport.send(frame)
        else:
            await self._transport.send(frame)
