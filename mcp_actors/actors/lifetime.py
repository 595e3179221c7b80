"""Owns the order in which the actors of one runtime start and stop, and how long stopping may take.

What this is not: any of the actors, nor what they are made of (`runtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.messages import Flush, Stop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_actors.actors.registry import Registry
    from mcp_actors.actors.supervisor import Supervisor
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec

__all__ = ["run_actors", "stop_bound"]

# What stopping may take beyond the waits of the stop ladder.
STOP_MARGIN: Final = 5.0


def stop_bound(settings: Settings) -> float:
    """Seconds that stopping everything may take; all servers stop at once."""
    return settings.stop_interrupt + settings.stop_terminate + settings.stop_reap + STOP_MARGIN


async def run_actors(
    registry: Registry,
    supervisor: Supervisor,
    specs: Iterable[ServerSpec],
    closing: trio.Event,
    bound: float,
    beside: Iterable[Callable[..., Awaitable[None]]] = (),
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the actors until `closing`, then stop them in order: the servers first, then who tells of them.

    Args:
        beside: the other tasks of the runtime, begun first and ended last, such as the host's (`host.HostTask`).

    Cancellation:
        Until it has started; after that only `closing` ends it, within `bound` seconds.
    """
    async with trio.open_nursery() as actors:
        for task in beside:
            await actors.start(task)
        await actors.start(registry.run)
        await actors.start(supervisor.run, specs)
        await registry.mailbox.ref.ask(Flush())  # every server has a status from the first moment
        actors.cancel_scope.shield = True
        task_status.started()
        await closing.wait()
        with trio.move_on_after(bound):
            await supervisor.mailbox.ref.ask(Stop())
            await registry.mailbox.ref.ask(Flush())
        actors.cancel_scope.cancel()
