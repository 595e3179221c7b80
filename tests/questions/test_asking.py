"""From what a server asks to what it is answered: elicitation, sampling, roots, the rounds of -32042."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingLimits
from mcp_actors.elicitation.requests import (
    DECLINED,
    Action,
    Answer,
    Stage,
)
from mcp_actors.errors import ConfigError, ElicitationDeclined, RpcError
from mcp_actors.protocol.events import ServerRequestCancelled, ServerRequestReceived
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, decode, encode
from mcp_actors.protocol.question_rules import Refused
from mcp_actors.protocol.session import Session, SessionSettings
from mcp_actors.protocol.types import Era
from mcp_actors.questions.asking import Asking
from mcp_actors.questions.elicitor import Elicitor
from mcp_actors.questions.messages import CompleteUrl
from mcp_actors.questions.prompters import CallableQuestionPrompter

FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
TEXT = {"type": "text", "text": "hi"}
SAMPLING = {"messages": [{"role": "user", "content": TEXT}], "maxTokens": 10}


async def no_hook(handler, told):
    raise AssertionError("no hook is configured")


def elicitor_of(callback):
    return Elicitor(CallableQuestionPrompter(callback), report=lambda event: None, run_hook=no_hook)


async def answer_all(request):
    return {"name": "n"} if request.form else Answer(Action.ACCEPT)


# ── what is declared ─────────────────────────────────────────────────────────────────────────────────────────────────


async def sample(request):
    return SamplingAnswer(TEXT, "model")


@pytest.mark.parametrize(
    ("parts", "capabilities", "methods"),
    [
        ({}, {}, set()),
        ({"sample": sample}, {"sampling": {}}, {"sampling/createMessage"}),
        ({"roots": ()}, {"roots": {"listChanged": True}}, {"roots/list"}),
        (
            {"sample": sample, "limits": SamplingLimits(has_tools=True), "elicitor": elicitor_of(answer_all)},
            {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}},
            {"sampling/createMessage", "elicitation/create"},
        ),
    ],
)
def test_what_somebody_answers_is_declared(parts, capabilities, methods):
    """Capabilities and handled methods follow from who is there (rule 1)."""
    asking = Asking(**parts)

    assert (asking.capabilities, asking.methods) == (capabilities, methods)


def test_bad_roots_are_a_configuration_error():
    """They are judged when they are given, not when a server asks."""
    with pytest.raises(ConfigError):
        Asking(roots=[Root("https://example.com/")])


# ── elicitation ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_form_is_answered(autojump_clock):
    """The bare result goes back, in either era."""
    elicitor = elicitor_of(answer_all)
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)
        asking = Asking(elicitor)

        assert await asking.answer("s", "key", "elicitation/create", FORM) == {
            "action": "accept",
            "content": {"name": "n"},
        }
        nested = {"properties": {"a": {"type": "object"}}}
        refused = await asking.answer("s", "key", "elicitation/create", {**FORM, "requestedSchema": nested})
        assert refused.code == INVALID_PARAMS
        nursery.cancel_scope.cancel()


async def test_a_prompter_that_raises_is_an_error(autojump_clock, caplog):
    """The host's failure becomes an error answer (fault 76)."""

    async def fails(request):
        raise ZeroDivisionError

    elicitor = elicitor_of(fails)
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)

        refused = await Asking(elicitor).answer("s", 1, "elicitation/create", FORM)

        assert refused.code == INTERNAL_ERROR
        nursery.cancel_scope.cancel()


# ── sampling and roots ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_roots_are_listed_and_noted_once(caplog):
    """Roots are answered; that they are deprecated is told once (spec_client 9.6)."""
    asking = Asking(roots=[Root("file:///work", "w")])

    for _ in range(2):
        assert await asking.answer("s", 1, "roots/list", {}) == {"roots": [{"uri": "file:///work", "name": "w"}]}

    assert len([record for record in caplog.records if "deprecates" in record.message]) == 1


