"""Owns the reconnecting of remote servers after this machine slept, before somebody calls one over a dead socket.

What this is not: finding out that a single connection is dead (`actors.pulse`, the clocks of a call).

Rules.

1. Sleep is told by two clocks of the kernel, one of which stops meanwhile. Setting the wall clock is no sleep.
2. After a sleep no socket is believed: the other side, a router or a tunnel may have forgotten it without a word, and a
   stream that only listens would wait for ever. Programs slept as we did, and are left alone.
3. What failed, or waits for its next try, is tried at once: the reason may be gone with the old network.
4. A server that waits for a login, or is switched off, stays so.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.config.changes import Applied
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import ActorGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.fleet.running import Runtime

__all__ = ["keep_awake", "renew", "seconds_slept"]

logger = logging.getLogger("mcp_actors.runtime")

# Seconds between two looks at the clocks.
INTERVAL: Final = 5.0
# Seconds of sleep that connections survive as a rule: routers and load balancers forget after a minute or more.
SHORT_NAP: Final = 30.0
# Seconds that calls in flight get to end: what their server still can answer is on its way.
DRAIN: Final = 5.0

# A clock that runs while the machine sleeps, and its fellow that does not: Linux, macOS. Elsewhere no sleep is noticed.
_CLOCKS: Final = (("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"), ("CLOCK_MONOTONIC", "CLOCK_UPTIME_RAW"))
_STIRRING: Final = frozenset({ServerState.PENDING, ServerState.CONNECTED, ServerState.FAILED})


def seconds_slept() -> float:
    """How long this machine has slept since it was started; 0.0 where its clocks do not tell."""
    for running, stopping in _CLOCKS:
        if hasattr(time, running) and hasattr(time, stopping):
            return time.clock_gettime(getattr(time, running)) - time.clock_gettime(getattr(time, stopping))
    return 0.0


async def renew(runtime: Runtime) -> tuple[str, ...]:
    """Give each server that is reached over a network a new connection; for when the network is another one.

    Calls in flight have `DRAIN` seconds to end and fail then; new ones wait for the new connection. Returns the names,
    in configuration order, when the new connections have been begun.

    Cancellation:
        Safe; what was begun is done.

    Source:
        Field 30 and 58.
    """
    specs, statuses = runtime.configured.specs, runtime.status()
    names = tuple(
        name
        for name, status in statuses.items()
        if name in specs and isinstance(specs[name].target, RemoteTarget)
        # Who still waits for a permit has no connection that could be stale.
        if status.state in _STIRRING and status.phase is not Phase.QUEUED
    )
    if names:
        await runtime.carry_out(Applied(changed=names), DRAIN)
    return names


async def keep_awake(
    runtime: Runtime,
    *,
    slept: Callable[[], float] = seconds_slept,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Renew the connections after each sleep. Runs until cancelled.

    Args:
        runtime: whose connections.
        slept: seconds that the machine has slept so far.
    """
    before = slept()
    task_status.started()
    with suppress(ActorGone):  # the runtime ends
        while True:
            await trio.sleep(INTERVAL)
            now = slept()
            if now - before >= SHORT_NAP:
                names = await renew(runtime)
                logger.info("slept for %d s: %d servers are connected anew", now - before, len(names))
            before = now
