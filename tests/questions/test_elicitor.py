"""The elicitor: every question is answered once, one dialog at a time, whatever happens meanwhile."""

from __future__ import annotations

import itertools

import pytest
import trio
from scripted_fleet import StepSweep
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.hook_outcomes import Exited
from mcp_actors.elicitation.hooks import Hooks
from mcp_actors.elicitation.policy import Mode, Policy, read_answers
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer, Stage
from mcp_actors.questions.elicitor import Elicitor
from mcp_actors.questions.messages import (
    AnswerQuestion,
    CompleteUrl,
    DialogOpened,
    Phase,
    QuestionAnswered,
    QuestionQueued,
    QuestionWarned,
    UrlCompleted,
    WithdrawQuestions,
)
from tests.questions.elicitor_kit import ACCEPTED, AFTER, Desk, at_work, form, hook, no_hook, url

# ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_dialogs_come_one_at_a_time_in_order_of_arrival(autojump_clock):
    """Questions of several servers wait for the dialog of the oldest (S287)."""
    async with at_work() as stage:
        for name in "abcdefgh":
            stage.ask(name, form(f"server-{name}"))
            await wait_all_tasks_blocked()
        for _ in "abcdefgh":
            stage.desk.answer()
            await wait_all_tasks_blocked()

        assert [request.server[-1] for request in stage.desk.shown] == list("abcdefgh")
        assert stage.outcomes == dict.fromkeys("abcdefgh", ACCEPTED)
        assert repr(stage.elicitor) == "<Elicitor | dialogs: 0 | questions: 0 open, 8 answered>"


async def test_the_open_questions_are_data(autojump_clock):
    """Status and pages see who asks what, since when, and which dialog is open."""
    async with at_work() as stage:
        stage.ask("a", form("a"))
        await wait_all_tasks_blocked()
        await trio.sleep(5)
        stage.ask("b", form("b"))
        await wait_all_tasks_blocked()

        first, second = stage.elicitor.pending

        assert (first.phase, first.request.server, second.phase) == (Phase.OPEN, "a", Phase.WAITING)
        assert second.since - first.since == 5
        assert repr(stage.elicitor) == "<Elicitor | dialogs: 1 | questions: 2 open, 0 answered>"


async def test_what_happens_is_told(autojump_clock):
    """Queued, opened, answered: each is an event (S298)."""
    async with at_work() as stage:
        stage.ask("a", form())
        await wait_all_tasks_blocked()
        stage.desk.answer()
        await wait_all_tasks_blocked()

        assert [type(event) for event in stage.events] == [QuestionQueued, DialogOpened, QuestionAnswered]
        assert stage.events[-1] == QuestionAnswered(1, "github", Action.ACCEPT, "person")


async def test_a_server_that_asks_too_much_is_cancelled(autojump_clock):
    """Beyond twenty open questions of one server more are cancelled with a warning; others are not hurt (S300)."""
    async with at_work() as stage:
        for number in range(21):
            stage.ask(number, form("greedy", number))
            await wait_all_tasks_blocked()
        stage.ask("other", form("other"))
        await wait_all_tasks_blocked()

        assert stage.outcomes == {20: CANCELLED}
        assert [event.server for event in stage.told(QuestionWarned)] == ["greedy"]
        assert len(stage.elicitor.pending) == 21


# ── who answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_without_a_prompter_everything_is_declined(autojump_clock):
    """Nobody to ask means decline, with a warning (S293)."""
    async with at_work(without_prompter=True) as stage:
        assert await stage.elicitor.ask(form()) == DECLINED
        assert len(stage.told(QuestionWarned)) == 1


async def test_the_policy_answers_without_a_dialog(autojump_clock):
    """Prepared answers need no person."""
    policy = Policy(mode=Mode.ANSWERS, answers=read_answers({"title": "t"}))
    async with at_work(policy=policy) as stage:
        assert await stage.elicitor.ask(form()) == ACCEPTED
        assert stage.desk.shown == []
        assert stage.told(QuestionAnswered)[0].by == "policy"


