"""Owns the public states of a server, their transitions as one table, and the published `ServerStatus`.

What this is not: the decision to restart (`restarts`), nor the task that lives through the states (`child`).

Theory. Five public states (S096) say what a user may expect; the phase says what is being done about it, and the reason
code says why. A state without a reason is a bug: every status carries one.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, TypedDict

from mcp_actors.errors import LocalProtocolError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

__all__ = ["TRANSITIONS", "Phase", "ServerState", "ServerStatus", "StatusChanges", "advance"]


class ServerState(enum.StrEnum):
    """What a user may expect of the server (S096)."""

    PENDING = "pending"
    CONNECTED = "connected"
    FAILED = "failed"
    NEEDS_AUTH = "needs-auth"
    DISABLED = "disabled"


class Phase(enum.StrEnum):
    """What is being done about it. In `pending` a try waits, runs, or is to come; a missing login is none (S099)."""

    QUEUED = "queued"  # waits for a permit of its batch, or for what an earlier run left of it to end
    CONNECTING = "connecting"  # opens the transport and shakes hands
    LISTING = "listing"  # fetches the lists
    READY = "ready"  # takes calls
    BACKING_OFF = "backing-off"  # waits before the next try
    PARKED = "parked"  # gave up; waits for a person, a call or the slow probe
    STOPPING = "stopping"  # runs the stop ladder
    STOPPED = "stopped"  # nothing of it lives


_P, _C, _F, _N, _D = ServerState

# From -> the states that may follow (S097, S098, S128). Staying in a state (another phase or reason) is always legal.
TRANSITIONS: Final[Mapping[ServerState, frozenset[ServerState]]] = {
    _P: frozenset({_C, _F, _N, _D}),
    _C: frozenset({_P, _F, _N, _D}),
    _F: frozenset({_P, _D}),
    _N: frozenset({_P, _D}),
    _D: frozenset({_P}),
}


class StatusChanges(TypedDict, total=False):
    """What may change of a status beside state, phase and reason; see `ServerStatus` for each."""

    transport: str
    generation: int
    era: str | None
    revision: str | None
    tools: int | None
    resources: int | None
    prompts: int | None
    pid: int | None
    error: str | None
    next_retry: float | None
    attempt: int
    restarts: int
    queue_seconds: float | None
    connect_seconds: float | None
    list_seconds: float | None
    remedy: str | None
    warnings: tuple[str, ...]


# With a dict, by which `_changed` copies it.
@frozen(slots=False)
class ServerStatus:
    """One server as published: desired nothing, owned by nobody, safe to keep. Moments are seconds on trio's clock.

    Reading it never connects, authenticates or blocks. It holds no secret.
    """

    name: str
    state: ServerState
    phase: Phase
    # Reason code, also of who disabled it (S101):
    # "queued", "leftover", "ready", "user", "policy", "timeout", "exit", "http", "refused", "crash-loop", ...
    reason: str
    # What the entry names; where it names none, "http" until a connection found "sse" (fault 34).
    transport: str
    scope: str
    # When this state (not phase) began.
    since: float = 0.0
    # Generation: counts the connections of this server; a stale one's events are ignored (S126).
    generation: int = 0
    era: str | None = None
    revision: str | None = None
    # How many of each the server listed; None while unknown or not offered.
    tools: int | None = None
    resources: int | None = None
    prompts: int | None = None
    pid: int | None = None
    # Last error, one or more lines, cleaned; None when the last attempt ended well.
    error: str | None = None
    # When the next try is due; None when none is planned.
    next_retry: float | None = None
    # Tries made since the connection last proved itself.
    attempt: int = 0
    restarts: int = 0
    # Seconds of the last successful connect: waiting for a permit, from the permit to READY, from READY to all lists.
    queue_seconds: float | None = None
    connect_seconds: float | None = None
    list_seconds: float | None = None
    # What to do about it, for people.
    remedy: str | None = None
    warnings: tuple[str, ...] = ()

    def changed(self, **changes: Unpack[StatusChanges]) -> ServerStatus:
        """The same with these changes."""
        return _changed(self, **changes)

    @property
    def is_connected(self) -> bool:
        """Whether it takes calls."""
        return self.state is ServerState.CONNECTED

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way: it is up, or it will not come up by itself soon."""
        return self.state is not ServerState.PENDING

    @property
    def is_tried(self) -> bool:
        """Whether it is up, its first try has failed, or none will be made."""
        return self.is_settled or self.attempt > 0


def advance(
    status: ServerStatus,
    state: ServerState,
    phase: Phase,
    reason: str,
    *,
    now: float,
    **changes: Unpack[StatusChanges],
) -> ServerStatus:
    """Move a status along the table.

    Args:
        status: where it is.
        state: where it goes; the same state is always legal.
        phase: what is done there.
        reason: reason code.
        now: this moment; becomes `since` when the state changes.
        changes: other fields of `ServerStatus` to set.

    Raises:
        LocalProtocolError: the table has no such transition; nothing was changed.

    Source:
        S097, S098.
    """
    if state is not status.state and state not in TRANSITIONS[status.state]:
        raise LocalProtocolError(server=status.name, reason=f"illegal transition {status.state} -> {state} ({reason})")
    since = status.since if state is status.state else now
    return _changed(status, state=state, phase=phase, reason=reason, since=since, **changes)


def _changed(status: ServerStatus, **changes: object) -> ServerStatus:
    # In a third of the time that its `__init__` takes: every server is told of several times before it is up.
    copy = object.__new__(ServerStatus)
    vars(copy).update(vars(status), **changes)
    return copy
