"""Owns one request over one connection, from params to its final result: kept answers, rounds, repetitions, tasks.

What this is not: the exchange itself (`calls`), nor any decision (`protocol.cache`, `mrtr`, `retries`, `tasks`).

Runs in the caller's own task.
"""

from __future__ import annotations

import math
import random
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.rounds import answers_to, ask_in_rounds, ask_with_pages
from mcp_actors.errors import McpActorsError, RpcError
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.features import METHODS
from mcp_actors.protocol.mrtr import Complete, RoundTrip
from mcp_actors.protocol.retries import Retry, decide_call, may_repeat
from mcp_actors.protocol.tasks import AskServer, TaskCourse, TaskFailed, TaskFinished, TaskInput
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.jsontypes import JsonObject

__all__ = ["ask_fully", "follow_task"]

MAY_ASK: Final = frozenset(method.name for method in METHODS.values() if method.may_ask)
CACHEABLE: Final = frozenset(method.name for method in METHODS.values() if method.is_cacheable)
# A poll of a task, and the word that nobody wants it any more.
POLL_TIMEOUTS: Final = CallTimeouts(wall=60.0)
CANCEL_TIMEOUT: Final = 2.0


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
        left = deadline - trio.current_time()
        ask = partial(
            connection.exchange,
            method,
            timeouts=timeouts if tries == 1 else evolve(timeouts, wall=left),
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
            if not isinstance(step, Retry) or not connection.is_open:
                raise
            await trio.sleep(step.after)
        else:
            if method in CACHEABLE and not trip.rounds:
                connection.cache.put(method, params, None, complete.result, trio.current_time())
            return complete


async def follow_task(connection: Connection, course: TaskCourse) -> bytes:
    """Follow a task to its end.

    Returns:
        The result of the call, undecoded.

    Raises:
        RpcError, TaskEnded, TransportError: how it ended otherwise.

    Cancellation:
        The server is told once, shielded for at most two seconds; it may have finished all the same.

    Source:
        G01-G05.
    """
    step = course.begin()
    is_over = False
    try:
        while True:
            match step:
                case AskServer(method, params, after):
                    await trio.sleep(after)
                    try:
                        result = await connection.exchange(method, params, timeouts=POLL_TIMEOUTS)
                    except McpActorsError as error:
                        step = course.fail(error, trio.current_time())
                    else:
                        step = course.feed(result, trio.current_time())
                case TaskInput(questions):
                    step = course.answer(await answers_to(connection.answering, questions))
                case TaskFinished(result):
                    is_over = True
                    return result
                case TaskFailed(error):
                    is_over = True
                    raise error
    finally:
        if not is_over and connection.is_open:
            cancel = course.cancel()
            # Whatever it says, nobody waits any more.
            with trio.move_on_after(CANCEL_TIMEOUT, shield=True), suppress(McpActorsError):
                await connection.exchange(cancel.method, cancel.params, timeouts=POLL_TIMEOUTS)
