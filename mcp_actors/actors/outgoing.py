"""Owns the frames of our own making that wait for the wire: the handshake, answers, cancels.

What this is not: the frames of calls, which their callers write (`calls`).

Rule 1: only answers speak against a peer. It decides how many it wants, and one that asks without reading them is cut;
how many calls are withdrawn at once is its clients' doing, and no reason to end the connection (S204). Either waits
within a bound of frames and of bytes.
Rule 2: frames of a handshake have its deadline and no other (fault 89).
Rule 3: a message stream takes all of them in order; what a handshake wants sent, whoever shakes hands sends, without a
task. Where each frame is an exchange of its own, that of an answer may hang for its whole time: answers, handshakes and
other frames then go in lanes of their own, several at once in each, so that no answer holds up a cancel, nor a few of
them the rest.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.errors import McpActorsError
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.actors.bell import Bell
    from mcp_actors.protocol.types import Frame
    from mcp_actors.transports.base import Transport

__all__ = ["Outgoing"]

logger = logging.getLogger("mcp_actors.connection")

# Answers that may wait: as many as the requests that one read of a pipe can bring.
MAX_ANSWERS: Final = 8192
# Other frames that may wait; those beyond are lost.
MAX_OURS: Final = 65_536
# Bytes of either, and one frame.
MAX_BYTES: Final = 8 * 1024 * 1024
# One of them may take so long on the wire, in seconds; only HTTP can be so slow.
TIMEOUT: Final = 30.0
# Exchanges of a lane at once: as many connections as browsers open to one host, and a few.
MAX_EXCHANGES: Final = 8


@define(eq=False)
class _Load:
    """Frames of one kind that are not on the wire yet, and what they weigh."""

    max_frames: int
    frames: int = 0
    size: int = 0

    @property
    def is_full(self) -> bool:
        return self.frames >= self.max_frames or self.size >= MAX_BYTES

    def count(self, frame: Frame, step: int) -> None:
        self.frames += step
        self.size += step * len(frame.data)


@define(eq=False)
class _Lane:
    """Frames that wait for the same turn."""

    # How many may be on their way at once.
    width: int
    # Oldest first; with each, whether the handshake depends on it.
    waiting: deque[tuple[Frame, bool]] = field(factory=deque, repr=False)
    # How many are on their way.
    active: int = 0


class Outgoing:
    """Frames that wait for the wire. `post` never waits; what is posted goes out in tasks of the nursery.

    On a message stream frames of a handshake wait for `flush`, or for a task that sends others.
    """

    def __init__(self, transport: Transport, nursery: trio.Nursery, *, server: str, bell: Bell) -> None:
        self._transport = transport
        self._nursery = nursery
        self._server = server
        # Rung after each frame.
        self._bell = bell
        # Frames of a handshake that are not on the wire yet.
        self.unsent = 0
        self._answers, self._ours = _Load(MAX_ANSWERS), _Load(MAX_OURS)
        both = _Lane(1)
        self._answering, self._other, self._handshake = (
            (_Lane(MAX_EXCHANGES), _Lane(MAX_EXCHANGES), _Lane(MAX_EXCHANGES))
            if transport.is_exchange
            else (both, both, both)
        )
        self._is_over = False

    def post(self, frame: Frame, *, is_handshake: bool = False) -> bool:
        """Put a frame in its lane; false when it is one answer too many.

        Args:
            frame: what is to go out.
            is_handshake: a handshake depends on it; one that cannot be sent is the end.
        """
        if self._is_over:
            return True  # nobody is left to be told
        is_answer = not frame.method
        if is_answer and self._answers.is_full:
            return False
        if not (is_answer or is_handshake) and self._ours.is_full:
            logger.debug("[MCP:%s] x lost %s: too many wait", self._server, frame.method)
            return True
        self._count(frame, 1, is_handshake=is_handshake)
        lane = self._answering if is_answer else self._handshake if is_handshake else self._other
        lane.waiting.append((frame, is_handshake))
        if lane.active < lane.width and (self._transport.is_exchange or not is_handshake):
            lane.active += 1
            self._nursery.start_soon(self._send_all, lane)
        return True

    async def flush(self) -> bool:
        """Send what a handshake waits for, in this task, on a message stream; false when there is nothing to send.

        Raises:
            McpActorsError: a frame of the handshake could not be sent.
        """
        lane = self._handshake
        if self._transport.is_exchange or lane.active or not lane.waiting:
            return False
        lane.active += 1
        while self.unsent and lane.waiting:
            await self._send_next(lane)
        if lane.waiting:  # others, maybe without end
            self._nursery.start_soon(self._send_all, lane)
        else:
            lane.active -= 1
        return True

    def close(self) -> None:
        """Take no more frames: the nursery is about to end."""
        self._is_over = True

    def _count(self, frame: Frame, step: int, *, is_handshake: bool) -> None:
        (self._ours if frame.method else self._answers).count(frame, step)
        self.unsent += step * is_handshake

    async def _send_all(self, lane: _Lane) -> None:
        """Send frames of a lane, one after the other, until none waits.

        Raises:
            McpActorsError: a frame of the handshake could not be sent.
        """
        while lane.waiting:
            await self._send_next(lane)
        lane.active -= 1

    async def _send_next(self, lane: _Lane) -> None:
        frame, is_handshake = lane.waiting.popleft()
        try:
            await self._send(frame, is_handshake=is_handshake)
        except McpActorsError as error:
            if is_handshake:
                raise
            logger.debug("[MCP:%s] x lost %s: %s", self._server, frame.method or "an answer", error.describe())
        self._count(frame, -1, is_handshake=is_handshake)
        self._bell.ring()

    async def _send(self, frame: Frame, *, is_handshake: bool) -> None:
        if self._transport.is_exchange and not is_handshake:
            with trio.move_on_after(TIMEOUT):
                await self._transport.send(frame)
        else:
            await self._transport.send(frame)
