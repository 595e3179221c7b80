"""Owns transports inside one process: two linked ends, and a transport to a server that runs in a task of ours (S088).

What this is not: a shortcut. Messages cross as bytes, in order, and are never handed over inside the sender's call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.errors import TransportBroken, TransportClosed
from mcp_actors.transports.base import Diagnostics
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.protocol.types import Frame, ServerInfo
    from mcp_actors.transports.base import Sink

__all__ = ["MemoryLink", "MemoryTransport", "open_links"]

# Messages in transit per direction: enough to overlap work, few enough that a slow reader is felt by the writer.
CAPACITY: Final = 64


@define(eq=False)
class MemoryLink:
    """One end of a linked pair. Each end has one reader at most."""

    _outgoing: trio.MemorySendChannel[bytes] = field(repr=False)
    _incoming: trio.MemoryReceiveChannel[bytes] = field(repr=False)

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the other end is `CAPACITY` messages behind.

        Raises:
            trio.BrokenResourceError: the other end is closed.
            trio.ClosedResourceError: this end is closed.

        Cancellation:
            Safe. The message is sent or it is not.
        """
        await self._outgoing.send(data)

    @property
    def is_full(self) -> bool:
        """Whether `send` waits."""
        now = self._outgoing.statistics()
        return now.current_buffer_used >= now.max_buffer_size

    async def receive(self) -> bytes:
        """Receive the next message.

        Raises:
            trio.EndOfChannel: the other end is closed and everything it sent has been received.
            trio.ClosedResourceError: this end is closed.

        Cancellation:
            Safe. No message is lost.
        """
        return await self._incoming.receive()

    def close(self) -> None:
        """Close both directions of this end; the other end sees the end of the channel. Harmless when repeated."""
        self._outgoing.close()
        self._incoming.close()


def open_links(capacity: int = CAPACITY) -> tuple[MemoryLink, MemoryLink]:
    """Make two linked ends, `capacity` messages deep in each direction."""
    to_right, from_left = trio.open_memory_channel[bytes](capacity)
    to_left, from_right = trio.open_memory_channel[bytes](capacity)
    return MemoryLink(to_right, from_right), MemoryLink(to_left, from_left)


class MemoryTransport:
    """A wire to `serve`, which is given its end of a link and serves until that ends.

    `serve` runs inside `run`. When it returns or raises, the wire is broken; the exception is the cause.
    """

    kind = "memory"
    is_exchange = False
    is_eager = False
    # What `serve` gets to finish after its link ended.
    shutdown_bound = 1.0
    # It was given none.
    secrets = ()

    def __init__(self, serve: Callable[[MemoryLink], Awaitable[None]]) -> None:
        self._serve = serve
        # Our end while `run` runs; None before and after.
        self._link: MemoryLink | None = None
        # What `serve` raised.
        self._failure: Exception | None = None

    @property
    def is_full(self) -> bool:
        """Whether `send` waits until the server has read some of what was sent."""
        return self._link is not None and self._link.is_full

    def __repr__(self) -> str:
        return f"<MemoryTransport {'open' if self._link is not None else 'closed'}>"

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start `serve` and deliver what it sends. Runs until cancelled or until `serve` ends.

        Raises:
            TransportBroken: `serve` ended; what it raised is the cause.

        Cancellation:
            Closes the link, and cancels `serve` when it has not ended within `shutdown_bound` seconds.
        """
        ours, theirs = open_links()
        async with trio.open_nursery() as nursery:
            # Shielded, so that it sees the end of its link before it sees a cancellation.
            life = trio.CancelScope(shield=True)
            nursery.start_soon(self._live, life, theirs)
            self._link = ours
            task_status.started()
            try:
                while True:
                    sink.deliver(await ours.receive())
            except trio.EndOfChannel:
                sink.ended(TransportBroken(reason=self._ending()))  # serve may take its time to return
            finally:
                self._link = None
                ours.close()
                life.deadline = trio.current_time() + self.shutdown_bound
        raise TransportBroken(reason=self._ending()) from self._failure

    async def send(self, frame: Frame) -> None:
        """Send one frame.

        Raises:
            TransportBroken: `serve` closed its end.
            TransportClosed: `run` is not running.

        Cancellation:
            Safe. The frame is sent or it is not.
        """
        link = self._link
        if link is None:
            raise TransportClosed
        try:
            await link.send(frame.data)
        except trio.BrokenResourceError as exc:
            raise TransportBroken(reason=self._ending()) from (self._failure or exc)
        except trio.ClosedResourceError as exc:
            raise TransportClosed from exc

    def session_ready(self, info: ServerInfo) -> None:
        """Nothing depends on it here."""

    def diagnostics(self) -> Diagnostics:
        """Describe the wire. There is little to say."""
        return Diagnostics()

    async def _live(self, life: trio.CancelScope, link: MemoryLink) -> None:
        with life:
            try:
                await self._serve(link)
            except Exception as exc:  # noqa: BLE001 - a foreign program's border: whatever it raises breaks the wire
                self._failure = exc
            finally:
                link.close()

    def _ending(self) -> str:
        if self._failure is None:
            return "the server in this process ended"
        return f"the server in this process failed: {type(self._failure).__name__}: {self._failure}"