async def test_a_person_may_answer_at_another_door(autojump_clock):
    """A page's answer is judged like a dialog's, which then closes; a second one comes too late."""
    async with at_work() as stage:
        ref = stage.elicitor.mailbox.ref
        stage.ask("a", form())
        stage.ask("b", form())
        await wait_all_tasks_blocked()
        first, second = stage.elicitor.pending

        assert await ref.ask(AnswerQuestion(first.number, Answer(Action.ACCEPT, {}))) == {"title": "is required"}
        assert await ref.ask(AnswerQuestion(second.number, DECLINED)) == {}
        assert await ref.ask(AnswerQuestion(first.number, ACCEPTED)) == {}
        await wait_all_tasks_blocked()
        assert sorted(stage.outcomes.values(), key=repr) == sorted([ACCEPTED, DECLINED], key=repr)
        assert "" in await ref.ask(AnswerQuestion(first.number, ACCEPTED))
        assert stage.desk.dialog is None


# ── withdrawal ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_question_that_nobody_waits_for_is_withdrawn(autojump_clock):
    """Cancelling the asker closes its dialog, and the next one opens (S295, fault 76)."""
    async with at_work() as stage:
        scope = stage.ask("a", form("a"))
        await wait_all_tasks_blocked()
        stage.ask("b", form("b"))
        await wait_all_tasks_blocked()

        scope.cancel()
        await wait_all_tasks_blocked()

        assert stage.ended == ["a"]
        assert [question.request.server for question in stage.elicitor.pending] == ["b"]
        assert stage.desk.shown[-1].server == "b"
        assert stage.told(QuestionAnswered) == [QuestionAnswered(1, "a", Action.CANCEL, "withdrawn")]


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (WithdrawQuestions("a"), ["b"]),
        (WithdrawQuestions("c"), ["a1", "a2", "b"]),
    ],
)
async def test_the_questions_of_a_server_are_withdrawn(message, left, autojump_clock):
    """A server that is gone leaves no question behind (S295)."""
    async with at_work() as stage:
        stage.ask("a1", form("a", "a1"))
        stage.ask("a2", form("a", "a2"))
        stage.ask("b", form("b", "b"))
        await wait_all_tasks_blocked()

        await stage.tell(message)

        assert sorted(question.request.key for question in stage.elicitor.pending) == left
        assert stage.outcomes == {name: CANCELLED for name in ("a1", "a2", "b") if name not in left}
        assert stage.desk.dialog is not None


async def test_shutdown_answers_everything_with_cancel(autojump_clock):
    """The open dialog, those that wait, and those asked afterwards all end (S295)."""
    desk = Desk()
    elicitor = Elicitor(desk, report=lambda event: None, run_hook=no_hook)
    outcomes = []

    async def ask():
        outcomes.append(await elicitor.ask(form()))

    async with trio.open_nursery() as askers:
        async with trio.open_nursery() as nursery:
            await nursery.start(elicitor.run)
            for _ in range(5):
                askers.start_soon(ask)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        askers.start_soon(ask)

    assert outcomes == [CANCELLED] * 6
    assert desk.dialog is None


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_notice_of_completion_ends_the_wait(autojump_clock):
    """A person who is on the page need not say so: the server's notice does, once; unknown ids are no matter (S290)."""
    async with at_work() as stage:
        stage.ask("first", url())
        await wait_all_tasks_blocked()
        stage.desk.answer(Answer(Action.ACCEPT))
        await wait_all_tasks_blocked()
        stage.ask("done?", url(stage=Stage.COMPLETION))
        await wait_all_tasks_blocked()

        for server, elicitation_id in [("pay", "other"), ("other", "e1"), ("pay", "e1"), ("pay", "e1")]:
            await stage.tell(CompleteUrl(server, elicitation_id))

        assert stage.outcomes == {"first": Answer(Action.ACCEPT), "done?": Answer(Action.ACCEPT)}
        assert stage.told(UrlCompleted) == [UrlCompleted("pay", "e1")]
        assert stage.told(QuestionAnswered)[-1].by == "notice"
        assert stage.desk.dialog is None


async def test_a_notice_that_comes_first_is_remembered(autojump_clock):
    """A page that is done before anybody waits for it is not waited for."""
    async with at_work() as stage:
        stage.ask("first", url())
        await wait_all_tasks_blocked()
        await stage.tell(CompleteUrl("pay", "e1"))
        stage.desk.answer(Answer(Action.ACCEPT))
        await wait_all_tasks_blocked()

        assert await stage.elicitor.ask(url(stage=Stage.COMPLETION)) == Answer(Action.ACCEPT)
        assert len(stage.desk.shown) == 1


@pytest.mark.parametrize("without_prompter", [False, True])
async def test_a_page_is_not_waited_for_for_ever(without_prompter, autojump_clock):
    """Without a notice, and without a word of the person, the question is cancelled in the end."""
    async with at_work(policy=Policy(completion_timeout=50), without_prompter=without_prompter) as stage:
        begin = trio.current_time()

        assert await stage.elicitor.ask(url(stage=Stage.COMPLETION)) == CANCELLED
        assert trio.current_time() - begin == 50


