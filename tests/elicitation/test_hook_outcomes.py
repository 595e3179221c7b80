"""What the ends of hooks mean."""

from __future__ import annotations

import json

import pytest

from mcp_actors.elicitation.fields import Field, FieldType, Form
from mcp_actors.elicitation.hook_outcomes import (
    MAX_OUTPUT_BYTES,
    Exited,
    Failed,
    Responded,
    Verdict,
    combine,
    prefill,
    read_end,
    revise_answer,
    settle_question,
)
from mcp_actors.elicitation.hooks import HookEvent
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer, InputRequest, Kind
from mcp_actors.elicitation.urls import JudgedUrl

BEFORE, AFTER = HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT
ACCEPT, DECLINE, CANCEL = Action


def said(event=BEFORE, **members):
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **members}}).encode()


@pytest.mark.parametrize(
    ("end", "action", "content"),
    [
        (Exited(0), None, None),
        (Exited(0, b"just words"), None, None),
        (Exited(0, b'{"continue": true}'), None, None),
        (Exited(0, b'{"action": "accept", "content": {}}'), None, None),
        (Exited(0, said()), None, None),
        (Exited(0, said(action="accept", content={"a": 1})), ACCEPT, {"a": 1}),
        (Exited(0, b" \n" + said(action="decline") + b"\n"), DECLINE, None),
        (Exited(0, said(action="cancel")), CANCEL, None),
        (Exited(0, said(content={"a": 1})), ACCEPT, {"a": 1}),
        (Exited(1, said(action="decline")), DECLINE, None),
        (Exited(2), DECLINE, None),
        (Exited(2, said(action="accept", content={})), DECLINE, None),
        (Responded(200, said(action="accept")), ACCEPT, None),
        (Responded(204), None, None),
    ],
)
def test_how_a_hook_ends_is_what_it_decides(end, action, content):
    """Exit 0 and 2xx: the JSON; exit 2: refused; another exit: the JSON if it is some (S307, S308)."""
    verdict = read_end(BEFORE, end)

    assert (verdict.action, verdict.content, verdict.warning) == (action, content, None)


@pytest.mark.parametrize(
    "end",
    [
        Failed("a hook took longer than 600 s"),
        Exited(1),
        Exited(1, b"words"),
        Exited(-9),
        Exited(0, b"{broken"),
        Exited(0, said(AFTER, action="accept")),
        Exited(0, said(action="agree")),
        Exited(0, said(action="accept", content=[1])),
        Exited(0, b"{" + b" " * MAX_OUTPUT_BYTES + b"}"),
        Responded(500, said(action="accept")),
        Responded(302),
        Responded(200, b"words"),
        Responded(200, b"[1]"),
        Responded(200, b"{broken"),
    ],
)
def test_a_hook_that_fails_decides_nothing(end):
    """Failure, timeout, nonsense and another event's output are warnings (rule 1)."""
    verdict = read_end(BEFORE, end)

    assert verdict.action is None
    assert verdict.warning


def test_a_refusal_says_why():
    """What a hook that exits 2 writes to standard error is told."""
    assert read_end(BEFORE, Exited(2, b"", b"not\n today")).warning == "a hook refused: not today"


def test_long_texts_are_cut():
    """Texts of a hook are capped at 10,000 characters (S317)."""
    verdict = read_end(BEFORE, Exited(0, said(action="accept", content={"a": "x" * 10_001, "b": ["y" * 10_001]})))

    assert (len(verdict.content["a"]), len(verdict.content["b"][0])) == (10_000, 10_000)


A, A2, D, C, N = Verdict(ACCEPT, {"x": 1}), Verdict(ACCEPT, {"x": 2}), Verdict(DECLINE), Verdict(CANCEL), Verdict(None)


@pytest.mark.parametrize(
    ("verdicts", "wins"),
    [
        ((), N),
        ((N, N), N),
        ((N, A), A),
        ((A, A2), A),
        ((A2, A), A2),
        ((A, C), C),
        ((A, C, D), D),
        ((D, C, A), D),
        ((Verdict(warning="w"), A), A),
        ((Verdict(DECLINE, warning="why"),), D),
    ],
)
def test_the_most_careful_verdict_wins(verdicts, wins):
    """Decline before cancel before accept, the first configured among equals (S310)."""
    assert combine(verdicts) == wins


TITLE = Field("title", FieldType.STRING, "Title", is_required=True)
PRIORITY = Field("priority", FieldType.STRING, "Priority")
FORM = InputRequest("github", 1, Kind.FORM, "?", form=Form((TITLE, PRIORITY)))
URL = InputRequest("pay", 1, Kind.URL, "?", url=JudgedUrl("https://p/", "p"))
WHOLE = {"title": "t", "priority": "medium"}


@pytest.mark.parametrize(
    ("request_", "verdict", "answer"),
    [
        (FORM, N, None),
        (FORM, Verdict(ACCEPT, WHOLE), Answer(ACCEPT, WHOLE)),
        (FORM, D, DECLINED),
        (FORM, C, CANCELLED),
        (URL, Verdict(ACCEPT, {"a": 1}), Answer(ACCEPT)),
    ],
)
def test_a_hook_answers_in_the_persons_place(request_, verdict, answer):
    """What hooks decide is the answer, if it can be sent (S286)."""
    assert settle_question(request_, verdict) == answer


@pytest.mark.parametrize("content", [None, {}, {"priority": "medium"}, {**WHOLE, "x": 1}, {**WHOLE, "title": 3}])
def test_content_that_does_not_fit_is_no_decision(content):
    """Content is judged like a person's; what does not fit is a warning without values (S316)."""
    warning = settle_question(FORM, Verdict(ACCEPT, content))

    assert isinstance(warning, str)
    assert "medium" not in warning


def test_a_part_of_a_form_is_filled_in_for_the_person():
    """Values that fit become the defaults that the person sees; others do not (S318)."""
    shown = prefill(FORM, {"priority": "medium", "title": 3, "unknown": 1})

    assert [item.default for item in shown.form.fields] == [None, "medium"]
    assert prefill(URL, {"a": 1}) is URL


SAID = Answer(ACCEPT, WHOLE)
MASKED = {"title": "***", "priority": "medium"}


@pytest.mark.parametrize(
    ("request_", "answer", "verdict", "revised"),
    [
        (FORM, SAID, N, SAID),
        (FORM, SAID, Verdict(ACCEPT, MASKED), Answer(ACCEPT, MASKED)),
        (FORM, SAID, Verdict(ACCEPT), SAID),
        (FORM, SAID, D, DECLINED),
        (FORM, SAID, C, CANCELLED),
        (FORM, DECLINED, Verdict(ACCEPT, WHOLE), DECLINED),
        (FORM, CANCELLED, Verdict(ACCEPT, WHOLE), CANCELLED),
        (FORM, CANCELLED, D, DECLINED),
        (FORM, DECLINED, C, DECLINED),
        (URL, Answer(ACCEPT), D, DECLINED),
    ],
)
def test_a_hook_after_the_answer_tightens_it(request_, answer, verdict, revised):
    """It masks or refuses; what a person refused stays refused (S288, rule 3)."""
    assert revise_answer(request_, answer, verdict) == revised


def test_a_mask_that_does_not_fit_is_a_warning():
    """Content that cannot be sent is no decision (S316)."""
    assert isinstance(revise_answer(FORM, SAID, Verdict(ACCEPT, {"title": 3})), str)
