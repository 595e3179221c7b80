"""Owns the clocks of one call: which ran out first, and when the next one does.

What this is not: a timer. `now` is an argument; whoever owns the call sleeps until `next_deadline`.

Rules.
Rule 1: four clocks. *queue* runs until the request is on its way; *first-byte* from then to the first byte of an
answer; *idle* since the last sign of life of this very call; *wall* is the budget of the whole call, of which this
exchange may be one of many (S076, S199-S201).
Rule 2: progress and first bytes reset the idle clock of their own call and no other (S201).
Rule 3: all clocks stop while a person answers, however many questions are open at once (S202).
Rule 4: of clocks that ran out together the one that ran out first is named; on a tie the more specific one.
"""

from __future__ import annotations

import enum
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from attrs import Factory, field

from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from mcp_actors.protocol.budget import Budget

__all__ = ["CallClocks", "CallTimeouts", "Clock", "resolve_timeouts"]


class Clock(enum.StrEnum):
    """What a call can run out of; the value is for error texts."""

    QUEUE = "queue"
    FIRST_BYTE = "first-byte"
    IDLE = "idle"
    WALL = "wall"


@frozen
class CallTimeouts:
    """How long each clock of a call may run, in seconds; infinite where there is none."""

    queue: float = math.inf
    first_byte: float = math.inf
    idle: float = math.inf
    # Of the budget of a call that was given none.
    wall: float = math.inf
    # None of the others runs out sooner than this after an exchange began.
    shortest: float = field(
        default=Factory(lambda self: min(self.queue, self.first_byte, self.idle), takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )


@define(eq=False)
class CallClocks:
    """The clocks of one exchange, from `begun_at` on."""

    timeouts: CallTimeouts
    budget: Budget
    begun_at: float
    # When the request went out; None while it waits to.
    _sent_at: float | None = field(default=None, init=False)
    # Whether anything of an answer has come.
    _is_answered: bool = field(default=False, init=False)
    # The last sign of life: sent, first byte, or progress.
    _alive_at: float = field(init=False)
    # How many questions are open, and since when the first of them.
    _questions: int = field(default=0, init=False)
    _paused_at: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self._alive_at = self.begun_at

    # ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────

    def sent(self, now: float) -> None:
        """Learn that the request is on its way. A resend starts the clocks of its exchange anew, never the wall's."""
        self._sent_at = self._alive_at = self._moment(now)
        self._is_answered = False

    def answered(self, now: float) -> None:
        """Learn that the first byte of an answer has come."""
        self._is_answered = True
        self._alive_at = self._moment(now)

    def progressed(self, now: float) -> None:
        """Learn of progress, which proves that the request arrived."""
        self.answered(now)

    def pause(self, now: float) -> None:
        """A person is asked: stop all clocks. Nests; each `pause` wants its `resume`."""
        if self._questions == 0:
            self._paused_at = now
            self.budget.pause(now)
        self._questions += 1

    def resume(self, now: float) -> None:
        """The person has answered: go on where the clocks stood, once no question is open any more."""
        if self._questions == 0:
            return
        self._questions -= 1
        if self._questions:
            return
        self.budget.resume(now)
        gap = max(0.0, now - self._paused_at)
        self.begun_at += gap
        self._alive_at += gap
        if self._sent_at is not None:
            self._sent_at += gap

    # ── what is due ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def next_deadline(self) -> float:
        """The moment at which the next clock runs out, if nothing happens; infinite while paused or without clocks."""
        return math.inf if self._questions else min(self._deadlines().values())

    def expired(self, now: float) -> Clock | None:
        """Name the clock that has run out; None while none has."""
        if self._questions:
            return None
        clock, deadline = min(self._deadlines().items(), key=lambda item: item[1])
        return clock if deadline <= now else None

    def timeout_of(self, clock: Clock) -> float:
        """How long this clock may run, for error texts."""
        return {
            Clock.QUEUE: self.timeouts.queue,
            Clock.FIRST_BYTE: self.timeouts.first_byte,
            Clock.IDLE: self.timeouts.idle,
            Clock.WALL: self.budget.timeout,
        }[clock]

    def _deadlines(self) -> dict[Clock, float]:
        """Maps running clock -> when it runs out, the more specific first."""
        ours = self.timeouts
        running: dict[Clock, float] = {}
        if self._sent_at is None:
            running[Clock.QUEUE] = self.begun_at + ours.queue
        else:
            if not self._is_answered:
                running[Clock.FIRST_BYTE] = self._sent_at + ours.first_byte
            running[Clock.IDLE] = self._alive_at + ours.idle
        running[Clock.WALL] = self.budget.deadline
        return running

    def _moment(self, now: float) -> float:
        """While paused, time stands still at the moment of the pause."""
        return self._paused_at if self._questions else now


# ── how long each may run ───────────────────────────────────────────────────────────────────────────────────────────

# Transports that reach over a network; of these, those that have a first byte of their own (S076).
_NETWORK: Final = frozenset({"http", "sse", "ws"})
_HAVE_FIRST_BYTE: Final = frozenset({"http", "sse"})
# Internal kinds, and what runs in this very process: their idle clock is off (S201).
_WITHOUT_IDLE: Final = frozenset({"sse-ide", "ws-ide", "sdk", "memory"})

FIRST_BYTE_TIMEOUT: Final = 60.0
NETWORK_IDLE_TIMEOUT: Final = 300.0
LOCAL_IDLE_TIMEOUT: Final = 1800.0
# An entry's `timeout` below this is ignored (S200).
MIN_ENTRY_TIMEOUT: Final = 1.0


@lru_cache(maxsize=64)  # most servers of a fleet have the same
def resolve_timeouts(
    kind: str,
    *,
    call_timeout: float,
    default: float = math.nan,
    entry_timeout: float | None = None,
    idle_timeout: float | None = None,
    first_byte_timeout: float | None = None,
) -> CallTimeouts:
    """Decide how long the clocks of a call may run.

    Args:
        kind: of the transport: "stdio", "http", "sse", "ws", "sse-ide", "ws-ide", "sdk", "memory".
        call_timeout: the wall clock of all calls (``MCP_TOOL_TIMEOUT``).
        default: what `call_timeout` is when nobody set it; that one never feeds another clock (S076).
        entry_timeout: set for this server; wins over `call_timeout`.
        idle_timeout: set for all calls; 0 is off, None the transport's default.
        first_byte_timeout: set for this server; None is 60 s, raised by whatever the call was given (S076).

    Source:
        S076, S199-S201.
    """
    entry = entry_timeout if entry_timeout is not None and entry_timeout >= MIN_ENTRY_TIMEOUT else None
    given = entry if entry is not None else None if call_timeout == default else call_timeout
    wall = call_timeout if given is None else given
    return CallTimeouts(
        first_byte=_first_byte(kind, given, first_byte_timeout),
        idle=_idle(kind, wall, entry, idle_timeout),
        wall=wall,
    )


def _first_byte(kind: str, given: float | None, own: float | None) -> float:
    if kind not in _HAVE_FIRST_BYTE:
        return math.inf
    if own is not None:
        return own
    # What was given to the call raises it and never shortens it.
    return max(FIRST_BYTE_TIMEOUT, given or 0.0)


def _idle(kind: str, wall: float, entry: float | None, own: float | None) -> float:
    if kind in _WITHOUT_IDLE or own == 0:
        return math.inf
    idle = own if own is not None else NETWORK_IDLE_TIMEOUT if kind in _NETWORK else LOCAL_IDLE_TIMEOUT
    # An entry's timeout is a floor. The wall's is a ceiling: there, the wall is what runs out.
    idle = max(idle, entry or 0.0)
    return idle if idle < wall else math.inf
