"""Owns one request over one connection, from params to its final result: kept answers, rounds, repetitions.

What this is not: the exchange itself (`calls`), the task that a server may make of it (`following`), nor any decision
(`protocol.cache`, `protocol.mrtr`, `protocol.retries`).

Runs in the caller's own task.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.rounds import ask_in_rounds, ask_with_pages
from mcp_actors.errors import McpActorsError, RpcError
from mcp_actors.protocol.features import METHODS
from mcp_actors.protocol.mrtr import Complete, RoundTrip
from mcp_actors.protocol.retries import decide_call, may_repeat
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.slots import Request
    from mcp_actors.jsontypes import JsonObject

__all__ = ["ask_fully"]

MAY_ASK: Final = frozenset(method.name for method in METHODS.values() if method.may_ask)
CACHEABLE: Final = frozenset(method.name for method in METHODS.values() if method.is_cacheable)


async def ask_fully(connection: Connection, request: Request, claims: JsonObject | None = None) -> Complete:
    """Send a request and see it through, in no more time than its budget.

    Args:
        claims: annotations of the tool, for tools/call, where the caller allows that a call that may have run is made
            again if the tool claims that this does no harm.

    Returns:
        The result, undecoded, and its type: "task" where the server made one.

    Raises:
        As `Connection.request`.

    Source:
        B06-B08, B19, F05, F06, S207, fault 46.
    """
    method, params, budget = request.method, request.params, request.budget
    is_modern = connection.info is not None and connection.info.era is Era.MODERN
    if is_modern and method in CACHEABLE:
        kept = connection.cache.fresh(method, params, None, trio.current_time())
        if kept is not None:
            return Complete(kept)
    tries = 0
    while True:
        tries += 1
        try:
            if not is_modern:
                return Complete(await ask_with_pages(connection, request))
            trip = RoundTrip(method, params or {}, connection.answering.capabilities)
            complete = (
                await ask_in_rounds(connection, trip, request)
                if method in MAY_ASK
                else Complete(await connection.exchange(request))
            )
        except McpActorsError as error:
            if error.server is None:  # of the rounds, which know of no server
                error.server = connection.spec.name
            if params is not None and "cursor" in params and isinstance(error, RpcError):
                connection.cache.forget_list(method)  # the page before it, if kept, would name this cursor again
            pause = decide_call(
                error,
                tries=tries,
                is_repeatable=may_repeat(method, claims),
                remaining=budget.left(trio.current_time()),
                chance=random.random(),
            )
            if pause is None or not connection.is_alive:
                raise
            with connection.resting(budget):
                await trio.sleep(pause)
        else:
            if method in CACHEABLE and not trip.rounds:
                connection.cache.put(method, params, None, complete.result, trio.current_time())
            return complete
