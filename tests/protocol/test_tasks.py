"""Tests of the course of a task, in both wire forms."""

from __future__ import annotations

import pytest

from mcp_actors.errors import AuthRequired, RemoteProtocolError, RpcError, TaskEnded, TransportBroken
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.task_handle import TaskHandle
from mcp_actors.protocol.tasks import MAX_LOSSES, AskServer, TaskCourse, TaskFailed, TaskFinished, TaskInput
from mcp_actors.protocol.types import Era

from .kit import NEW, OLD, ready

ALL = {"elicitation": {}, "roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
REVISIONS = [NEW, OLD]
ID = {"taskId": "t1"}
ROOTS = {"method": "roots/list"}
LOST = TransportBroken(reason="cut")


def told(revision: str, status: str = "working", *, poll: object = 2000, ttl: object = 60_000, **more: object) -> dict:
    """What a server tells of a task."""
    times = {"ttlMs": ttl, "pollIntervalMs": poll} if revision == NEW else {"ttl": ttl, "pollInterval": poll}
    return {**ID, "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "x", **times, **more}


def created(revision: str, **more: object) -> bytes:
    task = told(revision, **more)
    return encode({"resultType": "task", **task} if revision == NEW else {"task": task})


def begun(revision: str, now: float = 0.0, **more: object) -> TaskCourse:
    course = TaskCourse.created(created(revision, **more), "s", revision, ALL, now)
    assert course is not None
    course.begin()
    return course


def feed(course: TaskCourse, status: str = "working", now: float = 1.0, **more: object):
    return course.feed(encode(told(course.handle.revision, status, **more)), now)


GET = AskServer("tasks/get", ID, 2.0)


# ── creation and handles ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_created_task_is_polled(revision):
    """The first poll comes after the server's interval; the handle holds what finds the task again (G02, G04)."""
    course = TaskCourse.created(created(revision), "s", revision, ALL, 0.0)

    assert course.begin() == GET
    assert course.handle == TaskHandle("s", "t1", revision, "2026-01-01T00:00:00Z", 60.0)
    assert course.status == "working"


@pytest.mark.parametrize(
    ("revision", "result"),
    [
        (NEW, {"content": []}),
        (NEW, {"resultType": "complete", "content": []}),
        (NEW, {"task": told(OLD)}),
        (OLD, {"content": []}),
        (OLD, {"resultType": "task", **told(NEW)}),
    ],
)
def test_a_plain_result_is_no_task(revision, result):
    """Each revision has its own form; the other's is not looked for (G05)."""
    assert TaskCourse.created(encode(result), "s", revision, ALL, 0.0) is None


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("broken", [{"taskId": 5}, {"taskId": ""}, {"status": None}])
def test_a_task_that_cannot_be_followed_is_an_error(revision, broken):
    """Without an id or a status there is nothing to ask for."""
    with pytest.raises(RemoteProtocolError):
        TaskCourse.created(created(revision, **broken), "s", revision, ALL, 0.0)


def test_a_task_that_is_no_object_is_an_error():
    """In the older form the task is a member."""
    with pytest.raises(RemoteProtocolError):
        TaskCourse.created(encode({"task": "t1"}), "s", OLD, ALL, 0.0)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("ttl", [60_000, None])
def test_a_stored_handle_takes_the_task_up_again(revision, ttl):
    """After a restart the polling goes on (G04)."""
    handle = begun(revision, ttl=ttl).handle

    again = TaskHandle.from_json(decode(encode(handle.to_json())))

    assert again == handle
    assert TaskCourse(again, ALL, 100.0).begin() == AskServer("tasks/get", ID, 1.0)


# ── polling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("poll", "after"), [(500, 0.5), (0, 0.05), (10**9, 3600), (None, 1), (-1, 1), ("fast", 1), (True, 1), (10**400, 1)]
)
def test_the_poll_interval_is_the_servers_within_bounds(revision, poll, after):
    """It may change with every poll (G02)."""
    assert feed(begun(revision), poll=poll).after == after


@pytest.mark.parametrize("result_type", ["complete", "task"])
def test_either_result_type_is_accepted_on_a_poll(result_type):
    """The examples of the extension show both (G04)."""
    assert feed(begun(NEW), resultType=result_type) == GET


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "answer", [{**told(NEW), "taskId": "t2"}, {"status": "working"}, {**ID}, {**ID, "status": "odd"}]
)
def test_a_poll_that_makes_no_sense_ends_the_course(revision, answer):
    """Another task, no status, an unknown status: an error, never an exception."""
    step = begun(revision).feed(encode(answer), 1.0)

    assert isinstance(step.error, RemoteProtocolError)


@pytest.mark.parametrize("revision", REVISIONS)
def test_garbage_ends_the_course(revision):
    """What is no object is no task."""
    assert isinstance(begun(revision).feed(b"[]", 1.0).error, RemoteProtocolError)


# ── the end, modern ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("result", [{"content": []}, {"content": [], "isError": True}])
def test_a_completed_task_brings_its_result(result):
    """Also one that says that the tool failed (G03)."""
    step = feed(begun(NEW), "completed", result=result)

    assert isinstance(step, TaskFinished)
    assert decode(step.result) == result


def test_a_failed_task_is_its_json_rpc_error():
    """``failed`` is for JSON-RPC errors alone (G03)."""
    step = feed(begun(NEW), "failed", error={"code": -32603, "message": "broke", "data": 1})

    assert (type(step.error), step.error.code, step.error.data) == (RpcError, -32603, 1)


