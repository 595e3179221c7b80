"""The bridge from who answers questions to what a runtime offers its servers, in both eras."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from scripted_fleet import echo_server, spec
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.handlers import Root, SamplingAnswer
from mcp_actors.elicitation.hooks import read_hooks
from mcp_actors.elicitation.policy import Mode, Policy
from mcp_actors.elicitation.requests import Action, Answer
from mcp_actors.errors import ActorGone, ConfigError, ElicitationDeclined, LocalProtocolError, RpcError, TransportError
from mcp_actors.fleet.questions import Questions
from mcp_actors.questions.prompters import CallableQuestionPrompter
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}
both_eras = pytest.mark.parametrize("era", ERAS)
FORM = {"type": "object", "properties": {"where": {"type": "string"}, "hidden\u200bkey": {"type": "string"}}}
PARAMS = {"mode": "form", "message": "wh\u202eere?", "requestedSchema": FORM}


def asking_server(era: str) -> ScriptedServer:
    """`deploy` asks where to, in the way of the era, and tells what it heard."""
    server = echo_server(revisions=ERAS[era])

    async def modern(call) -> object:
        answers = call.params.get("inputResponses")
        if answers is None:
            question = {"method": "elicitation/create", "params": PARAMS}
            return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s"}
        return json.dumps(answers["q"])

    async def legacy(call) -> str:
        return json.dumps(await call.ask("elicitation/create", PARAMS))

    server.add_tool("deploy", modern if era == "modern" else legacy)
    return server


# ── a question from end to end ───────────────────────────────────────────────────────────────────────────────────────


@both_eras
async def test_a_question_is_put_cleaned_and_answered_raw(era: str, autojump_clock: object) -> None:
    """A person sees cleaned text; field names go back as the server wrote them (S187, S282, S289)."""
    seen: list[object] = []

    async def fill(request):
        seen.append((request.server, request.message, [item.title for item in request.form.fields]))
        return {"where": "prod", "hidden\u200bkey": "x"}

    async with open_runtime(
        [spec("one", asking_server(era))], host=Questions(CallableQuestionPrompter(fill)).host
    ) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.deploy")

    assert json.loads(result.text) == {"action": "accept", "content": {"where": "prod", "hidden\u200bkey": "x"}}
    assert seen == [("one", "where?", ["where", "hiddenkey"])]


async def test_a_question_that_comes_at_once_is_answered(autojump_clock: object) -> None:
    """S285: who answers is known before `initialized` is sent, so that a server that asks right then loses nothing."""
    server = asking_server("legacy")
    heard: list[object] = []

    async def ask_at_once() -> None:
        await server.wait_seen("notifications/initialized")
        heard.append(await server.ask("elicitation/create", PARAMS))

    async def fill(request) -> dict[str, str]:
        return {"where": "prod"}

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_at_once)
        await wait_all_tasks_blocked()
        host = Questions(CallableQuestionPrompter(fill)).host
        async with open_runtime([spec("one", server)], host=host) as runtime:
            await runtime.wait_ready()
            while not heard:
                await trio.sleep(0.1)

    assert heard == [{"action": "accept", "content": {"where": "prod"}}]


@both_eras
@pytest.mark.parametrize(("mode", "action"), [(Mode.DECLINE, "decline"), (Mode.ACCEPT_DEFAULTS, "accept")])
async def test_a_policy_answers_without_a_person(era: str, mode: Mode, action: str, autojump_clock: object) -> None:
    """S293: nobody is asked; the server gets the action."""
    questions = Questions(policy=Policy(mode))

    async with open_runtime([spec("one", asking_server(era))], host=questions.host) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.deploy")

    assert json.loads(result.text)["action"] == action


@both_eras
async def test_another_door_answers(era: str, autojump_clock: object) -> None:
    """A pending question is seen and answered by its number; what does not fit is told."""

    async def wait(request) -> None:
        await trio.sleep_forever()

    questions = Questions(CallableQuestionPrompter(wait))
    said: list[str] = []

    async with (
        open_runtime([spec("one", asking_server(era))], host=questions.host) as runtime,
        trio.open_nursery() as n,
    ):
        await runtime.wait_ready()

        async def call() -> None:
            said.append((await runtime.call_tool("one.deploy")).text)

        n.start_soon(call)
        await wait_all_tasks_blocked()
        [pending] = questions.pending
        wrong = await questions.answer(pending.number, Answer(Action.ACCEPT, {"where": 5}))
        right = await questions.answer(pending.number, Answer(Action.ACCEPT, {"where": "prod"}))
    with pytest.raises(ActorGone):
        await questions.answer(1, Answer(Action.ACCEPT))

    assert set(wrong) == {"where"}
    assert right == {}
    assert json.loads(said[0])["content"] == {"where": "prod"}


# ── what ends a question ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("era", "end"),
    # A legacy question names no call: its server takes it back itself (`test_hosting`).
    [("modern", "cancel"), *((era, end) for era in ERAS for end in ("death", "disable", "shutdown"))],
)
async def test_no_question_outlives_who_asked(era: str, end: str, autojump_clock: object) -> None:
    """S295: the call is cancelled, the server dies or is switched off, the runtime stops: the dialog closes."""
    server, closed = asking_server(era), trio.Event()

    async def wait(request) -> None:
        try:
            await trio.sleep_forever()
        finally:
            closed.set()

    questions = Questions(CallableQuestionPrompter(wait))
    outcome: list[BaseException] = []

    async def call(runtime, scope: trio.CancelScope) -> None:
        with scope:
            try:
                await runtime.call_tool("one.deploy")
            except TransportError as error:
                outcome.append(error)

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        async with open_runtime([spec("one", server)], host=questions.host) as runtime:
            await runtime.wait_ready()
            nursery.start_soon(call, runtime, scope)
            await wait_all_tasks_blocked()
            assert len(questions.pending) == 1
            match end:
                case "cancel":
                    scope.cancel()
                case "death":
                    server.hang_up()
                case "disable":
                    await runtime.disable("one")
            if end != "shutdown":
                await closed.wait()
                await wait_all_tasks_blocked()
                assert questions.pending == ()
        assert closed.is_set()
        assert questions.pending == ()

    assert len(outcome) == (end != "cancel")


# ── what is declared ─────────────────────────────────────────────────────────────────────────────────────────────────


async def sample(request) -> SamplingAnswer | None:
    return None


@pytest.mark.parametrize(
    ("parts", "declared"),
    [
        ({}, {}),
        ({"policy": Policy(Mode.DECLINE)}, {"elicitation": {"form": {}, "url": {}}}),
        ({"hooks": read_hooks({})}, {}),
        (
            {"hooks": read_hooks({"Elicitation": [{"hooks": [{"type": "command", "command": "true"}]}]})},
            {"elicitation": {"form": {}, "url": {}}},
        ),
        ({"sample": sample}, {"sampling": {}}),
        ({"roots": [Root("file:///x")]}, {"roots": {"listChanged": True}}),
    ],
)
def test_what_nobody_answers_is_not_declared(parts: dict[str, object], declared: dict[str, object]) -> None:
    """S110, F08: capabilities follow from who is there."""
    assert Questions(**parts).host.capabilities == declared  # type: ignore[arg-type]


async def test_a_refusal_is_an_error_for_the_server(autojump_clock: object) -> None:
    """F11: a rejected sample, and a form that is none, have their codes."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    questions = Questions(policy=Policy(Mode.DECLINE), sample=sample)

    async with open_runtime([spec("one", server)], host=questions.host) as runtime:
        await runtime.wait_ready()
        message = {"role": "user", "content": {"type": "text", "text": "hi"}}
        with pytest.raises(RpcError) as rejected:
            await server.ask("sampling/createMessage", {"messages": [message], "maxTokens": 5})
        with pytest.raises(RpcError) as malformed:
            await server.ask("elicitation/create", {"message": "?", "requestedSchema": "none"})

    assert (rejected.value.code, malformed.value.code) == (-1, -32602)


