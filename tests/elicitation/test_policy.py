"""Who answers when no hook did."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.elicitation.fields import Field, FieldType, Form
from mcp_actors.elicitation.policy import (
    AskPerson,
    Mode,
    Policy,
    PreparedAnswer,
    Settled,
    decide,
    judge_answer,
    read_answers,
)
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer, InputRequest, Kind, Stage
from mcp_actors.elicitation.urls import JudgedUrl
from mcp_actors.errors import ConfigError

TITLE = Field("title", FieldType.STRING, "Title", is_required=True)
PRIORITY = Field("priority", FieldType.STRING, "Priority", default="medium")
SECRET = Field("password", FieldType.STRING, "Password", asks_secret=True)
URL = InputRequest("pay", 1, Kind.URL, "Pay now", url=JudgedUrl("https://pay.example/", "pay.example"))


def form(*fields, server="github", message="Create an issue?"):
    return InputRequest(server, 1, Kind.FORM, message, form=Form(fields))


def accept(**content):
    return Answer(Action.ACCEPT, content)


def required(item):
    return Field(item.name, item.type, item.title, is_required=True, asks_secret=item.asks_secret)


ANSWERS = Policy(
    mode=Mode.ANSWERS,
    answers=(
        PreparedAnswer(Action.DECLINE, server="evil"),
        PreparedAnswer(Action.ACCEPT, {"title": "prepared", "other": 1}, message="CREATE"),
        PreparedAnswer(Action.ACCEPT, {}, server="pay"),
    ),
)


@pytest.mark.parametrize(
    ("policy", "request_", "answer"),
    [
        (Policy(mode=Mode.DECLINE), form(PRIORITY), DECLINED),
        (Policy(mode=Mode.ACCEPT_DEFAULTS), form(PRIORITY), accept(priority="medium")),
        (Policy(mode=Mode.ACCEPT_DEFAULTS), form(), accept()),
        (Policy(mode=Mode.ACCEPT_DEFAULTS), form(PRIORITY, TITLE), DECLINED),
        (Policy(mode=Mode.ACCEPT_DEFAULTS), URL, DECLINED),
        (ANSWERS, form(TITLE, PRIORITY), accept(title="prepared", priority="medium")),
        (ANSWERS, form(TITLE, server="evil"), DECLINED),
        (ANSWERS, form(TITLE, message="something else"), DECLINED),
        (ANSWERS, form(Field("title", FieldType.INTEGER, "Title")), DECLINED),
        (ANSWERS, URL, Answer(Action.ACCEPT)),
        (Policy(mode=Mode.ANSWERS, answers=read_answers({"title": "x"})), URL, DECLINED),
        (Policy(mode=Mode.ANSWERS, answers=read_answers({"title": "x"})), form(TITLE), accept(title="x")),
        (Policy(mode=Mode.ANSWERS), form(), DECLINED),
        (Policy(), form(TITLE, required(SECRET)), DECLINED),
        (Policy(mode=Mode.ACCEPT_DEFAULTS), form(PRIORITY, SECRET), accept(priority="medium")),
    ],
)
def test_a_policy_answers(policy, request_, answer):
    """Defaults, prepared answers, decline; and never a URL or a secret by accident (rules 2 and 3)."""
    decision = decide(policy, request_, has_prompter=True)

    assert isinstance(decision, Settled)
    assert answer == decision.answer
    assert decision.reason


def test_a_person_is_asked():
    """By default a person answers, and is shown the question as it is."""
    request = form(TITLE)

    decision = decide(Policy(), request, has_prompter=True)

    assert isinstance(decision, AskPerson)
    assert decision.request is request
    assert decision.notes == ()


def test_without_anybody_the_answer_is_decline():
    """No prompter means decline (S293)."""
    assert decide(Policy(), form(), has_prompter=False) == Settled(DECLINED, "there is nobody to ask")


@pytest.mark.parametrize("mode", Mode)
def test_only_a_prepared_consent_says_that_a_page_is_done(mode):
    """Else it is a person's or the server's to say, also where nobody was to be asked for consent (F10)."""
    request = evolve(URL, stage=Stage.COMPLETION)

    decision = decide(evolve(ANSWERS, mode=mode), request, has_prompter=False)

    assert isinstance(decision, Settled if mode is Mode.ANSWERS else AskPerson)


def test_a_secret_that_is_optional_is_left_out():
    """A person is asked for the rest of the form, and told why."""
    decision = decide(Policy(), form(TITLE, SECRET), has_prompter=True)

    assert decision.request.form == Form((TITLE,))
    assert "Password" in decision.notes[0]


def test_secrets_may_be_allowed():
    """A host that knows its servers can let forms ask for them."""
    request = form(required(SECRET))

    assert decide(Policy(refuses_secrets=False), request, has_prompter=True).request is request


@pytest.mark.parametrize(
    ("request_", "answer", "judged"),
    [
        (form(TITLE, PRIORITY), accept(title="t"), accept(title="t", priority="medium")),
        (form(TITLE), accept(), {"title": "is required"}),
        (form(TITLE), Answer(Action.ACCEPT), {"title": "is required"}),
        (form(TITLE), Answer(Action.DECLINE, {"title": "t"}), DECLINED),
        (form(TITLE), CANCELLED, CANCELLED),
        (URL, accept(sneaked=1), Answer(Action.ACCEPT)),
    ],
)
def test_answers_are_judged_before_they_are_sent(request_, answer, judged):
    """Content goes along with an accepted form only, whole and fitting (S289, S292)."""
    assert judge_answer(request_, answer) == judged


def test_rules_are_read():
    """A file holds rules; what a rule leaves out fits everything."""
    rules = read_answers([{"server": "a", "message": "m", "action": "cancel"}, {"content": {"x": 1}}])

    assert rules == (
        PreparedAnswer(Action.CANCEL, {}, "a", "m"),
        PreparedAnswer(Action.ACCEPT, {"x": 1}),
    )


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ("text", None),
        (None, None),
        ([1], "[0]"),
        ([{}, {"sever": "a"}], "[1].sever"),
        ([{"content": []}], "[0].content"),
        ([{"action": "agree"}], "[0].action"),
        ([{"server": 1}], "[0]"),
    ],
)
def test_what_are_no_rules_is_named(document, key):
    """A file that cannot be used says where and why."""
    with pytest.raises(ConfigError) as caught:
        read_answers(document, file="answers.json")

    assert (caught.value.file, caught.value.key) == ("answers.json", key)


def test_prepared_answers_show_no_values():
    """What is prepared may be private: no repr shows it."""
    assert "canary" not in repr(Policy(answers=read_answers({"a": "canary"})))
