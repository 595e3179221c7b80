"""Owns one tool call over one connection, from arguments to result: mirrored values, a schema that changed, tasks.

What this is not: finding the connection (`fleet.running`), or what a result means to a model (`tools.results`).

Runs in the caller's own task. The thoughts are the protocol room's; this does what they say. What follows tasks is
loaded when a call becomes one: few do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import evolve

from mcp_actors.actors.requests import ask_fully
from mcp_actors.actors.slots import Request
from mcp_actors.errors import RpcError
from mcp_actors.protocol.features import may_become_task
from mcp_actors.protocol.jsonrpc import require_object
from mcp_actors.protocol.mirrored import is_marked, mirrored_headers, wants_refresh
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.slots import Progress, ProgressCallback
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.budget import Budget
    from mcp_actors.protocol.mrtr import Complete
    from mcp_actors.protocol.task_handle import TaskHandle
    from mcp_actors.tools.catalog import Tool

__all__ = ["CallOptions", "call_tool", "resume_task"]


@frozen
class CallOptions:
    """What a caller may say about one call."""

    # Seconds for all of it, but for the time that a person takes; None: as the server's calls (S199, S200).
    timeout: float | Budget | None = None
    # Called in the caller's task with the newest progress.
    progress: ProgressCallback | None = None
    # Allows that a call that may have run is made again, where the tool claims that this does no harm (B19).
    may_repeat: bool = False
    # Called when the server makes a task of the call: keep the handle, and the result can be fetched after a restart.
    on_task: Callable[[TaskHandle], None] | None = None
    # Goes out in ``_meta`` beside what is ours (F16).
    meta: JsonObject | None = None


async def call_tool(connection: Connection, tool: Tool, arguments: JsonObject, options: CallOptions) -> bytes:
    """Call a tool and wait for its final result.

    Returns:
        The result, an undecoded JSON object.

    Raises:
        As `Connection.request`.

    Cancellation:
        Safe, as `Connection.request`; a task is cancelled as well.

    Source:
        S183, S197, S201, B03, B05, G01, G05.
    """
    require_object("arguments", arguments)
    require_object("meta", options.meta or {})
    task = _task_params(connection, tool)
    params: dict[str, Json] = {"name": tool.name, "arguments": arguments}
    if task is not None:
        params["task"] = task
    if options.meta:
        params["_meta"] = options.meta
    budget, headers = connection.budget(options.timeout), _mirrored(connection, tool, arguments)
    # Where silence may end the call, signs of life are asked for: no server sends progress unasked.
    on_progress = options.progress or (_ignore if connection.timeouts.idle < budget.timeout else None)
    request = Request("tools/call", params, budget, connection.timeouts, on_progress, headers)
    claims = tool.annotations if options.may_repeat else None
    with connection.users:
        try:
            complete = await ask_fully(connection, request, claims)
        except RpcError as error:
            if not (connection.is_mirroring and wants_refresh(error)):
                raise
            # The server knows another schema than we: learn it, and call once more with its headers.
            with connection.resting(budget):
                listed = (await connection.lists.refresh("tools")).tools or ()
            fresh = next((found for found in listed if found.name == tool.name), tool)
            again = evolve(request, headers=_mirrored(connection, fresh, arguments))
            complete = await ask_fully(connection, again, claims)
        connection.served += 1
        if complete.result_type == "task" or task is not None:
            return await _follow(connection, complete, budget, options)
        return complete.result


def _ignore(_: Progress) -> None:
    """Hear of progress that nobody wants to hear of; the idle clock does."""


async def _follow(connection: Connection, complete: Complete, budget: Budget, options: CallOptions) -> bytes:
    from mcp_actors.actors.following import follow_task
    from mcp_actors.protocol.tasks import TaskCourse

    assert connection.info is not None
    course = TaskCourse.created(
        complete.result,
        connection.spec.name,
        connection.info.revision,
        connection.answering.capabilities,
        trio.current_time(),
    )
    if course is None:
        return complete.result
    if options.on_task is not None:
        options.on_task(course.handle)
    return await follow_task(connection, course, budget)


async def resume_task(connection: Connection, handle: TaskHandle, timeout: float | None) -> bytes:
    """Fetch the result of a task that was made earlier, by this run or another (G04); `timeout` as of a call.

    Raises:
        As `follow_task`.

    Cancellation:
        As `follow_task`.
    """
    from mcp_actors.actors.following import follow_task
    from mcp_actors.protocol.tasks import TaskCourse

    course = TaskCourse(handle, connection.answering.capabilities, trio.current_time())
    with connection.users:
        return await follow_task(connection, course, connection.budget(timeout))


def _task_params(connection: Connection, tool: Tool) -> JsonObject | None:
    """What a 2025-11-25 call is to become a task with; None where it is to be an ordinary call (G05)."""
    info = connection.info
    if info is None or not may_become_task(tool.definition_bytes, info):
        return None
    from mcp_actors.protocol.task_negotiation import task_params

    return task_params(tool.definition.get("execution"), info, wants_task=connection.wants_tasks)


def _mirrored(connection: Connection, tool: Tool, arguments: JsonObject) -> tuple[tuple[str, str], ...]:
    if not connection.is_mirroring or not is_marked(tool.definition_bytes):
        return ()
    return mirrored_headers(tool.input_schema, arguments)
