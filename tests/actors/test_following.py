"""A task that a server made of a call is followed to its end, whatever that is."""

from __future__ import annotations

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.actors.host import Host, ServerRequest
from mcp_actors.config.changes import Applied
from mcp_actors.errors import RpcError, TaskEnded
from mcp_actors.protocol.task_handle import TaskHandle
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

TASK = {"taskId": "t1", "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:00Z"}


def modern_tasks(*polls: dict[str, object]) -> ScriptedServer:
    server = echo_server(
        revisions=MODERN_REVISIONS,
        fixed_capabilities={"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    )
    created = {"resultType": "task", **TASK, "status": "working", "ttlMs": None, "pollIntervalMs": 2000}
    server.answer_with("tools/call", created)
    for poll in polls:
        base = {"resultType": "complete", **TASK, "ttlMs": None, "pollIntervalMs": 2000}
        server.answer_with("tasks/get", {**base, **poll}, times=1)
    server.answer_with("tasks/cancel", {"resultType": "complete"})
    server.answer_with("tasks/update", {"resultType": "complete"})
    return server


DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "built"}]}}


@pytest.mark.deadline(1000)
async def test_a_modern_task_is_followed_to_its_result(autojump_clock: object) -> None:
    """G01, G02: one `call_tool` hides the task; the poll interval is kept; the handle can be stored and resumed."""
    server = modern_tasks({"status": "working"}, DONE, DONE)
    handles: list[TaskHandle] = []

    async with open_runtime([spec("one", server)], host=Host(wants_tasks=True)) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        result = await runtime.call_tool("one.echo", on_task=handles.append)
        took = trio.current_time() - began
        stored = TaskHandle.from_json(handles[0].to_json())
        resumed = await runtime.resume_task(stored)

    assert (result.text, resumed.text) == ("built", "built")
    assert took == pytest.approx(4.0, abs=0.1)
    assert server.seen("tasks/cancel") == []


@pytest.mark.deadline(1000)
async def test_a_task_that_asks_is_answered_once(autojump_clock: object) -> None:
    """G02: a question that two polls repeat is put once, by tasks/update."""
    question = {"method": "roots/list"}
    asking = {"status": "input_required", "inputRequests": {"k": question}}
    server = modern_tasks(asking, asking, DONE)
    asked: list[str] = []

    async def roots(request: ServerRequest) -> dict[str, object]:
        asked.append(request.method)
        return {"roots": []}

    async with open_runtime([spec("one", server)], host=Host({"roots/list": roots}, wants_tasks=True)) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.echo")

    assert (result.text, asked) == ("built", ["roots/list"])
    assert [message["params"]["inputResponses"] for message in server.seen("tasks/update")] == [{"k": {"roots": []}}]


@pytest.mark.deadline(1000)
@pytest.mark.parametrize(
    ("end", "error"),
    [
        ({"status": "failed", "error": {"code": -32603, "message": "disk full"}}, RpcError),
        ({"status": "cancelled"}, TaskEnded),
    ],
)
async def test_a_task_that_does_not_complete_is_an_error(
    end: dict[str, object], error: type[Exception], autojump_clock: object
) -> None:
    """G03: failed raises the server's error, cancelled says so."""
    server = modern_tasks(end)

    async with open_runtime([spec("one", server)], host=Host(wants_tasks=True)) as runtime:
        await runtime.wait_ready()
        with pytest.raises(error):
            await runtime.call_tool("one.echo")


@pytest.mark.deadline(1000)
@pytest.mark.parametrize("is_draining", [False, True])
async def test_a_cancelled_caller_cancels_the_task_by_its_own_method(is_draining: bool, autojump_clock: object) -> None:
    """G03: tasks/cancel, once; never notifications/cancelled. Also where another generation is to follow."""
    server = modern_tasks({"status": "working"}, {"status": "working"}, {"status": "working"})

    async with open_runtime([spec("one", server)], host=Host(wants_tasks=True)) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(5):
                if is_draining:
                    nursery.start_soon(runtime.carry_out, Applied(changed=("one",)), 100.0)
                await runtime.call_tool("one.echo")
            cancels = await server.wait_seen("tasks/cancel")

    assert len(cancels) == 1
    assert server.seen("notifications/cancelled") == []


@pytest.mark.deadline(1000)
async def test_a_legacy_tool_that_insists_on_a_task_gets_one(autojump_clock: object) -> None:
    """G05: `taskSupport: required` makes the call a task of 2025-11-25, whose result is fetched by tasks/result."""
    server = ScriptedServer(
        revisions=LEGACY_REVISIONS, fixed_capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    )
    server.add_tool("build", lambda call: "never", execution={"taskSupport": "required"})
    task = {**TASK, "ttl": None, "pollInterval": 1000}
    server.answer_with("tools/call", {"task": {**task, "status": "working"}})
    server.answer_with("tasks/get", {**task, "status": "completed"})
    server.answer_with("tasks/result", {"content": [{"type": "text", "text": "built"}]})

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.build")

    assert result.text == "built"
    assert "task" in server.seen("tools/call")[0]["params"]


@pytest.mark.deadline(1000)
async def test_a_task_that_is_taken_up_again_has_a_time_of_its_own(autojump_clock: object) -> None:
    """G04, S200: from then on; at its end the server is told that nobody wants the result."""
    server = modern_tasks(*[{"status": "working"}] * 10)
    handle = TaskHandle("one", "t1", MODERN_REVISIONS[0], "")

    async with open_runtime([spec("one", server)], host=Host(wants_tasks=True)) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError, match="the wall clock ran out after 7 s"):
            await runtime.resume_task(handle, timeout=7)
        took = trio.current_time() - began
        cancels = await server.wait_seen("tasks/cancel")

    assert (took, len(cancels)) == (pytest.approx(7), 1)
