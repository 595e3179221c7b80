"""Owns the one contract test of all transports: `check_transport` runs it on any transport and a peer that echoes.

What this is not: a test of MCP. Frames are JSON objects with an id and some padding; the peer sends each one back.

The contract itself stands in `transports.base`; each check below holds one clause of it. A transport passes when every
check returns. That is what makes the memory transport a *verified* fake.
"""

from __future__ import annotations

import json
import sys
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import trio
from attrs import field
from trio.testing import wait_all_tasks_blocked

from mcp_actors.errors import TransportBroken, TransportClosed, TransportError
from mcp_actors.protocol.types import Frame
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_actors.protocol.types import Refusal, RequestId
    from mcp_actors.transports.base import Transport

__all__ = [
    "CHECKS",
    "MakePair",
    "Pair",
    "RecordingSink",
    "check_cancelled_send",
    "check_echo",
    "check_large",
    "check_leaves_nothing",
    "check_many_at_once",
    "check_peer_ends",
    "check_transport",
    "echo_frame",
    "running",
]

# A result of this size is ordinary: a screenshot, a long file.
LARGE_BYTES: Final = 3_000_000
# Cancelling is tried after so many turns of the scheduler, one after the other.
CANCEL_STEPS: Final = 12


class Pair(Protocol):
    """A transport that has not run yet, and its peer, which sends each frame back as it came, in order."""

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        ...

    async def end_peer(self) -> None:
        """Make the peer go away, as a crash would."""


# Makes a fresh pair; leaving the context ends the peer.
MakePair: TypeAlias = "Callable[[], AbstractAsyncContextManager[Pair]]"


@define(eq=False)
class RecordingSink:
    """A `Sink` that keeps what it is told. Requests are announced with `expect`."""

    # Messages, oldest first, as they came.
    delivered: list[bytes] = field(factory=list)
    refused: list[tuple[Frame, Refusal]] = field(factory=list)
    lost: list[tuple[Frame, str]] = field(factory=list)
    # Requests whose answers have begun, oldest first.
    begun: list[Frame] = field(factory=list)
    # How the wire ended, when the transport says so before `run` raises.
    endings: list[TransportError] = field(factory=list)
    _waiting: set[RequestId] = field(factory=set)
    _moved: trio.Event = field(factory=trio.Event)

    def expect(self, request_id: RequestId) -> None:
        """Wait for the answer to this request from now on."""
        self._waiting.add(request_id)

    def forget(self, request_id: RequestId) -> None:
        """Wait no more."""
        self._waiting.discard(request_id)

    def deliver(self, raw: bytes) -> None:
        """Keep a message; one with a known id and no method is the answer."""
        self.delivered.append(raw)
        with suppress(ValueError):
            message = json.loads(raw)
            if isinstance(message, dict) and isinstance(message.get("id"), int | str) and "method" not in message:
                self._waiting.discard(message["id"])
        self._ring()

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """Keep a refusal; it is an answer of its own kind."""
        self.refused.append((frame, refusal))
        self._settle(frame)

    def lose(self, frame: Frame, reason: str) -> None:
        """Keep a loss."""
        self.lost.append((frame, reason))
        self._settle(frame)

    def answering(self, frame: Frame) -> None:
        """Keep that an answer began."""
        self.begun.append(frame)
        self._ring()

    def ended(self, error: TransportError) -> None:
        """Keep how the wire ended."""
        self.endings.append(error)
        self._ring()

    def is_waiting(self, request_id: RequestId) -> bool:
        """Whether this request was announced and has no outcome yet."""
        return request_id in self._waiting

    async def until(self, claim: Callable[[RecordingSink], bool]) -> None:
        """Wait until something that was told makes `claim` true."""
        while not claim(self):
            await self._moved.wait()

    def _settle(self, frame: Frame) -> None:
        if frame.request_id is not None:
            self._waiting.discard(frame.request_id)
        self._ring()

    def _ring(self) -> None:
        moved, self._moved = self._moved, trio.Event()
        moved.set()


def echo_frame(request_id: int, padding: str = "") -> Frame:
    """A frame whose echo is its answer: it has an id and no method inside."""
    data = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"padding": padding}}, ensure_ascii=False)
    return Frame(data.encode(), request_id=request_id, method="echo")


@asynccontextmanager
async def running(transport: Transport, sink: RecordingSink) -> AsyncIterator[None]:
    """Run a transport while the block runs, then cancel it. A broken wire is no error here."""
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[None]) -> None:
            with suppress(TransportBroken):
                await transport.run(sink, task_status=task_status)

        await nursery.start(serve)
        yield
        nursery.cancel_scope.cancel()


async def _echo(transport: Transport, sink: RecordingSink, frame: Frame) -> None:
    """Send a frame and wait for its echo."""
    assert frame.request_id is not None
    sink.expect(frame.request_id)
    await transport.send(frame)
    await sink.until(lambda sink: not sink.is_waiting(frame.request_id or 0))
    assert not sink.lost, f"lost: {sink.lost}"
    assert not sink.refused, f"refused: {sink.refused}"