async def test_old_pages_are_forgotten(autojump_clock):
    """A server that names ever new pages fills no memory."""
    policy = Policy(mode=Mode.DECLINE)
    async with at_work(policy=policy) as stage:
        for number in range(1100):
            await stage.elicitor.ask(url(elicitation_id=str(number)))
        await stage.tell(CompleteUrl("pay", "0"))
        await stage.tell(CompleteUrl("pay", "1099"))

        assert stage.told(UrlCompleted) == [UrlCompleted("pay", "1099")]


# ── sweeps ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def life(elicitor, desk, cut=None):
    """Five questions through hooks, dialogs and a withdrawal, with somebody who answers."""
    outcomes = {}

    async def ask(name, request):
        outcomes[name] = await elicitor.ask(request)

    async def person():
        while True:
            await wait_all_tasks_blocked()
            if desk.dialog is not None:
                desk.answer()
            await trio.sleep(1)

    async with trio.open_nursery() as world:
        for number, server in enumerate(("a", "b", "hooked", "a", "b")):
            world.start_soon(ask, number, form(server, number))
        world.start_soon(person)
        with cut or trio.CancelScope():
            async with trio.open_nursery() as victim:
                await victim.start(elicitor.run)
                while len(outcomes) < 5:
                    await trio.sleep(1)
                victim.cancel_scope.cancel()
        with trio.fail_after(1000):
            while len(outcomes) < 5:
                await trio.sleep(1)
        world.cancel_scope.cancel()
    return outcomes


def make():
    desk, events = Desk(), []

    async def run_hook(handler, told):
        await trio.sleep(2)
        return Exited(0)

    hooks = Hooks((hook("h", server="hooked"), hook("h", AFTER, server="a")))
    return Elicitor(desk, report=events.append, run_hook=run_hook, hooks=hooks), desk, events


@pytest.mark.deadline(100_000)
async def test_every_question_is_answered_wherever_the_elicitor_is_cut(autojump_clock):
    """Cancelled at its n-th step, for every n, it leaves no asker waiting and no dialog open; each ends once."""
    for step in itertools.count(1):
        elicitor, desk, events = make()
        scope = trio.CancelScope()
        sweep = StepSweep("Elicitor.run", step, scope)
        trio.lowlevel.add_instrument(sweep)
        try:
            outcomes = await life(elicitor, desk, scope)
        finally:
            trio.lowlevel.remove_instrument(sweep)

        assert all(outcome in (ACCEPTED, CANCELLED) for outcome in outcomes.values())
        assert len(outcomes) == 5
        assert elicitor.pending == ()
        assert desk.dialog is None
        numbers = [event.number for event in events if isinstance(event, QuestionAnswered)]
        assert len(numbers) == len(set(numbers))
        if sweep.taken < step:
            break
    assert step > 5


@pytest.mark.deadline(100_000)
async def test_a_withdrawal_at_any_step_disturbs_no_other_question(autojump_clock):
    """An asker cancelled at its n-th step, for every n, takes only its own question along."""
    for step in itertools.count(1):
        elicitor, desk, _ = make()
        scope = trio.CancelScope()
        outcomes = {}

        async def victim(elicitor=elicitor, scope=scope, outcomes=outcomes):
            with scope:
                outcomes["victim"] = await elicitor.ask(form("hooked"))

        async def other(elicitor=elicitor, outcomes=outcomes):
            outcomes["other"] = await elicitor.ask(form("a"))

        sweep = StepSweep("victim", step, scope)
        trio.lowlevel.add_instrument(sweep)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(elicitor.run)
                nursery.start_soon(victim, name="victim")
                nursery.start_soon(other)
                for _ in range(20):
                    await wait_all_tasks_blocked()
                    if desk.dialog is not None:
                        desk.answer()
                    await trio.sleep(1)
                nursery.cancel_scope.cancel()
        finally:
            trio.lowlevel.remove_instrument(sweep)

        assert outcomes["other"] == ACCEPTED
        assert outcomes.get("victim", ACCEPTED) == ACCEPTED
        assert elicitor.pending == ()
        if sweep.taken < step:
            break
    assert step > 2


def test_an_elicitor_shows_no_answers():
    """What was typed appears in no repr of an event."""
    assert "canary" not in repr(AnswerQuestion(1, Answer(Action.ACCEPT, {"a": "canary"})))
