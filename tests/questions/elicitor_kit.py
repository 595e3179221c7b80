"""An elicitor at work: its desk, its questions, its hooks."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from mcp_actors.elicitation.fields import Field, FieldType, Form
from mcp_actors.elicitation.hook_outcomes import Exited
from mcp_actors.elicitation.hooks import CommandHook, Hook, HookEvent, Hooks
from mcp_actors.elicitation.requests import Action, Answer, InputRequest, Kind, Stage
from mcp_actors.elicitation.urls import JudgedUrl
from mcp_actors.questions.elicitor import Elicitor

BEFORE, AFTER = HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT
TITLE = Field("title", FieldType.STRING, "Title", is_required=True)
PRIORITY = Field("priority", FieldType.STRING, "Priority")
ACCEPTED = Answer(Action.ACCEPT, {"title": "t"})


def form(server="github", key=1, *, fields=(TITLE,), message="Create?"):
    return InputRequest(server, key, Kind.FORM, message, form=Form(tuple(fields)))


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
