"""What servers ask, and what they are answered, is judged alike in both eras and whoever answers (F08, F11, E13)."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from scripted_fleet import echo_server, spec

from mcp_actors.actors.host import Host, ServerRequest
from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingLimits
from mcp_actors.elicitation.requests import Action, Answer
from mcp_actors.errors import RemoteProtocolError, RpcError
from mcp_actors.fleet.questions import Questions
from mcp_actors.questions.prompters import CallableQuestionPrompter
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}
ROOTS, SAMPLE, ELICIT = "roots/list", "sampling/createMessage", "elicitation/create"

FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
URL = {"mode": "url", "message": "go", "url": "https://h.example/x", "elicitationId": "e"}
TEXT = {"type": "text", "text": "hi"}
WORDS = {"messages": [{"role": "user", "content": TEXT}], "maxTokens": 9}
USE = {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}}
TOOLS = {**WORDS, "tools": [{"name": "t", "inputSchema": {}}]}
RELATED = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}}

LISTED = {"roots": [{"uri": "file:///work"}]}
SAID = {"role": "assistant", "content": TEXT, "model": "m", "stopReason": "endTurn"}
FILLED = {"action": "accept", "content": {"name": "n"}}
VISITED = {"action": "accept"}


class Asked:
    """A server whose tool `ask` asks this, in the way of the era, and tells what it heard: a result, or a code."""

    def __init__(self, era: str, method: str, params: dict[str, object]) -> None:
        self.method, self.params = method, params
        self.server: ScriptedServer = echo_server(revisions=ERAS[era])
        self.server.add_tool("ask", self._modern if era == "modern" else self._legacy)

    async def _modern(self, call) -> object:
        answers = call.params.get("inputResponses")
        question = {"method": self.method, "params": self.params}
        return {"resultType": "input_required", "inputRequests": {"q": question}} if answers is None else _of(answers)

    async def _legacy(self, call) -> str:
        try:
            return json.dumps(await call.ask(self.method, self.params))
        except RpcError as error:
            return json.dumps(error.code)


def _of(answers) -> str:
    return json.dumps(answers["q"])


async def outcome_of(asked: Asked, host: Host | None) -> object:
    """The answer that the server got, or the error: what it was told (legacy), or what the call failed with."""
    async with open_runtime([spec("one", asked.server)], host=host) as runtime:
        await runtime.wait_ready()
        try:
            told = json.loads((await runtime.call_tool("one.ask")).text)
        except RemoteProtocolError:
            told = "invalid"
        except RpcError as error:
            told = error.code
        after = await runtime.call_tool("one.echo", {"text": "goes on"})
    assert after.text == "goes on"
    return told


def expected_in(era: str, outcome: object) -> object:
    """A question that breaks the rules has a code in legacy, and makes its result invalid in modern (F08)."""
    return "invalid" if era == "modern" and outcome in (-32601, -32602) else outcome


# ── who answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

ANSWERS = {ROOTS: LISTED, SAMPLE: SAID}


class Handlers:
    """A `Host` whose handlers note what they were asked."""

    def __init__(self, *, has_all: bool) -> None:
        self.asked: list[str] = []
        settings = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}} if has_all else {}
        self.host = Host(dict.fromkeys((ROOTS, SAMPLE, ELICIT), self._answer), settings)

    async def _answer(self, request: ServerRequest) -> dict[str, object]:
        self.asked.append(request.method)
        return ANSWERS.get(request.method) or (VISITED if request.params.get("mode") == "url" else FILLED)


class Person:
    """`Questions` whose parts note what they were asked."""

    def __init__(self, *, has_all: bool) -> None:
        self.asked: list[str] = []
        limits = SamplingLimits(has_tools=has_all)
        questions = Questions(
            CallableQuestionPrompter(self._fill), sample=self._sample, limits=limits, roots=[Root("file:///work")]
        )
        # Questions declare both modes of elicitation; a host may declare less of it.
        declared = questions.host.settings if has_all else {**questions.host.settings, "elicitation": {}}
        self.host = evolve(questions.host, settings=declared)

    async def _fill(self, request) -> object:
        self.asked.append(ELICIT)
        return {"name": "n"} if request.form else Answer(Action.ACCEPT)

    async def _sample(self, request) -> SamplingAnswer:
        self.asked.append(SAMPLE)
        return SamplingAnswer(TEXT, "m")


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("who", [Handlers, Person])
@pytest.mark.parametrize(
    ("method", "params", "has_all", "outcome"),
    [
        (ROOTS, {}, False, LISTED),
        (ELICIT, FORM, False, FILLED),
        (ELICIT, {**FORM, "mode": "form"}, False, FILLED),
        (ELICIT, {**FORM, "mode": None}, False, FILLED),
        (ELICIT, {**FORM, "task": {"ttl": 1000}}, False, FILLED),
        (ELICIT, URL, True, VISITED),
        (ELICIT, URL, False, -32602),
        (ELICIT, {**FORM, "mode": "telepathy"}, True, -32602),
        (ELICIT, {**FORM, "mode": ["form"]}, True, -32602),
        (ELICIT, {**URL, "url": None}, True, -32602),
        (ELICIT, {"requestedSchema": FORM["requestedSchema"]}, True, -32602),
        (ELICIT, {"message": "who?"}, True, -32602),
        (ELICIT, {"message": "who?", "requestedSchema": "none"}, True, -32602),
        (SAMPLE, WORDS, False, SAID),
        (SAMPLE, {**WORDS, "task": {"ttl": 1000}}, False, SAID),
        (SAMPLE, TOOLS, True, SAID),
        (SAMPLE, TOOLS, False, -32602),
        (SAMPLE, {**WORDS, "toolChoice": {"mode": "auto"}}, False, -32602),
        (SAMPLE, {**WORDS, "tools": None}, False, SAID),
        (SAMPLE, {"messages": [*WORDS["messages"], USE], "maxTokens": 9}, True, -32602),
        (SAMPLE, {**WORDS, "maxTokens": 1.5}, True, -32602),
        (SAMPLE, {"messages": WORDS["messages"]}, True, -32602),
        (SAMPLE, {"messages": [], "maxTokens": 9}, True, -32602),
        (SAMPLE, {}, True, -32602),
        ("tasks/get", {"taskId": "t"}, True, -32601),
        ("vendor/ask", {}, True, -32601),
    ],
)
async def test_a_question_is_put_or_refused(
    method: str, params: dict[str, object], has_all: bool, outcome: object, who: type, era: str, autojump_clock: object
) -> None:
    """F08, F11: only what was declared and is well-formed reaches a handler; the rest has its code, or is invalid."""
    answering = who(has_all=has_all)

    told = await outcome_of(Asked(era, method, params), answering.host)

    assert told == expected_in(era, outcome)
    if isinstance(outcome, int):
        assert answering.asked == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("host", [None, Host(), Questions().host], ids=["nobody", "host", "questions"])
@pytest.mark.parametrize(("method", "params"), [(ROOTS, {}), (ELICIT, FORM), (ELICIT, URL), (SAMPLE, WORDS)])
async def test_what_nobody_answers_is_refused(
    method: str, params: dict[str, object], host: Host | None, era: str, autojump_clock: object
) -> None:
    """F08, fault 75: without a handler nothing is declared, so it is not found, or makes the result invalid."""
    assert await outcome_of(Asked(era, method, params), host) == expected_in(era, -32601)


async def test_a_question_within_a_task_is_judged_and_its_answer_names_the_task(autojump_clock: object) -> None:
    """G05: a question that belongs to a task of 2025-11-25 is as any other; the mark is put on what was judged."""
    told = await outcome_of(Asked("legacy", ELICIT, {**FORM, **RELATED}), Handlers(has_all=False).host)

    assert told == {**FILLED, **RELATED}


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        (ELICIT, FORM, {"action": "nonsense"}),
        (ELICIT, FORM, {"action": "accept"}),
        (ELICIT, FORM, {"action": "accept", "content": {"name": {"nested": 1}}}),
        (ELICIT, FORM, {"action": "decline", "content": {}}),
        (ELICIT, FORM, None),
        (ELICIT, FORM, {"action": "decline", "_meta": object()}),
        (ELICIT, FORM, ValueError("canary")),
        (ELICIT, URL, {"action": "accept", "content": {}}),
        (SAMPLE, WORDS, {"role": "assistant", "content": TEXT}),
        (SAMPLE, WORDS, {**SAID, "content": "text"}),
        (SAMPLE, TOOLS, {**SAID, "role": "system"}),
        (SAMPLE, WORDS, {**SAID, "content": USE["content"]}),
        (SAMPLE, WORDS, ValueError("canary")),
        (ROOTS, {}, {"roots": [{"uri": "https://h.example/"}]}),
        (ROOTS, {}, {}),
        (ROOTS, {}, {"roots": [{"uri": "file:///x", "name": object()}]}),
        (ROOTS, {}, ValueError("canary")),
    ],
)
async def test_an_answer_that_is_none_is_a_failure_of_the_handler(
    method: str,
    params: dict[str, object],
    answer: object,
    era: str,
    autojump_clock: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E13, F11, fault 76: logged; the server hears of an internal error, or nothing; the connection goes on."""

    async def handler(request: ServerRequest) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    host = Host({method: handler}, {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}})

    assert await outcome_of(Asked(era, method, params), host) == -32603
    assert [record.levelname for record in caplog.records if "handler of" in record.message] == ["ERROR"]