async def test_sampling_is_answered_within_the_limits():
    """The host sees no more tokens than allowed; its answer is the result."""
    asked = []

    async def model(request):
        asked.append(request)
        return SamplingAnswer(TEXT, "model")

    asking = Asking(sample=model, limits=SamplingLimits(max_tokens=5))

    result = await asking.answer("s", 1, "sampling/createMessage", SAMPLING)

    assert result == {"role": "assistant", "content": TEXT, "model": "model", "stopReason": "endTurn"}
    assert asked[0].max_tokens == 5


async def fails(request):
    raise ZeroDivisionError


async def rejects(request):
    return None


async def dawdles(request):
    await trio.sleep_forever()


@pytest.mark.parametrize(("model", "code"), [(rejects, -1), (fails, INTERNAL_ERROR), (dawdles, INTERNAL_ERROR)])
async def test_a_model_that_gives_nothing_is_an_error(model, code, autojump_clock, caplog):
    """Rejected: -1. Raised or too slow: an internal error (F11, fault 76)."""
    asking = Asking(sample=model, limits=SamplingLimits(timeout=10))

    refused = await asking.answer("s", 1, "sampling/createMessage", SAMPLING)

    assert isinstance(refused, Refused)
    assert refused.code == code


async def test_one_server_gets_one_model_at_a_time(autojump_clock):
    """Requests of one server wait for each other, those of another run beside them; too many are refused."""
    running: list[str] = []
    most: dict[str, int] = {}

    async def model(request):
        running.append(request.server)
        most[request.server] = max(most.get(request.server, 0), running.count(request.server))
        most["all"] = max(most.get("all", 0), len(running))
        await trio.sleep(1)
        running.remove(request.server)
        return SamplingAnswer(TEXT, "model")

    asking = Asking(sample=model, limits=SamplingLimits(max_open=3))
    results = []

    async def ask(server):
        results.append(await asking.answer(server, 1, "sampling/createMessage", SAMPLING))

    async with trio.open_nursery() as nursery:
        for server in "aaaabb":
            nursery.start_soon(ask, server)

    assert most == {"a": 1, "b": 1, "all": 2}
    assert len([result for result in results if isinstance(result, Refused)]) == 1


# ── -32042 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def required(*ids):
    entries = [{"mode": "url", "elicitationId": i, "url": f"https://pay.example/{i}", "message": "pay"} for i in ids]
    return RpcError(code=-32042, message="pay first", data={"elicitations": entries})


class Rounds:
    """A call that fails with the given errors first."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.attempts = 0

    async def __call__(self):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return b"{}"


async def run_rounds(callback, attempt):
    elicitor = elicitor_of(callback)
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)
        try:
            return await Asking(elicitor).with_url_rounds("pay", attempt)
        finally:
            nursery.cancel_scope.cancel()


async def outcome_of(callback, attempt):
    """The nursery wraps what is raised; take it out."""
    try:
        return await run_rounds(callback, attempt)
    except ExceptionGroup as group:
        [error] = group.exceptions
        return error
    except (RpcError, ElicitationDeclined) as error:
        return error


async def test_a_person_is_sent_to_each_page_and_the_call_is_made_again(autojump_clock):
    """Consent, then completion, of each page in turn; then the call goes out once more (F10)."""
    asked = []

    async def person(request):
        asked.append((request.elicitation_id, request.stage))
        return Answer(Action.ACCEPT)

    attempt = Rounds(required("e1", "e2"))

    assert await outcome_of(person, attempt) == b"{}"
    assert asked == [(i, stage) for i in ("e1", "e2") for stage in (Stage.FIRST, Stage.COMPLETION)]
    assert attempt.attempts == 2


@pytest.mark.parametrize(("rounds", "is_made"), [(3, True), (4, False)])
async def test_the_rounds_are_bounded(rounds, is_made, autojump_clock):
    """After three rounds the error stands (S207)."""
    attempt = Rounds(*(required("e1") for _ in range(rounds)))

    outcome = await outcome_of(answer_all, attempt)

    assert (outcome == b"{}") is is_made
    assert attempt.attempts == 4


@pytest.mark.parametrize("error", [RpcError(code=-32042, message="no list"), RpcError(code=-32602, message="bad")])
async def test_other_errors_pass(error, autojump_clock):
    """An error without usable questions is the call's error, at once."""
    attempt = Rounds(error)

    assert await outcome_of(answer_all, attempt) is error
    assert attempt.attempts == 1


