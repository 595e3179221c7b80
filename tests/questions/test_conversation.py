"""The conversation with a person about one question."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.policy import Policy
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR
from mcp_actors.protocol.question_rules import Refused
from mcp_actors.questions.messages import QuestionAnswered
from mcp_actors.questions.prompters import CallableQuestionPrompter
from tests.questions.elicitor_kit import ACCEPTED, PRIORITY, TITLE, at_work, form


async def test_an_answer_that_does_not_fit_is_asked_for_again(autojump_clock):
    """The form shows what is wrong and keeps what was right; nothing is sent until it fits (S292)."""
    async with at_work() as stage:
        stage.ask("a", form(fields=(TITLE, PRIORITY)))
        await wait_all_tasks_blocked()
        stage.desk.answer(Answer(Action.ACCEPT, {"priority": "high"}))
        await wait_all_tasks_blocked()

        again = stage.desk.shown[1]
        assert again.problems == {"title": "is required"}
        assert again.form.fields[1].default == "high"
        assert stage.outcomes == {}
        stage.desk.answer()
        await wait_all_tasks_blocked()
        assert stage.outcomes == {"a": Answer(Action.ACCEPT, {"title": "t", "priority": "high"})}


async def test_a_prompter_that_never_fits_is_given_up(autojump_clock):
    """A callback that always answers wrong does not ask for ever."""
    asked = []

    async def wrong(request):
        asked.append(request)
        return {"title": 3}

    async with at_work(CallableQuestionPrompter(wrong)) as stage:
        assert await stage.elicitor.ask(form()) == CANCELLED
        assert len(asked) == Policy().max_attempts


@pytest.mark.parametrize("given", ["yes", 5, ["title"], True])
@pytest.mark.parametrize("is_bare", [False, True])
async def test_what_is_no_answer_is_an_error_for_the_server(given, is_bare, autojump_clock, caplog):
    """A function or a prompter that gives nonsense costs its question, and no other (fault 76)."""

    class Bare:
        async def ask(self, request):
            return given

    async def callback(request):
        return given

    async with at_work(Bare() if is_bare else CallableQuestionPrompter(callback)) as stage:
        for _ in range(2):
            outcome = await stage.elicitor.ask(form())
            assert (outcome.code, outcome.reason) == (INTERNAL_ERROR, "the client failed to ask")

    assert "the prompter failed" in caplog.text


@pytest.mark.parametrize(
    ("given", "outcome"),
    [(None, DECLINED), ({"title": "t"}, ACCEPTED), (ACCEPTED, ACCEPTED), (CANCELLED, CANCELLED)],
)
async def test_a_function_answers(given, outcome, autojump_clock):
    """A host's function gives an answer, the values, or None to decline."""

    async def callback(request):
        return given

    async with at_work(CallableQuestionPrompter(callback)) as stage:
        assert await stage.elicitor.ask(form()) == outcome


async def test_a_prompter_that_raises_is_an_error_answer(autojump_clock, caplog):
    """The host's failure is an error for the server, and the next question is asked (fault 76)."""
    failures = iter([ZeroDivisionError("bug"), ExceptionGroup("several", [ValueError()])])

    async def fails(request):
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return {"title": "t"}

    async with at_work(CallableQuestionPrompter(fails)) as stage:
        for _ in range(2):
            outcome = await stage.elicitor.ask(form())
            assert isinstance(outcome, Refused)
            assert outcome.code == INTERNAL_ERROR
            assert "bug" not in outcome.reason
        assert await stage.elicitor.ask(form()) == ACCEPTED
        assert [event.by for event in stage.told(QuestionAnswered)] == ["failed", "failed", "person"]