@pytest.mark.parametrize(("status", "more"), [("completed", {}), ("completed", {"result": 1}), ("failed", {})])
def test_an_end_without_its_payload_is_invalid(status, more):
    """The terminal payload is inlined."""
    assert isinstance(feed(begun(NEW), status, **more).error, RemoteProtocolError)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_cancelled_task_has_no_result(revision):
    """It says why, in the server's words."""
    step = feed(begun(revision), "cancelled", statusMessage="no longer needed")

    assert (type(step.error), step.error.status, step.error.task_id) == (TaskEnded, "cancelled", "t1")
    assert "no longer needed" in str(step.error)


# ── the end, 2025-11-25 ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["completed", "failed", "input_required"])
def test_the_result_is_asked_for(status):
    """At the end, and to receive the server's requests before it, ``tasks/result`` waits for the result (G05)."""
    course = begun(OLD)

    assert feed(course, status) == AskServer("tasks/result", ID, 0.0, is_long=True)
    result = encode({"content": [], "isError": True})
    assert course.feed(result, 2.0) == TaskFinished(result)


def test_an_error_of_the_result_is_the_calls():
    """``tasks/result`` gives the original error."""
    course = begun(OLD)
    feed(course, "failed")
    error = RpcError(code=-32602, message="bad arguments")

    assert course.fail(error, 2.0).error is error


def test_a_wait_that_is_cut_is_a_poll_again():
    """Losing ``tasks/result`` is not losing the task."""
    course = begun(OLD)
    feed(course, "completed")

    assert course.fail(LOST, 2.0) == AskServer("tasks/get", ID, 1.0)
    assert feed(course, "completed").method == "tasks/result"


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_is_put_once():
    """Keys are unique for the task's life, so a repeated one is known; answers go out by ``tasks/update`` (G02)."""
    course = begun(NEW)

    first = feed(course, "input_required", inputRequests={"a": ROOTS})
    update = course.answer({"a": {"roots": []}})
    after = course.feed(encode({}), 2.0)
    repeated = feed(course, "input_required", inputRequests={"a": ROOTS})
    second = feed(course, "input_required", inputRequests={"a": ROOTS, "b": ROOTS})

    assert [question.key for question in first.questions] == ["a"]
    assert update == AskServer("tasks/update", {**ID, "inputResponses": {"a": {"roots": []}}})
    assert after == repeated == GET
    assert isinstance(second, TaskInput)
    assert [question.key for question in second.questions] == ["b"]


def test_undeclared_questions_end_the_course():
    """The same trust rules as for direct questions."""
    step = feed(begun(NEW), "input_required", inputRequests={"a": {"method": "sampling/createMessage", "params": {}}})

    assert isinstance(step.error, RemoteProtocolError)


def test_a_refused_update_is_a_poll():
    """The task may have ended while a person thought; the poll tells."""
    course = begun(NEW)
    feed(course, "input_required", inputRequests={"a": ROOTS})
    course.answer({"a": {"roots": []}})

    assert course.fail(RpcError(code=-32602, message="terminal"), 2.0) == GET


def test_a_lost_update_is_sent_again():
    """It is idempotent: a key is answered once."""
    course = begun(NEW)
    update = course.answer({"a": {"roots": []}})

    again = course.fail(LOST, 2.0)

    assert (again.method, again.params, again.after) == (update.method, update.params, 1.0)


# ── losses, cancel, time to live ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", REVISIONS)
def test_lost_polls_are_repeated_a_few_times(revision):
    """Later each time; a poll that comes through starts anew (G04)."""
    course = begun(revision)
    feed(course)

    pauses = [course.fail(LOST, 1.0).after for _ in range(MAX_LOSSES)]
    feed(course)
    again = [course.fail(LOST, 1.0) for _ in range(MAX_LOSSES + 1)]

    assert pauses == [1, 2, 4, 8, 16]
    assert again[-2].after == 16
    assert again[-1].error is LOST
    assert begun(revision).fail(TransportBroken(reason="busy", retry_after=7.0), 1.0).after == 7.0


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "error",
    [AuthRequired(http_status=401), RpcError(code=-32603, message="x"), TransportBroken(reason="404", can_retry=False)],
)
def test_other_errors_end_the_course(revision, error):
    """What another poll would meet again is handed on."""
    assert begun(revision).fail(error, 1.0).error is error


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_task_has_expired(revision):
    """-32602 on a poll: the server has forgotten it."""
    step = begun(revision).fail(RpcError(code=-32602, message="unknown task"), 1.0)

    assert (type(step.error), step.error.status) == (TaskEnded, "expired")


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_time_to_live_is_a_backstop(revision):
    """Past it and a minute of grace a task that still works counts as forgotten; without one it never does (G04)."""
    course = begun(revision, ttl=60_000)

    assert feed(course, now=119.0) == GET
    step = feed(course, now=121.0)
    assert (type(step.error), step.error.status) == (TaskEnded, "expired")
    assert isinstance(course.fail(LOST, 121.0), TaskFailed)
    assert feed(begun(revision), now=1e9, ttl=None) == GET


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_task_is_cancelled_by_its_own_method(revision):
    """Never by ``notifications/cancelled`` (G03)."""
    assert begun(revision).cancel() == AskServer("tasks/cancel", ID)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_requests_about_a_task_mirror_its_id(method):
    """HTTP MUST: Mcp-Name is the task's id (G03)."""
    frame = ready(Era.MODERN, is_http=True).request(method, ID, "a")

    assert ("Mcp-Name", "t1") in frame.headers
