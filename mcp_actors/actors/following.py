"""Owns the polling of a task, which a server made of a call, to its result; and its cancellation where nobody wants it.

What this is not: any decision (`protocol.tasks`), nor the call that made the task (`toolcalls`).

Runs in the caller's own task. Loaded when the first call becomes a task.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.rounds import answers_to
from mcp_actors.actors.slots import Request
from mcp_actors.errors import McpActorsError
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.clocks import CallTimeouts
from mcp_actors.protocol.tasks import AskServer, TaskFailed, TaskFinished, TaskInput
from mcp_actors.sent_secrets import hide

if TYPE_CHECKING:
    from mcp_actors.actors.connection import Connection
    from mcp_actors.protocol.tasks import TaskCourse

__all__ = ["follow_task"]

# A poll of a task, and what is answered at once as well.
POLL_TIMEOUTS: Final = CallTimeouts(queue=60.0, idle=60.0)
# The word that nobody wants it any more.
CANCEL_TIMEOUT: Final = 2.0


async def follow_task(connection: Connection, course: TaskCourse, budget: Budget) -> bytes:
    """Follow a task to its end, in no more time than the budget of its call.

    Returns:
        The result of the call, undecoded.

    Raises:
        RpcError, TaskEnded, TransportError: how it ended otherwise.
        trio.TooSlowError: a clock ran out; the server is told as of a cancellation.

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
                case AskServer(method, params, after, is_long):
                    with connection.resting(budget):
                        await trio.sleep(after)
                    timeouts = connection.timeouts if is_long else POLL_TIMEOUTS
                    try:
                        result = await connection.exchange(Request(method, params, budget, timeouts))
                    except McpActorsError as error:
                        step = course.fail(error, trio.current_time())
                    else:
                        step = course.feed(result, trio.current_time())
                case TaskInput(questions):
                    step = course.answer(await answers_to(connection, budget, questions))
                case TaskFinished(result):
                    is_over = True
                    return result
                case TaskFailed(error):
                    is_over = True
                    hide(error, connection.secrets)
                    raise error
    finally:
        if not is_over and connection.is_alive:
            cancel = course.cancel()
            # Whatever it says, nobody waits any more.
            word = Request(cancel.method, cancel.params, Budget(CANCEL_TIMEOUT, trio.current_time()))
            with trio.move_on_after(CANCEL_TIMEOUT, shield=True), suppress(McpActorsError, trio.TooSlowError):
                await connection.exchange(word)
