"""Owns the decision what to do with a child that ended: restart after a backoff, park, or leave it.

What this is not: the naming of an end by its cause (`exits`), nor the doing (`child`). Time and chance are arguments.

Rules.

1. Every start of a process counts: more than `intensity` starts within `period` park the child, whoever asked for the
   starts and however well each of them began (invariant 6, fault 91). A life that has begun is not cut short: where its
   first process dies of the era probe it may take one more than that (A02).
2. Failed tries in a row back off exponentially; `max_tries` of them park the child (S116).
3. The row ends with proof of health, which is work done or `stable_after` seconds of life, never a handshake.
4. What a restart cannot help (a login, a refusal) is not restarted.
5. A server that says of itself that it cannot serve just now is tried a few times more, whatever its restart type.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.config.specs import RestartPolicy, RestartType
from mcp_actors.errors import ConnectFailed, TransportError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Decision",
    "Exit",
    "ExitKind",
    "History",
    "Leave",
    "Park",
    "RestartAfter",
    "decide",
    "may_start",
]


# The longest pause that a server can ask for, in seconds (fault 46).
MAX_RETRY_AFTER: Final = 60.0
# How often a server that is left as it ends is tried again all the same while it answers that this passes, and the
# longest pause that it may ask for then: somebody waits (S119).
FIRST_TRIES: Final = 3
FIRST_PATIENCE: Final = 10.0


class ExitKind(enum.Enum):
    """How a child ended."""

    NORMAL = "exit"  # in order, by itself
    SHUTDOWN = "shutdown"  # we ended it, which is no failure (S142)
    CRASH = "crash"  # weather; a restart may help
    TIMEOUT = "timeout"  # weather as well, named for people
    EXHAUSTED = "exhausted"  # this machine ran out of descriptors, processes or memory; that passes
    NEEDS_LOGIN = "needs-auth"  # a person is needed
    REFUSED = "refused"  # the same attempt would fail the same way
    BUG = "bug"  # ours; restarted under the same intensity


@frozen
class Exit:
    """The end of one life of a child."""

    kind: ExitKind
    cause: BaseException | None = None
    # Whether the handshake had ended well.
    was_ready: bool = False
    # Whether it did work or lived long enough (rule 3).
    was_proven: bool = False

    @property
    def reason(self) -> str:
        """Reason code for the status."""
        if self.kind in (ExitKind.CRASH, ExitKind.REFUSED) and isinstance(self.cause, TransportError):
            if self.cause.exit_status is not None:
                return "exit"
            if self.cause.http_status is not None:
                return "http"
            if isinstance(self.cause, ConnectFailed) and self.cause.code is not None:
                return self.cause.code
            if self.kind is ExitKind.CRASH and isinstance(self.cause, ConnectFailed):
                return "unreachable"
        return self.kind.value


@frozen
class History:
    """What is remembered of a child's lives. Moments are seconds on trio's clock, oldest first."""

    starts: tuple[float, ...] = ()
    # Failed tries since the last proof of health.
    tries: int = 0
    # One line each of the recent failures, oldest first, at most ten.
    failures: tuple[str, ...] = ()

    def started(self, now: float, period: float) -> History:
        """With a start at `now`; starts older than `period` are forgotten."""
        return History((*(at for at in self.starts if now - at < period), now), self.tries, self.failures)

    def ended(self, end: Exit) -> History:
        """With the end of a life."""
        if end.kind is ExitKind.SHUTDOWN:
            return self
        line = str(end.cause).partition("\n")[0] if end.cause is not None else end.kind.value
        tries = 1 if end.was_proven else self.tries + 1
        return History(self.starts, tries, (*self.failures, line)[-10:])


@frozen
class RestartAfter:
    """Start it again in `delay` seconds."""

    delay: float


@frozen
class Park:
    """Give up: leave it failed; probe it again in `probe` seconds, None: only when asked."""

    reason: str
    probe: float | None = None


@frozen
class Leave:
    """Leave it as it ended; only a call, a login or a person starts it again."""


Decision: TypeAlias = RestartAfter | Park | Leave

_FAILURES: Final = frozenset({ExitKind.CRASH, ExitKind.TIMEOUT, ExitKind.EXHAUSTED, ExitKind.BUG})
_RESTARTED: Final[Mapping[RestartType, frozenset[ExitKind]]] = {
    RestartType.PERMANENT: _FAILURES | {ExitKind.NORMAL},
    RestartType.TRANSIENT: _FAILURES,
    RestartType.TEMPORARY: frozenset({ExitKind.EXHAUSTED}),
}


def may_start(history: History, policy: RestartPolicy, now: float) -> bool:
    """Whether one more start stays within the intensity (rule 1)."""
    return sum(now - at < policy.period for at in history.starts) < policy.intensity


def decide(
    end: Exit, history: History, restart: RestartType, policy: RestartPolicy, *, now: float, chance: float = 1.0
) -> Decision:
    """Say what to do with a child that ended.

    Args:
        end: how it ended; `history` already holds it.
        history: its lives so far.
        restart: its restart type.
        policy: its numbers.
        now: this moment.
        chance: in (0, 1]; where the policy has jitter the backoff is multiplied by it.

    Source:
        S116-S120, S411, faults 43, 46, 90, 91.
    """
    if end.kind not in _RESTARTED[restart] and not _is_turned_away(end, history):
        return Leave()
    if not may_start(history, policy, now):
        return Park("crash-loop", policy.park_probe)
    if history.tries > policy.max_tries:
        return Park("gave-up", policy.park_probe)
    delay = _backoff(policy, history.tries)
    delay = delay * chance if policy.has_jitter else delay
    asked = end.cause.retry_after if isinstance(end.cause, TransportError) else None
    return RestartAfter(delay if asked is None else min(max(delay, asked), MAX_RETRY_AFTER))


def _is_turned_away(end: Exit, history: History) -> bool:
    """Whether a server was reached and said that it cannot serve just now (429, 5xx), and not too often (rule 5)."""
    cause = end.cause
    if end.kind is not ExitKind.CRASH or end.was_ready or not isinstance(cause, TransportError):
        return False
    is_passing = cause.http_status is not None and (cause.retry_after or 0.0) <= FIRST_PATIENCE
    return is_passing and history.tries <= FIRST_TRIES


def _backoff(policy: RestartPolicy, tries: int) -> float:
    """Seconds after so many failed tries: whoever lets a server be tried for ever gets there by the thousand."""
    if policy.backoff_first <= 0:
        return 0.0
    try:
        return min(policy.backoff_first * float(policy.backoff_factor) ** max(tries - 1, 0), policy.backoff_max)
    except OverflowError:
        return policy.backoff_max
