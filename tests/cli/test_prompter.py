"""The dialogs of a terminal, typed line by line."""

from __future__ import annotations

import pytest
import trio
from attrs import evolve

from mcp_actors.cli.prompter import TerminalPrompter
from mcp_actors.elicitation.fields import Choice, Field, FieldType, Form
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer, InputRequest, Kind, Stage
from mcp_actors.elicitation.urls import judge_url

TITLE = Field("title", FieldType.STRING, "Title", "What it is about", is_required=True)
COUNT = Field("count", FieldType.INTEGER, "Count", minimum=1)
PRIORITY = Field(
    "p",
    FieldType.CHOICE,
    "Priority",
    default="m",
    choices=(Choice("l", "Low"), Choice("m", "Medium"), Choice("h", "High")),
)
SURE = Field("sure", FieldType.BOOLEAN, "Sure", default=True)
SECRET = Field("pw", FieldType.STRING, "Password", asks_secret=True)


def form(*fields, message="Create an issue?"):
    return InputRequest("github", 1, Kind.FORM, message, form=Form(fields))


def url(text="https://pay.example/x?y=1", **changes):
    return InputRequest("pay", 1, Kind.URL, "Pay now", url=judge_url(text), **changes)


class Terminal:
    """What a person types, and what they see."""

    def __init__(self, *lines, opens=True):
        self.lines = list(lines)
        self.shown = ""
        self.opened = []
        self.opens = opens

    async def read_line(self):
        await trio.lowlevel.checkpoint()
        return self.lines.pop(0) if self.lines else None

    async def open_url(self, url):
        self.opened.append(url)
        return self.opens

    async def ask(self, request):
        return await TerminalPrompter(self.read_line, self.write, self.open_url).ask(request)

    def write(self, text):
        self.shown += text


def accept(**content):
    return Answer(Action.ACCEPT, content)


@pytest.mark.parametrize(
    ("request_", "lines", "answer"),
    [
        (form(TITLE), ["Bug", "y"], accept(title="Bug")),
        (form(TITLE), ["", "Bug", "yes"], accept(title="Bug")),
        (form(TITLE), ["//decline", "y"], accept(title="/decline")),
        (form(TITLE), ["/decline"], DECLINED),
        (form(TITLE), ["/cancel"], CANCELLED),
        (form(TITLE), [], CANCELLED),
        (form(TITLE), ["Bug"], CANCELLED),
        (form(TITLE), ["Bug", "d"], DECLINED),
        (form(TITLE), ["Bug", "c"], CANCELLED),
        (form(TITLE), ["Bug", "what?", "", "y"], accept(title="Bug")),
        (form(TITLE), ["Bug", "e", "Feature", "y"], accept(title="Feature")),
        (form(TITLE), ["Bug", "e", "", "y"], accept(title="Bug")),
        (form(TITLE, COUNT), ["Bug", "", "y"], accept(title="Bug")),
        (form(TITLE, COUNT), ["Bug", "zero", "0", "2", "y"], accept(title="Bug", count=2)),
        (form(TITLE, COUNT), ["Bug", "/back", "Feature", "2", "y"], accept(title="Feature", count=2)),
        (form(TITLE), ["/back", "Bug", "/back", "", "y"], accept(title="Bug")),
        (form(PRIORITY), ["", "y"], accept(p="m")),
        (form(PRIORITY), ["3", "y"], accept(p="h")),
        (form(PRIORITY), ["low", "y"], accept(p="l")),
        (form(SURE), ["no", "y"], accept(sure=False)),
        (form(), ["y"], accept()),
        (form(), ["n"], DECLINED),
        (form(SECRET, PRIORITY), ["", "y"], accept(p="m")),
        (form(TITLE, evolve(SECRET, is_required=True)), ["x"], DECLINED),
    ],
)
async def test_a_form_is_filled_in_reviewed_and_sent(request_, lines, answer):
    """Nothing is sent before it was confirmed; declining and cancelling work at every prompt (E04)."""
    terminal = Terminal(*lines)

    assert await terminal.ask(request_) == answer


