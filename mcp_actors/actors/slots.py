"""Owns `Slot` and `Request`: where one caller waits for the answer to the request that it wrote.

What this is not: a mailbox. A call takes no hop, no nursery and no cancel scope; the caller parks its own task here and
the connection's reader wakes it (architecture, "Control plane and data plane").
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.clocks import CallClocks, CallTimeouts
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.events import ProgressReceived
    from mcp_actors.protocol.types import RequestId

__all__ = ["OpenSlot", "Progress", "ProgressCallback", "Request", "SendAgain", "Slot"]


@frozen
class Progress:
    """How far a call has come: `progress` rises; `total` and `message` where the server gave them."""

    progress: float
    total: float | None = None
    message: str | None = None


UNLIMITED: Final = CallTimeouts()

# Called in the caller's own task; may be a coroutine function. Reports that come faster than it runs coalesce (B16).
ProgressCallback: TypeAlias = Callable[[Progress], Awaitable[None] | None]


@frozen(eq=False)
class Request:
    """What one request is, on its way from a door down to the wire. Each of its rounds is one with other params."""

    # Such as "tools/call".
    method: str
    # Without the era's ``_meta`` fields.
    params: JsonObject | None
    # Of the call that it is part of.
    budget: Budget
    timeouts: CallTimeouts = UNLIMITED
    on_progress: ProgressCallback | None = None
    # Further mirrored values, for transports that have headers.
    headers: Sequence[tuple[str, str]] = ()


class SendAgain(Exception):
    """The request certainly did not run and may be sent once more (S205). Never leaves `calls`."""


class Slot:
    """One caller's wait for one answer. Filled at most once; a second filling is ignored."""

    __slots__ = (
        "_clocks",
        "_error",
        "_progress",
        "_reporting",
        "_result",
        "_task",
        "begun_at",
        "budget",
        "deadline",
        "exchange",
        "sent_at",
    )

    def __init__(self, now: float, timeouts: CallTimeouts, budget: Budget) -> None:
        self.begun_at = now
        # What is left of the call's time, of which this exchange may be one of many.
        self.budget = budget
        # When `calls` look at it, on trio's clock: no clock runs out before.
        self.deadline = now + timeouts.shortest
        if budget.deadline < self.deadline:
            self.deadline = budget.deadline
        # The clocks, once something happened to one of them; most calls are answered before (see `clocks`).
        self._clocks: CallClocks | CallTimeouts = timeouts
        # The running exchange, or wait for room on the wire; cancelled when nobody waits any more.
        self.exchange: trio.CancelScope | None = None
        # When the transport had the request: from then on the server may have seen it. None before.
        self.sent_at: float | None = None
        self._result: bytes | None = None
        self._error: BaseException | None = None
        self._progress: Progress | None = None
        # While the caller's coroutine for progress runs.
        self._reporting: trio.CancelScope | None = None
        self._task: trio.lowlevel.Task | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be filled."""
        return self._result is None and self._error is None

    @property
    def clocks(self) -> CallClocks:
        """The clocks of this call; made when first asked for."""
        if not isinstance(self._clocks, CallClocks):
            self._clocks = CallClocks(self._clocks, self.budget, self.begun_at)
            if self.sent_at is not None:
                self._clocks.sent(self.sent_at)
        return self._clocks

    def sent(self, now: float) -> None:
        """Learn that the transport has the request: the silence of the server counts from now (S076, S201)."""
        self.sent_at = now
        if isinstance(self._clocks, CallClocks):
            self._clocks.sent(now)

    def fill(self, result: bytes) -> None:
        """Give the answer and wake the caller."""
        if self.is_open:
            self._result = result
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Give a failure and wake the caller, also out of its coroutine for progress: a deadline holds there too."""
        if self.is_open:
            self._error = error
            if self._reporting is not None:
                self._reporting.cancel()
            self._wake()

    def report(self, event: ProgressReceived[Slot]) -> None:
        """Note the newest progress and wake the caller."""
        self._progress = Progress(event.progress, event.total, event.message)
        self.clocks.progressed(trio.current_time())
        self._wake()

    def _wake(self) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None

    async def wait(self, on_progress: ProgressCallback | None = None) -> bytes:
        """Wait for the answer; progress is reported meanwhile, in this task.

        Raises:
            Whatever the slot is failed with, and whatever `on_progress` raises.

        Cancellation:
            Safe. The slot stays open: withdraw the request.
        """
        while True:
            if self._progress is not None and self._error is None:
                progress, self._progress = self._progress, None
                if on_progress is not None:
                    waiting = on_progress(progress)
                    if inspect.isawaitable(waiting):
                        with trio.CancelScope() as self._reporting:
                            await waiting
                        self._reporting = None
                continue
            if self._error is not None:
                raise self._error
            if self._result is not None:
                return self._result
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._withdraw)

    def _withdraw(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class OpenSlot(Slot):
    """The slot of a request that stays open for long: no task waits at it, its end is told where it happens."""

    __slots__ = ("_on_end", "request_id")

    def __init__(self, on_end: Callable[[OpenSlot], None]) -> None:
        super().__init__(0.0, UNLIMITED, Budget(math.inf, 0.0))
        # What it waits for; None before it was sent.
        self.request_id: RequestId | None = None
        # Told once. Must not block or raise.
        self._on_end = on_end

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None where it was filled, or is open."""
        return self._error

    def report(self, event: ProgressReceived[Slot]) -> None:
        """Nobody waits for progress."""

    def _wake(self) -> None:
        self._on_end(self)
