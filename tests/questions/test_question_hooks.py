"""What hooks have to say to questions and answers."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.hook_outcomes import Exited
from mcp_actors.elicitation.requests import DECLINED, Action, Answer
from mcp_actors.errors import ConnectFailed
from mcp_actors.questions.messages import Phase, QuestionWarned
from tests.questions.elicitor_kit import ACCEPTED, AFTER, BEFORE, PRIORITY, TITLE, at_work, form, hook, says


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