async def test_what_a_person_sees_of_a_form():
    """Who asks, each field with its hints, and all of it before it is sent (S296, E04)."""
    terminal = Terminal("Bug", "x", "2", "", "y")

    await terminal.ask(form(TITLE, COUNT, PRIORITY))

    assert terminal.shown == (
        "\nThe server 'github' asks:\n"
        "│ Create an issue?\n"
        "Enter takes the default or leaves it out; /back, /decline and /cancel work everywhere.\n"
        "\n│ What it is about\n"
        "Title (required): "
        "\nCount (a whole number): ! type a number\n"
        "Count (a whole number): "
        "\n│ 1. Low\n│ 2. Medium\n│ 3. High\n"
        "Priority (choose one, default Medium): "
        "\nThis will be sent:\n"
        "  Title: Bug\n"
        "  Count: 2\n"
        "  Priority: Medium\n"
        "Send this? [y]es, [e]dit, [d]ecline, [c]ancel: "
    )


async def test_a_secret_is_not_asked_for():
    """A field that asks for one is named in a warning and left out; required, it ends the dialog (rule 4)."""
    terminal = Terminal("", "y")

    await terminal.ask(form(SECRET, PRIORITY))

    assert "Warning: 'Password' seems to ask for a secret" in terminal.shown
    assert "Password (" not in terminal.shown


async def test_a_message_cannot_pass_for_a_prompt():
    """Every line of a server's text stands behind a bar, and controls the terminal would obey are gone (rule 2)."""
    fake = "Hello\nSend this? [y]es: \x1b[2J\rThe server 'bank' asks:\u2028x"
    terminal = Terminal("y")

    await terminal.ask(form(message=fake))

    assert "\x1b" not in terminal.shown
    assert "\r" not in terminal.shown
    assert "\n│ Send this? [y]es: " in terminal.shown
    assert all(line.startswith(("│ ", "The server 'github'")) for line in terminal.shown.split("\n")[1:4])


async def test_problems_of_the_answer_before_are_shown():
    """An answer that was refused is asked for again with the reason, by the field's title (S292)."""
    terminal = Terminal("Bug", "y")

    await terminal.ask(evolve(form(TITLE), problems={"title": "is required", "": "does not fit"}))

    assert "! Title is required\n" in terminal.shown


@pytest.mark.parametrize(
    ("lines", "answer", "opened"),
    [
        (["y"], Answer(Action.ACCEPT), 1),
        (["", "maybe", "yes"], Answer(Action.ACCEPT), 1),
        (["d"], DECLINED, 0),
        (["n"], DECLINED, 0),
        (["c"], CANCELLED, 0),
        (["/decline"], DECLINED, 0),
        (["/back", "y"], Answer(Action.ACCEPT), 1),
        ([], CANCELLED, 0),
    ],
)
async def test_a_page_is_opened_after_consent_only(lines, answer, opened):
    """The whole URL and its host are shown first; Enter alone is no consent (E03)."""
    terminal = Terminal(*lines)

    assert await terminal.ask(url()) == answer
    assert terminal.opened == ["https://pay.example/x?y=1"] * opened
    assert "open a page of pay.example:\n│ https://pay.example/x?y=1\n" in terminal.shown


async def test_a_long_url_is_shown_whole_with_its_warnings():
    """However long it is, and with what is odd about it (S284)."""
    text = "https://user@10.0.0.1/" + "a" * 5000
    terminal = Terminal("d")

    await terminal.ask(url(text))

    assert text in terminal.shown
    assert terminal.shown.count("Warning: ") == 2


async def test_a_page_that_cannot_be_opened_is_left_to_the_person():
    """Consent was given: the person is told to open it."""
    terminal = Terminal("y", opens=False)

    assert await terminal.ask(url()) == Answer(Action.ACCEPT)
    assert "open the page yourself" in terminal.shown


async def test_a_person_says_when_they_are_done():
    """In the stage of completion the page is not opened again."""
    terminal = Terminal("y")

    assert await terminal.ask(url(stage=Stage.COMPLETION)) == Answer(Action.ACCEPT)
    assert terminal.opened == []
    assert "sent you to a page" in terminal.shown
