"""Owns the course of a task: a call whose result is fetched later, in the two wire forms that there are.

What this is not: a poller with a clock. It says what to ask next and after how long; its driver asks.

Rules.
Rule 1: the revision chooses the wire. 2025-11-25 has ``tasks/get`` and ``tasks/result``; its servers ask by requests
of their own while ``tasks/result`` waits; the modern extension brings questions, result and error along in
``tasks/get`` and takes answers by ``tasks/update`` (spec_client 10; G05).
Rule 2: the server's poll interval is kept, within bounds; it may change (G02).
Rule 3: a question is put once for each key, however often a poll repeats it (G02).
Rule 4: a task is cancelled by ``tasks/cancel`` alone (G03).
Rule 5: losing a poll is not losing the task: it is asked for again, a few times in a row. What knows the handle can go
on after a restart (G04).
Rule 6: the time to live is a backstop: past it and a grace the task counts as forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve, field

from mcp_actors.errors import McpActorsError, RemoteProtocolError, RpcError, TaskEnded, TransportError
from mcp_actors.protocol.inbound import read_error
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS, NULL, decode, raw_members
from mcp_actors.protocol.questions import InputRequest, read_questions
from mcp_actors.protocol.revisions import REVISIONS
from mcp_actors.protocol.task_handle import TaskHandle, seconds_in
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["AskServer", "TaskCourse", "TaskFailed", "TaskFinished", "TaskInput", "TaskStep"]

DEFAULT_POLL: Final = 1.0
MIN_POLL: Final = 0.05
MAX_POLL: Final = 3600.0
# Polls lost in a row; a server that restarts is back by then.
MAX_LOSSES: Final = 5
FIRST_BACKOFF: Final = 1.0
# Seconds past its time to live, for clocks that differ.
TTL_GRACE: Final = 60.0
_GET: Final = "tasks/get"
_RESULT: Final = "tasks/result"
_UPDATE: Final = "tasks/update"


@frozen
class AskServer:
    """Send this request after so many seconds; `feed` its result or `fail` its error."""

    method: str
    params: JsonObject
    after: float = 0.0
    # Whether it may be answered when the task ends, and not at once.
    is_long: bool = False


@frozen
class TaskInput:
    """Put these questions, then `answer`. (In 2025-11-25 they come as requests of the server instead.)"""

    questions: tuple[InputRequest, ...]


@frozen
class TaskFinished:
    """The result of the call, undecoded; it may be one that says that the tool failed (G03)."""

    result: bytes = field(repr=lambda result: f"<{len(result)} bytes>")


@frozen(eq=False)
class TaskFailed:
    """The call ended with an error: an `RpcError`, a `TaskEnded`, or what made the task unreachable."""

    error: McpActorsError


TaskStep: TypeAlias = AskServer | TaskInput | TaskFinished | TaskFailed


@define(eq=False)
class TaskCourse:
    """One task from its creation, or from a stored handle, to its end. `begin`, then do what each step says."""

    handle: TaskHandle
    # Ours, as declared on the requests about this task.
    capabilities: JsonObject
    # When it was created, or taken up again, on the driver's clock.
    begun_at: float
    # As the server told last; "working" before it has.
    status: str = field(default="working", init=False)
    # Untrusted text of the server.
    status_message: str | None = field(default=None, init=False)
    poll_interval: float = field(default=DEFAULT_POLL, init=False)
    # The request whose answer comes next.
    _asked: AskServer | None = field(default=None, init=False)
    # Keys of the questions that were put.
    _put: set[str] = field(factory=set, init=False)
    _losses: int = field(default=0, init=False)

    @classmethod
    def created(
        cls, result: bytes, server: str, revision: str, capabilities: JsonObject, now: float
    ) -> TaskCourse | None:
        """Begin with the answer to a call that may become a task; None when that is a plain result.

        Raises:
            RemoteProtocolError: it tells of a task, but of none that can be followed.
        """
        members = raw_members(result)
        if not REVISIONS[revision].is_modern:
            if "task" not in members:
                return None
            members = raw_members(members["task"])
        elif decode(members.get("resultType", NULL)) != "task":
            return None
        task_id = decode(members.get("taskId", NULL))
        if not isinstance(task_id, str) or not task_id:
            raise RemoteProtocolError(reason="the task has no taskId")
        created_at = decode(members.get("createdAt", NULL))
        course = cls(
            TaskHandle(server, task_id, revision, created_at if isinstance(created_at, str) else ""), capabilities, now
        )
        course._take_up(members)
        return course

    @property
    def is_modern(self) -> bool:
        """Whether the wire is that of the extension."""
        return REVISIONS[self.handle.revision].is_modern

    # ── what to do ──────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> TaskStep:
        """Say what comes first."""
        return self._ask(_GET, self.poll_interval)

    def cancel(self) -> AskServer:
        """Say how the server is told that nobody wants the result; its answer does not matter (rule 4)."""
        return AskServer("tasks/cancel", {"taskId": self.handle.task_id})

    def answer(self, answers: Mapping[str, JsonObject]) -> TaskStep:
        """Hand over answers, by key; some may come later, with another call of this."""
        return self._ask(_UPDATE, 0.0, inputResponses=dict(answers))

    # ── what came ───────────────────────────────────────────────────────────────────────────────────────────────────

    def feed(self, result: bytes, now: float) -> TaskStep:
        """Take the result of what was asked last. Never raises for what the server did."""
        self._losses = 0
        method = self._asked.method if self._asked is not None else _GET
        if method == _RESULT:
            return TaskFinished(result)
        if method == _UPDATE:
            return self._ask(_GET, self.poll_interval)
        try:
            members = raw_members(result)
            if decode(members.get("taskId", NULL)) != self.handle.task_id:
                raise RemoteProtocolError(reason="the answer is about another task")
            self._take_up(members)
            return self._by_status(members, now)
        except RemoteProtocolError as exc:
            return TaskFailed(exc)

    def fail(self, error: McpActorsError, now: float) -> TaskStep:
        """Take the error of what was asked last."""
        asked = self._asked or AskServer(_GET, {"taskId": self.handle.task_id})
        if isinstance(error, TransportError) and error.can_retry:
            self._losses += 1
            if self._losses > MAX_LOSSES or self._is_forgotten(now):
                return TaskFailed(error)
            # A wait for the result that was cut is a poll again: the task may have gone on.
            again = asked if asked.method == _UPDATE else AskServer(_GET, {"taskId": self.handle.task_id})
            pause = error.retry_after if error.retry_after is not None else FIRST_BACKOFF * 2 ** (self._losses - 1)
            self._asked = evolve(again, after=min(pause, MAX_POLL))
            return self._asked
        if asked.method == _UPDATE and isinstance(error, RpcError):
            return self._ask(_GET, self.poll_interval)  # the task may have ended meanwhile; a poll tells
        if asked.method == _GET and isinstance(error, RpcError) and error.code == INVALID_PARAMS:
            return TaskFailed(self._ended("expired", error.message or None))
        return TaskFailed(error)

    # ── how it goes on ──────────────────────────────────────────────────────────────────────────────────────────────

    def _by_status(self, members: Mapping[str, bytes], now: float) -> TaskStep:
        match self.status:
            case "cancelled":
                return TaskFailed(self._ended("cancelled", self.status_message))
            case "completed" | "failed" if not self.is_modern:
                return self._ask(_RESULT, 0.0)
            case "input_required" if not self.is_modern:
                # "call tasks/result to receive the server's requests"
                return self._ask(_RESULT, 0.0)
            case "completed":
                if members.get("result", NULL)[:1] != b"{":
                    raise RemoteProtocolError(reason="the completed task has no result")
                return TaskFinished(members["result"])
            case "failed":
                return TaskFailed(read_error(members.get("error", NULL)))
            case "input_required" | "working":
                questions = self._new_questions(members) if self.status == "input_required" else ()
                if questions:
                    return TaskInput(questions)
                if self._is_forgotten(now):
                    return TaskFailed(self._ended("expired", None))
                return self._ask(_GET, self.poll_interval)
        raise RemoteProtocolError(reason=f"the task has the unknown status {self.status[:40]!r}")

    def _new_questions(self, members: Mapping[str, bytes]) -> tuple[InputRequest, ...]:
        questions = read_questions(members.get("inputRequests", NULL), self.capabilities)
        new = tuple(question for question in questions if question.key not in self._put)
        self._put.update(question.key for question in new)
        return new

    def _take_up(self, members: Mapping[str, bytes]) -> None:
        """Note what the server told of the task."""
        status, message = decode(members.get("status", NULL)), decode(members.get("statusMessage", NULL))
        if not isinstance(status, str):
            raise RemoteProtocolError(reason="the task has no status")
        self.status = status
        self.status_message = message if isinstance(message, str) else None
        ttl_key, poll_key = ("ttlMs", "pollIntervalMs") if self.is_modern else ("ttl", "pollInterval")
        self.handle = evolve(self.handle, ttl=seconds_in(decode(members.get(ttl_key, NULL)), 0.001))
        poll = seconds_in(decode(members.get(poll_key, NULL)), 0.001)
        self.poll_interval = DEFAULT_POLL if poll is None else min(max(poll, MIN_POLL), MAX_POLL)

    def _is_forgotten(self, now: float) -> bool:
        return self.handle.ttl is not None and now > self.begun_at + self.handle.ttl + TTL_GRACE

    def _ended(self, status: str, reason: str | None) -> TaskEnded:
        return TaskEnded(server=self.handle.server, task_id=self.handle.task_id, status=status, reason=reason)

    def _ask(self, method: str, after: float, **more: Json) -> AskServer:
        self._asked = AskServer(method, {"taskId": self.handle.task_id, **more}, after, method == _RESULT)
        return self._asked