@pytest.mark.parametrize(
    ("revisions", "notices"), [(LEGACY_REVISIONS, 1), (MODERN_REVISIONS, 0)], ids=["legacy", "modern"]
)
async def test_servers_are_told_of_other_roots(
    revisions: tuple[str, ...], notices: int, autojump_clock: object
) -> None:
    """S132, F12: legacy servers get one notice of each change and list what is new; modern ones ask when they want."""
    server = echo_server(revisions=revisions)
    questions = Questions(roots=[Root("file:///one")])

    async with open_runtime([spec("srv", server)], host=questions.host) as runtime:
        await runtime.wait_ready()
        questions.set_roots([Root("file:///one")])  # no news
        questions.set_roots([Root("file:///two", "two")])
        with pytest.raises(ConfigError):
            questions.set_roots([Root("https://h/")])
        await wait_all_tasks_blocked()
        listed = await server.ask("roots/list") if notices else None

    assert len(server.seen("notifications/roots/list_changed")) == notices
    assert listed in (None, {"roots": [{"uri": "file:///two", "name": "two"}]})


def test_roots_that_were_not_declared_cannot_change() -> None:
    """A capability is declared once, when servers connect."""
    with pytest.raises(LocalProtocolError, match="not declared"):
        Questions().set_roots([])


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PAGE = {"mode": "url", "message": "sign", "url": "https://h.example/sign", "elicitationId": "e1"}


