"""Owns one request over one connection, from params to its final result: kept answers, rounds, repetitions.

What this is not: the exchange itself (`calls`), the task that a server may make of it (`following`), nor any decision
(`protocol.cache`, `mrtr`, `retries`).

Runs in the caller's own task.
"""

from __future__ import annotations

import math
import random
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.rounds import ask_in_rounds, ask_with_pages
from mcp_actors.errors import McpActorsError, RpcError
from mcp_actors.protocol.features import METHODS
from mcp_actors.protocol.mrtr import Complete, RoundTrip
from mcp_actors.protocol.retries import Retry, decide_call, may_repeat
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.clocks import CallTimeouts

__all__ = ["ask_fully"]

MAY_ASK: Final = frozenset(method.name for method in METHODS.values() if method.may_ask)
CACHEABLE: Final = frozenset(method.name for method in METHODS.values() if method.is_cacheable)


async def ask_fully(
    connection: Connection,
    method: str,
    params: JsonObject | None,
    *,
    timeouts: CallTimeouts,
    on_progress: ProgressCallback | None = None,
    headers: Sequence[tuple[str, str]] = (),
    annotations: JsonObject | None = None,
    is_repeat_allowed: bool = False,
) -> Complete:
    """Send a request and see it through.

    Args:
        annotations: of the tool, for tools/call; claims that only count where the caller allows it.
        is_repeat_allowed: the caller allows that a call that may have run is made again, where the tool claims that
            this does no harm.

    Returns:
        The result, undecoded, and its type: "task" where the server made one.

    Raises:
        As `Connection.request`.

    Source:
        B06-B08, B19, F05, F06, S207, fault 46.
    """
    is_modern = connection.info is not None and connection.info.era is Era.MODERN
    if is_modern and method in CACHEABLE:
        kept = connection.cache.fresh(method, params, None, trio.current_time())
        if kept is not None:
            return Complete(kept)
    deadline = trio.current_time() + timeouts.wall
    is_repeatable = may_repeat(method, annotations, is_allowed=is_repeat_allowed)
    tries = 0
    while True:
        tries += 1
        ask = partial(
            connection.exchange,
            method,
            timeouts=timeouts if tries == 1 else evolve(timeouts, wall=deadline - trio.current_time()),
            on_progress=on_progress,
            headers=headers,
        )
        try:
            if not is_modern:
                return Complete(await ask_with_pages(connection.answering, partial(ask, params)))
            trip = RoundTrip(method, params or {}, connection.answering.capabilities)
            complete = (
                await ask_in_rounds(connection.answering, trip, ask)
                if method in MAY_ASK
                else Complete(await ask(params))
            )
        except McpActorsError as error:
            if error.server is None:  # of the rounds, which know of no server
                error.server = connection.spec.name
            if params is not None and "cursor" in params and isinstance(error, RpcError):
                connection.cache.forget_list(method)  # the page before it, if kept, would name this cursor again
            left = deadline - trio.current_time() if deadline != math.inf else math.inf
            step = decide_call(error, tries=tries, is_repeatable=is_repeatable, remaining=left, chance=random.random())
            if not isinstance(step, Retry) or not connection.is_alive:
                raise
            await trio.sleep(step.after)
        else:
            if method in CACHEABLE and not trip.rounds:
                connection.cache.put(method, params, None, complete.result, trio.current_time())
            return complete
