"""Owns the contract between a transport and the connection that drives it.

What this is not: MCP. A transport moves whole messages and reads nothing inside them.

The contract, which `testing.contracts.check_transport` checks on every transport:

1. `run` opens the wire, reports it with ``task_status.started()`` and serves until it is cancelled or the wire ends;
   then it raises `TransportBroken` (they ended it) or `ConnectFailed` (it never came up). It is called once.
2. Everything that arrives goes to ``sink.deliver`` or ``sink.refuse``, which are synchronous, never raise and never
   block.
3. `send` takes a frame once and whole. A caller that is cancelled inside `send` leaves no half-written message behind.
   On message streams (stdio, memory, websocket) it returns when the frame is on its way, and an error means that the
   wire is gone; where it `is_eager` it takes frames before it is open, too. On HTTP it is the exchange itself and
   returns when no more of it can arrive on this exchange; it raises where no answer began (`ConnectFailed`: the frame
   did not arrive; `TransportBroken`: it may have), which concerns this frame alone.
4. Leaving `run`, by whatever way, leaves no process, descriptor, thread or task behind; clean-up is shielded and
   bounded by `shutdown_bound` seconds.
5. What one read brought is delivered in portions, a `Turn` each, with a checkpoint between them: a peer that floods us
   with small messages, some of which are dear to understand, keeps nobody else waiting (invariant 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio

    from mcp_actors.errors import TransportError
    from mcp_actors.protocol.types import Frame, Refusal, RequestId, ServerInfo

__all__ = ["Diagnostics", "PassingSink", "Sink", "Transport", "Turn"]

# Bytes that are delivered before the others have their turn, a few milliseconds of the dearest (a batch of pings); a
# message costs so many besides its own.
TURN_BYTES: Final = 8192
MESSAGE_BYTES: Final = 128


@define(eq=False)
class Turn:
    """What one reader may deliver before it passes a checkpoint."""

    _left: int = TURN_BYTES

    def spend(self, size: int) -> bool:
        """Note a message of so many bytes; True when the turn is over, and the next one begun."""
        self._left -= size + MESSAGE_BYTES
        if self._left > 0:
            return False
        self._left = TURN_BYTES
        return True


@frozen
class Diagnostics:
    """What a transport can tell of itself at any time, without side effects. No secrets, bounded."""

    # Process id of the child and of its process group, where there is a child.
    pid: int | None = None
    # Exit status in the shell's way: code, or minus the signal's number; None while it runs.
    exit_status: int | None = None
    # Last lines of standard error, oldest first, cleaned and cut.
    stderr_tail: tuple[str, ...] = ()
    # Lines on standard output that were no messages: how many, and the last few, cleaned and cut (fault 9).
    noise_count: int = 0
    noise_tail: tuple[str, ...] = ()
    # What is odd and let pass, in words for a person.
    notes: tuple[str, ...] = ()


class Sink(Protocol):
    """Where a transport puts what arrives. Every method is synchronous, never raises and never blocks."""

    def deliver(self, raw: bytes) -> None:
        """Take one JSON text (a message, or a batch of them)."""

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Take an HTTP answer to `frame` that is not a message."""

    def lose(self, frame: Frame, reason: str) -> None:
        """Learn that no answer to `frame` can come any more on this transport (202 or end of stream, C10, fault 42)."""

    def answering(self, frame: Frame) -> None:
        """Learn that the first byte of an answer to `frame` has come, where a transport can tell (S076)."""

    def ended(self, error: TransportError) -> None:
        """Learn that nothing can arrive any more, and why: told before a clean-up that may take seconds (fault 17)."""

    def is_waiting(self, request_id: RequestId) -> bool:
        """Whether somebody still waits for the answer to this request of ours."""
        ...


@define(eq=False)
class PassingSink:
    """A sink in front of another one; whoever stands between overrides what it looks at."""

    _sink: Sink

    def deliver(self, raw: bytes) -> None:
        """See `Sink`, as for all below."""
        self._sink.deliver(raw)

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        self._sink.refuse(frame, refusal)

    def lose(self, frame: Frame, reason: str) -> None:
        self._sink.lose(frame, reason)

    def answering(self, frame: Frame) -> None:
        self._sink.answering(frame)

    def ended(self, error: TransportError) -> None:
        self._sink.ended(error)

    def is_waiting(self, request_id: RequestId) -> bool:
        return self._sink.is_waiting(request_id)


class Transport(Protocol):
    """One wire to one server. See the contract in this module's docstring."""

    # "stdio", "http", "sse", "ws", "memory"; for status and logs.
    kind: str
    # Whether `send` lasts as long as its answer may come (HTTP); the connection then runs it in a task of its own.
    is_exchange: bool
    # Whether it takes messages before it is open, and sends them then.
    is_eager: bool

    @property
    def is_full(self) -> bool:
        """Whether `send` has to wait for room now; the connection then runs it in a task of its own. No side effects.

        Never where it is an exchange: that is one anyway.
        """
        ...

    @property
    def shutdown_bound(self) -> float:
        """Seconds that leaving `run` may take at most."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """What the peer knows us by, longest first: stars stand for it in what it says of failures (fault 102)."""
        ...

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None]) -> None:
        """Open the wire and serve it. Runs until cancelled or until the wire ends.

        Raises:
            ConnectFailed: it never came up.
            TransportBroken: it ended, from their side.

        Cancellation:
            Ends the wire in order, shielded for at most `shutdown_bound` seconds.
        """

    async def send(self, frame: Frame) -> None:
        """Put one frame on the wire.

        Raises:
            TransportBroken: the wire is gone.
            TransportClosed: `run` has been left.

        Cancellation:
            Safe. The frame goes out whole or not at all.
        """

    def session_ready(self, info: ServerInfo) -> None:
        """Learn the outcome of the handshake (opens the optional GET stream of legacy HTTP)."""

    def diagnostics(self) -> Diagnostics:
        """Describe the wire as it is now. No side effects."""
        ...
