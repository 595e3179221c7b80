"""The elicitor: every question is answered once, one dialog at a time, whatever happens meanwhile."""

from __future__ import annotations

import itertools
import json
from contextlib import asynccontextmanager

import pytest
import trio
from scripted_fleet import StepSweep
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.elicitor import Elicitor
from mcp_actors.actors.prompters import CallablePrompter
from mcp_actors.actors.questions import (
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
from mcp_actors.elicitation.fields import Field, FieldType, Form
from mcp_actors.elicitation.hook_outcomes import Exited
from mcp_actors.elicitation.hooks import CommandHook, Hook, HookEvent, Hooks
from mcp_actors.elicitation.policy import Mode, Policy, read_answers
from mcp_actors.elicitation.requests import (
    CANCELLED,
    DECLINED,
    INTERNAL_ERROR,
    Action,
    Answer,
    InputRequest,
    Kind,
    RefusedRequest,
    Stage,
)
from mcp_actors.elicitation.urls import JudgedUrl
from mcp_actors.errors import ConnectFailed

BEFORE, AFTER = HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT
TITLE = Field("title", FieldType.STRING, "Title", is_required=True)
PRIORITY = Field("priority", FieldType.STRING, "Priority")
ACCEPTED = Answer(Action.ACCEPT, {"title": "t"})


def form(server="github", key=1, *, call=None, fields=(TITLE,), message="Create?"):
    return InputRequest(server, key, Kind.FORM, message, form=Form(tuple(fields)), call=call)


def url(server="pay", elicitation_id="e1", stage=Stage.FIRST):
    page = JudgedUrl("https://pay.example/", "pay.example")
    return InputRequest(server, 1, Kind.URL, "Pay", url=page, elicitation_id=elicitation_id, stage=stage)


class Desk:
    """A prompter that shows one question and waits until the test answers it."""

    def __init__(self):
        self.shown = []
        self.dialog = None

    async def ask(self, request):
        assert self.dialog is None, "two dialogs at once"
        self.shown.append(request)
        self.dialog = dialog = trio.Event()
        self.given = None
        try:
            await dialog.wait()
            return self.given
        finally:
            self.dialog = None

    def answer(self, answer=ACCEPTED):
        self.given = answer
        self.dialog.set()


class Work:
    """An elicitor at work, its desk, what it told, and the outcomes of what was asked."""

    def __init__(self, elicitor, desk, events, nursery):
        self.elicitor, self.desk, self.events, self.nursery = elicitor, desk, events, nursery
        self.outcomes = {}
        self.ended = []

    def ask(self, name, request):
        scope = trio.CancelScope()

        async def ask():
            with scope:
                self.outcomes[name] = await self.elicitor.ask(request)
            self.ended.append(name)

        self.nursery.start_soon(ask)
        return scope

    async def tell(self, message):
        await self.elicitor.mailbox.ref.tell(message)
        await wait_all_tasks_blocked()

    def told(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


async def no_hook(handler, told):
    raise AssertionError("no hook is configured")


@asynccontextmanager
async def at_work(prompter=None, *, run_hook=no_hook, hooks=(), policy=None, without_prompter=False):
    desk, events = Desk(), []
    elicitor = Elicitor(
        None if without_prompter else prompter or desk,
        report=events.append,
        run_hook=run_hook,
        hooks=Hooks(tuple(hooks)),
        policy=policy,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(elicitor.run)
        yield Work(elicitor, desk, events, nursery)
        nursery.cancel_scope.cancel()
    assert elicitor.pending == ()


def hook(name, event=BEFORE, server="", timeout=600.0):
    return Hook(event, server, CommandHook(name, timeout=timeout))


def says(action, content=None, event=BEFORE):
    output = {"hookEventName": event, "action": action}
    return Exited(
        0, json.dumps({"hookSpecificOutput": {**output, **({"content": content} if content else {})}}).encode()
    )


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

    async with at_work(CallablePrompter(wrong)) as stage:
        assert await stage.elicitor.ask(form()) == CANCELLED
        assert len(asked) == Policy().max_attempts


@pytest.mark.parametrize(
    ("given", "outcome"),
    [(None, DECLINED), ({"title": "t"}, ACCEPTED), (ACCEPTED, ACCEPTED), (CANCELLED, CANCELLED)],
)
async def test_a_function_answers(given, outcome, autojump_clock):
    """A host's function gives an answer, the values, or None to decline."""

    async def callback(request):
        return given

    async with at_work(CallablePrompter(callback)) as stage:
        assert await stage.elicitor.ask(form()) == outcome


async def test_a_prompter_that_raises_is_an_error_answer(autojump_clock, caplog):
    """The host's failure is an error for the server, and the next question is asked (fault 76)."""
    failures = iter([ZeroDivisionError("bug"), ExceptionGroup("several", [ValueError()])])

    async def fails(request):
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return {"title": "t"}

    async with at_work(CallablePrompter(fails)) as stage:
        for _ in range(2):
            outcome = await stage.elicitor.ask(form())
            assert isinstance(outcome, RefusedRequest)
            assert outcome.code == INTERNAL_ERROR
            assert "bug" not in outcome.message
        assert await stage.elicitor.ask(form()) == ACCEPTED
        assert [event.by for event in stage.told(QuestionAnswered)] == ["failed", "failed", "person"]


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
        (WithdrawQuestions("a", "call-1"), ["a2", "b"]),
        (WithdrawQuestions("c"), ["a1", "a2", "b"]),
    ],
)
async def test_the_questions_of_a_server_or_call_are_withdrawn(message, left, autojump_clock):
    """A server that is gone, or a call that has ended, leaves no question behind (S295)."""
    async with at_work() as stage:
        stage.ask("a1", form("a", "a1", call="call-1"))
        stage.ask("a2", form("a", "a2", call="call-2"))
        stage.ask("b", form("b", "b", call="call-1"))
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


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_hook_fills_the_priority_of_every_request_of_github(autojump_clock):
    """`priority: medium` answers what asks for nothing else; of a larger form it is what the person sees (S318)."""
    told = []

    async def fill(handler, about):
        told.append(about)
        return says("accept", {"priority": "medium"})

    async with at_work(run_hook=fill, hooks=[hook("fill", server="github")]) as stage:
        assert await stage.elicitor.ask(form("github", fields=(PRIORITY,))) == Answer(
            Action.ACCEPT, {"priority": "medium"}
        )
        assert stage.desk.shown == []

        stage.ask("larger", form("github", fields=(TITLE, PRIORITY)))
        await wait_all_tasks_blocked()
        stage.desk.answer()
        await wait_all_tasks_blocked()
        assert stage.desk.shown[0].form.fields[1].default == "medium"
        assert stage.outcomes["larger"] == Answer(Action.ACCEPT, {"title": "t", "priority": "medium"})

        stage.ask("other", form("gitlab", fields=(PRIORITY,)))
        await wait_all_tasks_blocked()
        assert stage.desk.shown[1].form.fields[0].default is None
        assert [about["mcp_server_name"] for about in told] == ["github", "github"]


async def test_a_result_hook_masks(autojump_clock):
    """What a person typed is replaced by what the hook says, before it is sent (S288)."""

    async def mask(handler, told):
        assert told["content"] == {"title": "secret plan"}
        return says("accept", {"title": "***"}, AFTER)

    async with at_work(run_hook=mask, hooks=[hook("mask", AFTER)]) as stage:
        stage.ask("a", form())
        await wait_all_tasks_blocked()
        stage.desk.answer(Answer(Action.ACCEPT, {"title": "secret plan"}))
        await wait_all_tasks_blocked()

        assert stage.outcomes == {"a": Answer(Action.ACCEPT, {"title": "***"})}


@pytest.mark.parametrize("event", [BEFORE, AFTER])
async def test_a_hook_that_exits_2_declines(event, autojump_clock):
    """Exit 2 refuses the question before the person, and the answer after (S308)."""

    async def refuse(handler, told):
        return Exited(2, b"", b"not allowed")

    async with at_work(run_hook=refuse, hooks=[hook("refuse", event)]) as stage:
        stage.ask("a", form())
        await wait_all_tasks_blocked()
        if event is AFTER:
            stage.desk.answer()
            await wait_all_tasks_blocked()

        assert stage.outcomes == {"a": DECLINED}
        assert len(stage.desk.shown) == (event is AFTER)
        assert [warning.text for warning in stage.told(QuestionWarned)] == ["a hook refused: not allowed"]


@pytest.mark.parametrize("event", [BEFORE, AFTER])
async def test_a_hook_that_times_out_decides_nothing(event, autojump_clock):
    """After its timeout the question goes on as if there were no hook, with a warning (S309)."""

    async def dawdle(handler, told):
        await trio.sleep_forever()

    async with at_work(run_hook=dawdle, hooks=[hook("dawdle", event, timeout=30)]) as stage:
        begin = trio.current_time()
        if event is AFTER:
            stage.ask("a", form())
            await wait_all_tasks_blocked()
            stage.desk.answer()
            await trio.sleep(30)
        else:
            stage.ask("a", form())
            await trio.sleep(30)
            await wait_all_tasks_blocked()
            stage.desk.answer()
        await wait_all_tasks_blocked()

        assert stage.outcomes == {"a": ACCEPTED}
        assert trio.current_time() - begin == 30
        assert [warning.text for warning in stage.told(QuestionWarned)] == ["a hook took longer than 30 s"]


async def test_hooks_run_in_parallel_and_the_most_careful_wins(autojump_clock):
    """All run at once, identical ones once; decline beats accept whatever the order of their ends (S310)."""
    ran = []

    async def run(handler, told):
        ran.append(handler.command)
        await trio.sleep({"slow": 10, "quick": 1}[handler.command])
        return says("accept", {"title": "t"}) if handler.command == "quick" else says("decline")

    async with at_work(run_hook=run, hooks=[hook("quick"), hook("slow"), hook("quick")]) as stage:
        begin = trio.current_time()

        assert await stage.elicitor.ask(form()) == DECLINED
        assert trio.current_time() - begin == 10
        assert sorted(ran) == ["quick", "slow"]


async def test_hooks_of_one_question_hold_up_no_other(autojump_clock):
    """While a hook thinks, the dialogs of other questions open (rule 2)."""

    async def slow(handler, told):
        await trio.sleep(100)
        return Exited(0)

    async with at_work(run_hook=slow, hooks=[hook("slow", server="a")]) as stage:
        stage.ask("a", form("a"))
        await wait_all_tasks_blocked()
        stage.ask("b", form("b"))
        await wait_all_tasks_blocked()

        assert [request.server for request in stage.desk.shown] == ["b"]
        assert [question.phase for question in stage.elicitor.pending] == [Phase.HOOKS, Phase.OPEN]


async def test_a_dialog_closes_before_the_hooks_on_its_answer(autojump_clock):
    """A slow result hook does not keep the next question from being asked."""

    async def slow(handler, told):
        await trio.sleep(100)
        return Exited(0)

    async with at_work(run_hook=slow, hooks=[hook("slow", AFTER, server="a")]) as stage:
        stage.ask("a", form("a"))
        await wait_all_tasks_blocked()
        stage.ask("b", form("b"))
        await wait_all_tasks_blocked()
        stage.desk.answer()
        await wait_all_tasks_blocked()

        assert stage.desk.shown[-1].server == "b"
        assert stage.outcomes == {}


async def test_a_hook_that_cannot_be_run_is_a_warning(autojump_clock):
    """The person is asked as if there were none (rule 1 of hook outcomes)."""

    async def missing(handler, told):
        raise ConnectFailed(reason="no such file: fill")

    async with at_work(run_hook=missing, hooks=[hook("fill")]) as stage:
        stage.ask("a", form())
        await wait_all_tasks_blocked()

        assert stage.desk.dialog is not None
        assert "no such file" in stage.told(QuestionWarned)[0].text


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