async def test_who_declines_a_page_ends_the_call(autojump_clock):
    """The call is not made again, and says what the answer was."""

    async def person(request):
        return DECLINED

    attempt = Rounds(required("e1", "e2"))
    outcome = await outcome_of(person, attempt)

    assert isinstance(outcome, ElicitationDeclined)
    assert (outcome.server, outcome.action, attempt.attempts) == ("pay", "decline", 1)


async def test_the_notice_makes_the_call_go_on(autojump_clock):
    """The server's word that the page is done is as good as the person's (S290)."""

    async def person(request):
        if request.stage is Stage.COMPLETION:
            await trio.sleep_forever()
        return Answer(Action.ACCEPT)

    elicitor = elicitor_of(person)
    results = []
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)

        async def call():
            results.append(await Asking(elicitor).with_url_rounds("pay", Rounds(required("e1"))))

        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        assert results == []
        await elicitor.mailbox.ref.tell(CompleteUrl("pay", "e1"))
        await wait_all_tasks_blocked()

        assert results == [b"{}"]
        nursery.cancel_scope.cancel()


# ── with a session ───────────────────────────────────────────────────────────────────────────────────────────────────


class Conversation:
    """A legacy session whose server requests are answered the way a connection does it."""

    def __init__(self, asking, nursery):
        self.asking, self.nursery = asking, nursery
        self.session = Session(
            SessionSettings(pinned_era=Era.LEGACY, capabilities=asking.capabilities, handled_methods=asking.methods)
        )
        self.scopes = {}
        self.sent = []
        self.session.open(0.0)
        self.offered = decode(self.session.frames_to_send()[0].data)["params"]["capabilities"]
        self.hear(id=1, result={"protocolVersion": "2025-11-25", "capabilities": {}})
        self.sent.clear()

    def hear(self, **message):
        self.session.receive_message(encode({"jsonrpc": "2.0", **message}), 0.0)
        self.sent += [decode(frame.data) for frame in self.session.frames_to_send()]
        for event in self.session.events():
            match event:
                case ServerRequestReceived():
                    self.nursery.start_soon(self.serve, event)
                case ServerRequestCancelled(request_id):
                    self.scopes[request_id].cancel()

    async def serve(self, event):
        with trio.CancelScope() as self.scopes[event.request_id]:
            outcome = await self.asking.answer("s", event.request_id, event.method, event.params)
            if isinstance(outcome, Refused):
                frame = self.session.answer_error(event.request_id, outcome.code, outcome.reason)
            else:
                frame = self.session.answer(event.request_id, outcome)
            if frame is not None:
                self.sent.append(decode(frame.data))


async def test_a_session_is_served_while_a_person_thinks(autojump_clock):
    """Pings are answered meanwhile; a cancelled question gets no answer, every other one does (faults 75, 76)."""
    asked = []

    async def person(request):
        asked.append(request.key)
        await trio.sleep(20)
        return {"name": "n"}

    elicitor = elicitor_of(person)
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)
        talk = Conversation(Asking(elicitor), nursery)
        for request_id in (0, "0", 7):
            talk.hear(id=request_id, method="elicitation/create", params=FORM)
            await wait_all_tasks_blocked()
        talk.hear(id="a", method="ping")
        talk.hear(id=9, method="sampling/createMessage", params=SAMPLING)
        talk.hear(id=8, method="elicitation/create", params={**FORM, "requestedSchema": {"type": "array"}})
        talk.hear(method="notifications/cancelled", params={"requestId": "0"})
        await wait_all_tasks_blocked()
        before = {message["id"]: message.get("result", message.get("error", {}).get("code")) for message in talk.sent}
        await trio.sleep(50)

        assert talk.offered == {"elicitation": {"form": {}, "url": {}}}
        assert before == {"a": {}, 9: METHOD_NOT_FOUND, 8: INVALID_PARAMS}
        assert asked == [0, 7]
        assert [message["id"] for message in talk.sent[3:]] == [0, 7]
        assert elicitor.pending == ()
        nursery.cancel_scope.cancel()