async def malformed(request) -> SamplingAnswer:
    return SamplingAnswer("text", "m")


async def fails(request) -> None:
    raise ZeroDivisionError


async def rejects(request) -> None:
    return None


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "questions", "code"),
    [
        (SAMPLE, WORDS, {"sample": malformed}, -32603),
        (SAMPLE, WORDS, {"sample": fails}, -32603),
        (SAMPLE, WORDS, {"sample": rejects}, -1),
        (ELICIT, FORM, {"prompter": CallableQuestionPrompter(fails)}, -32603),
        (ELICIT, {**URL, "url": "javascript:x"}, {"prompter": CallableQuestionPrompter(fails)}, -32602),
        (SAMPLE, WORDS, {"sample": fails, "limits": SamplingLimits(max_request_bytes=9)}, -32602),
    ],
)
async def test_what_questions_do_not_answer(
    method: str,
    params: dict[str, object],
    questions: dict[str, object],
    code: int,
    era: str,
    autojump_clock: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F11: what a person rejects, what fails, and what is refused beyond the protocol: the same codes and errors."""
    told = await outcome_of(Asked(era, method, params), Questions(**questions).host)  # type: ignore[arg-type]

    assert told == expected_in(era, code)


@pytest.mark.parametrize("era", ERAS)
async def test_a_handler_refuses_with_a_code_of_its_own(era: str, autojump_clock: object) -> None:
    """F11: -1 is a rejection; a modern call fails with it here, and its server hears nothing."""

    async def reject(request: ServerRequest) -> dict[str, object]:
        raise RpcError(code=-1, message="no")

    asked = Asked(era, SAMPLE, WORDS)

    assert await outcome_of(asked, Host({SAMPLE: reject})) == -1
    assert len([call for call in asked.server.seen("tools/call") if call["params"]["name"] == "ask"]) == 1
