"""Owns `FaultyTransport`: a wrapper that breaks any transport on purpose, by context managers.

What this is not: a transport of its own. Without a fault it changes nothing, which `check_transport` verifies.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from attrs import evolve, field

from mcp_actors.errors import McpActorsError, TransportBroken
from mcp_actors.groups import bare_errors
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_actors.errors import TransportError
    from mcp_actors.protocol.types import Frame, Refusal, RequestId, ServerInfo
    from mcp_actors.transports.base import Diagnostics, Sink, Transport

__all__ = ["FaultyTransport"]

CUT_REASON = "the wire was cut by the test"


class FaultyTransport:
    """Wraps `inner`. Each fault is a context manager and lasts as long as its block; a cut wire stays cut."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.kind = inner.kind
        self.is_exchange = inner.is_exchange
        self.is_eager = inner.is_eager
        # Frames that were sent, and that arrived, faults or not.
        self.frames_sent = 0
        self.frames_received = 0
        # Frames left until the cut; None while no cut is planned.
        self._left: int | None = None
        # Set when the wire is cut.
        self._cut = trio.Event()
        self._delay = 0.0
        self._is_garbled = False
        self._is_deaf = False
        # Scopes of sends under way; a cut ends them.
        self._sends: set[trio.CancelScope] = set()

    def __repr__(self) -> str:
        return f"<FaultyTransport {self.inner!r} | {self.frames_sent} sent, {self.frames_received} received>"

    @property
    def shutdown_bound(self) -> float:
        """Seconds that leaving `run` may take at most."""
        return self.inner.shutdown_bound

    @property
    def is_full(self) -> bool:
        """Whether `send` has to wait, for room or because frames are held back."""
        return self._delay > 0 or self.inner.is_full

    @contextmanager
    def cut_after(self, frames: int) -> Iterator[None]:
        """Break the wire once `frames` more frames have passed, in either direction; 0 breaks it now."""
        self._left = frames
        if frames == 0:
            self.cut()
        try:
            yield
        finally:
            self._left = None

    @contextmanager
    def delay(self, seconds: float) -> Iterator[None]:
        """Hold every frame back for so long, in either direction; the order stays."""
        before, self._delay = self._delay, seconds
        try:
            yield
        finally:
            self._delay = before

    @contextmanager
    def garble(self) -> Iterator[None]:
        """Replace what arrives by bytes that are no JSON."""
        self._is_garbled = True
        try:
            yield
        finally:
            self._is_garbled = False

    @contextmanager
    def half_close(self) -> Iterator[None]:
        """Swallow what we send; what they send still arrives. So does a peer look whose machine is gone."""
        self._is_deaf = True
        try:
            yield
        finally:
            self._is_deaf = False

    def cut(self) -> None:
        """Break the wire now."""
        self._cut.set()
        for scope in list(self._sends):
            scope.cancel()

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the inner transport until it ends or the wire is cut.

        Raises:
            TransportBroken: it was cut, or the inner transport broke.
            ConnectFailed: the inner transport never came up.

        Cancellation:
            As the inner transport.
        """
        faulty = _FaultySink(self, sink)
        with trio.CancelScope() as life, bare_errors():
            async with trio.open_nursery() as helpers:
                helpers.start_soon(self._watch, life, sink)
                helpers.start_soon(faulty.pump)
                try:
                    await self.inner.run(faulty, task_status=task_status)
                except McpActorsError:
                    if not self._cut.is_set():
                        faulty.flush()
                    raise
                helpers.cancel_scope.cancel()
        if self._cut.is_set():
            raise TransportBroken(reason=CUT_REASON)

    async def send(self, frame: Frame) -> None:
        """Send through the faults of the moment.

        Raises:
            TransportBroken: the wire is cut, or the inner transport says so.
            TransportClosed: `run` is not running.

        Cancellation:
            As the inner transport.
        """
        if self._delay:
            await trio.sleep(self._delay)
        if self._cut.is_set():
            raise TransportBroken(reason=CUT_REASON)
        with trio.CancelScope() as scope:
            self._sends.add(scope)
            try:
                if self._is_deaf and self.inner.is_exchange:
                    await trio.sleep_forever()  # the exchange never gets its answer
                elif not self._is_deaf:
                    await self.inner.send(frame)
                self.frames_sent += 1
            finally:
                self._sends.discard(scope)
        if scope.cancelled_caught:
            raise TransportBroken(reason=CUT_REASON)
        self.passed()

    def session_ready(self, info: ServerInfo) -> None:
        """Hand on."""
        self.inner.session_ready(info)

    @property
    def secrets(self) -> Sequence[str]:
        """Those of the inner transport."""
        return self.inner.secrets

    def diagnostics(self) -> Diagnostics:
        """What the inner transport says, with a note when the wire was cut."""
        inner = self.inner.diagnostics()
        return evolve(inner, notes=(*inner.notes, CUT_REASON)) if self._cut.is_set() else inner

    def passed(self) -> None:
        """Count a frame that passed against a planned cut."""
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.cut()

    def is_open(self) -> bool:
        """Whether the wire is not cut."""
        return not self._cut.is_set()

    def spoil(self, raw: bytes) -> bytes:
        """What arrives of these bytes."""
        return b"\xff{" + raw[: len(raw) // 2] if self._is_garbled else raw

    @property
    def lag(self) -> float:
        """Seconds that a frame is held back now."""
        return self._delay

    async def _watch(self, life: trio.CancelScope, sink: Sink) -> None:
        await self._cut.wait()
        sink.ended(TransportBroken(reason=CUT_REASON))
        life.cancel()


@define(eq=False)
class _FaultySink:
    """Stands between the inner transport and the real sink."""

    _wire: FaultyTransport
    _sink: Sink
    # What is held back: moment and deed, oldest first.
    _held: deque[tuple[float, Callable[[], None]]] = field(factory=deque)
    _bell: trio.Event = field(factory=trio.Event)

    def deliver(self, raw: bytes) -> None:
        raw = self._wire.spoil(raw)
        self._wire.frames_received += 1
        self._pass(lambda: self._sink.deliver(raw))

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        self._pass(lambda: self._sink.refuse(frame, refusal))

    def lose(self, frame: Frame, reason: str) -> None:
        def deed() -> None:
            if frame.request_id is None or self._sink.is_waiting(
                frame.request_id
            ):  # its answer may have been held back
                self._sink.lose(frame, reason)

        self._pass(deed)

    def answering(self, frame: Frame) -> None:
        self._pass(lambda: self._sink.answering(frame))

    def ended(self, error: TransportError) -> None:
        if self._wire.is_open():
            self.flush()  # what was on its way arrives before the end
            self._sink.ended(error)

    def is_waiting(self, request_id: RequestId) -> bool:
        return self._sink.is_waiting(request_id)

    def flush(self) -> None:
        """Let everything held back arrive now."""
        while self._held:
            self._held.popleft()[1]()

    async def pump(self) -> None:
        """Let what is held back arrive at its moment. Runs until cancelled."""
        while True:
            while self._held:
                moment, deed = self._held[0]
                await trio.sleep_until(moment)
                self._held.popleft()
                deed()
            self._bell = trio.Event()
            await self._bell.wait()

    def _pass(self, deed: Callable[[], None]) -> None:
        if not self._wire.is_open():
            return
        if self._wire.lag or self._held:
            self._held.append((trio.current_time() + self._wire.lag, deed))
            self._bell.set()
        else:
            deed()
        self._wire.passed()