async def check_echo(make_pair: MakePair) -> None:
    """Frames travel both ways, in order, byte for byte, whatever characters they hold."""
    frames = [
        echo_frame(n, text) for n, text in enumerate(["", "x" * 70_000, "é\u2028\u2029 \\n \U0001f600", "\\u0000"])
    ]
    async with make_pair() as pair:
        sink = RecordingSink()
        async with running(pair.transport, sink):
            for frame in frames:
                await _echo(pair.transport, sink, frame)

    assert sink.delivered == [frame.data for frame in frames]


async def check_many_at_once(make_pair: MakePair) -> None:
    """Frames sent by many tasks at once arrive whole, each once."""
    frames = [echo_frame(n, "y" * (n * 997 % 20_000)) for n in range(50)]
    async with make_pair() as pair:
        sink = RecordingSink()
        async with running(pair.transport, sink), trio.open_nursery() as nursery:
            for frame in frames:
                nursery.start_soon(_echo, pair.transport, sink, frame)

    assert sorted(sink.delivered) == sorted(frame.data for frame in frames)


async def check_large(make_pair: MakePair) -> None:
    """A message of several megabytes travels both ways."""
    frame = echo_frame(1, "z" * LARGE_BYTES)
    async with make_pair() as pair:
        sink = RecordingSink()
        async with running(pair.transport, sink):
            await _echo(pair.transport, sink, frame)

    assert sink.delivered == [frame.data]


async def check_cancelled_send(make_pair: MakePair) -> None:
    """A sender cancelled at any turn leaves the wire whole: what arrives is whole, and the next frame gets its echo."""
    sent: set[bytes] = set()
    async with make_pair() as pair:
        sink = RecordingSink()
        async with running(pair.transport, sink):
            for turns in range(CANCEL_STEPS):
                victim = echo_frame(1000 + turns, "v" * 300_000)
                sink.expect(1000 + turns)
                await _cancelled_after(turns, pair.transport, victim)
                sink.forget(1000 + turns)
                frame = echo_frame(turns)
                await _echo(pair.transport, sink, frame)
                sent |= {victim.data, frame.data}

    assert set(sink.delivered) <= sent
    assert len(sink.delivered) == len(set(sink.delivered))


async def _cancelled_after(turns: int, transport: Transport, frame: Frame) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, frame)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def check_peer_ends(make_pair: MakePair) -> None:
    """When the peer goes away, nobody waits for it: `run` or the next `send` says so, or the sink is told."""
    async with make_pair() as pair:
        sink = RecordingSink()
        transport = pair.transport
        ends: list[TransportError] = []
        async with trio.open_nursery() as nursery:

            async def serve(task_status: trio.TaskStatus[None]) -> None:
                try:
                    await transport.run(sink, task_status=task_status)
                except TransportBroken as exc:
                    ends.append(exc)
                    nursery.cancel_scope.cancel()

            await nursery.start(serve)
            await _echo(transport, sink, echo_frame(1))
            await pair.end_peer()
            if transport.is_exchange:
                sink.expect(2)
                try:
                    await transport.send(echo_frame(2))
                except TransportError as exc:
                    ends.append(exc)
                nursery.cancel_scope.cancel()
            else:
                await trio.sleep_forever()  # until `run` ends, or the test's deadline

    assert ends or sink.lost, "nobody was told that the peer went away"
    assert all(str(end) for end in ends)


async def check_leaves_nothing(make_pair: MakePair) -> None:
    """Leaving `run` ends its tasks and descriptors within its bound, and every later `send` says that it is closed."""
    async with make_pair() as warm:  # what is opened once per process is opened now
        async with running(warm.transport, sink := RecordingSink()):
            await _echo(warm.transport, sink, echo_frame(1))
    async with make_pair() as pair:
        sink = RecordingSink()
        before = _descriptors(), trio.lowlevel.current_statistics().tasks_living
        async with running(pair.transport, sink):
            await _echo(pair.transport, sink, echo_frame(1))
            leaving = trio.current_time()
        assert trio.current_time() - leaving <= pair.transport.shutdown_bound + 0.5
        await wait_all_tasks_blocked(0.05)  # the peer's side of the wire may need a moment
        assert (_descriptors(), trio.lowlevel.current_statistics().tasks_living) <= before
        try:
            await pair.transport.send(echo_frame(2))
        except TransportClosed:
            return
    raise AssertionError("send after run did not raise TransportClosed")


def _descriptors() -> int:
    """Open descriptors of this process; 0 where the system does not tell."""
    table = Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")
    return len(list(table.iterdir())) if table.is_dir() else 0


Check: TypeAlias = "Callable[[MakePair], Awaitable[None]]"

# Each holds one clause of the contract and can be run alone.
CHECKS: Final[tuple[Check, ...]] = (
    check_echo,
    check_many_at_once,
    check_large,
    check_cancelled_send,
    check_peer_ends,
    check_leaves_nothing,
)


async def check_transport(make_pair: MakePair) -> None:
    """Hold a transport to the contract of `transports.base`.

    Args:
        make_pair: makes a fresh transport and a peer that echoes; called for each check.

    Raises:
        AssertionError: a clause does not hold.

    Cancellation:
        Safe. Run it under a deadline: a transport that hangs hangs the check.
    """
    for check in CHECKS:
        await check(make_pair)