async def test_the_servers_notice_ends_the_wait_for_a_page(autojump_clock: object) -> None:
    """S290, F10: -32042, consent, the notice of completion, and the call is made again."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.refuse("tools/call", -32042, "visit", {"elicitations": [PAGE]}, times=1)
    stages: list[str] = []

    async def consent(request):
        stages.append(str(request.stage))
        if len(stages) == 2:
            await server.notify("notifications/elicitation/complete", {"elicitationId": "e1"})
            await trio.sleep_forever()
        return Answer(Action.ACCEPT)

    async with open_runtime([spec("one", server)], host=Questions(CallableQuestionPrompter(consent)).host) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.echo", {"text": "signed"})

    assert result.text == "signed"
    assert stages == ["first", "completion"]


async def test_a_page_that_is_declined_ends_the_call(autojump_clock: object) -> None:
    """S207: the person's no is an error of its own."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.refuse("tools/call", -32042, "visit", {"elicitations": [PAGE]})

    async with open_runtime([spec("one", server)], host=Questions(policy=Policy(Mode.DECLINE)).host) as runtime:
        await runtime.wait_ready()
        with pytest.raises(ElicitationDeclined):
            await runtime.call_tool("one.echo")

    assert len(server.seen("tools/call")) == 1


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_hook_asks_a_tool_of_another_server(autojump_clock: object) -> None:
    """A hook's tool runs on a connected server and answers the form; one that is not connected is passed over.

    It is told where we run (S304, S313).
    """
    helper, answer = ScriptedServer("helper"), {"action": "accept", "content": {"where": "by hook"}}
    output = {"hookSpecificOutput": {"hookEventName": "Elicitation", **answer}}
    told: list[object] = []

    def decide(call) -> str:
        told.append(call.arguments)
        return json.dumps(output)

    helper.add_tool("decide", decide)
    tools = [
        {"type": "mcp_tool", "server": name, "tool": "decide", "input": {"in": "${cwd}"}}
        for name in ("absent", "helper")
    ]
    hooks = read_hooks({"Elicitation": [{"matcher": "one", "hooks": tools}]})
    warned: list[object] = []
    questions = Questions(hooks=hooks, report=warned.append)

    async with open_runtime(
        [spec("one", asking_server("modern")), spec("helper", helper)], host=questions.host
    ) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.deploy")

    assert json.loads(result.text) == answer
    assert told == [{"in": str(Path.cwd())}]
    assert any("could not be run" in str(getattr(event, "text", "")) for event in warned)
