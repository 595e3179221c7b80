"""Questions of both eras, read into one shape."""

from __future__ import annotations

import pytest

from mcp_actors.elicitation.requests import (
    CANCELLED,
    DECLINED,
    MAX_URLS,
    Action,
    Answer,
    InputRequest,
    Kind,
    capabilities,
    read_elicitation,
    read_url_elicitations,
)
from mcp_actors.errors import RpcError
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS
from mcp_actors.protocol.question_rules import Refused
from mcp_actors.tools.sanitise import clean_text

BOTH = frozenset({Kind.FORM, Kind.URL})
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
URL = {"mode": "url", "message": "pay", "url": "https://pay.example/x", "elicitationId": "e1"}


def read(params):
    return read_elicitation("github", 7, params, clean=clean_text)


@pytest.mark.parametrize("mode", [{}, {"mode": None}, {"mode": "form"}])
def test_a_missing_mode_means_form(mode):
    """An elicitation without mode is a form (F08)."""
    request = read({**mode, "message": "who?", "requestedSchema": FORM})

    assert isinstance(request, InputRequest)
    assert (request.kind, request.server, request.key) == (Kind.FORM, "github", 7)
    assert [item.name for item in request.form.fields] == ["name"]
    assert request.schema is FORM


def test_a_url_keeps_its_id():
    """A URL elicitation carries the id that the notice of completion will name."""
    request = read(URL)

    assert (request.kind, request.url.host, request.elicitation_id) == (Kind.URL, "pay.example", "e1")


def test_a_message_is_cleaned():
    """What a person reads holds no invisible or reordering characters (S296, rule 2)."""
    request = read({"message": "a\u202eb\U000e0041\x1b[2Jc", "requestedSchema": FORM})

    assert request.message == "ab[2Jc"


@pytest.mark.parametrize(
    "params",
    [
        {"message": "nested", "requestedSchema": {"properties": {"a": {"type": "object"}}}},
        {"message": "a list", "requestedSchema": {"type": "array", "properties": {}}},
        {**URL, "url": "javascript:alert(1)"},
    ],
)
def test_what_cannot_be_asked_is_refused(params):
    """A form that nobody could fill in, and a page that nobody should open, are invalid params (rule 1)."""
    refused = read(params)

    assert isinstance(refused, Refused)
    assert refused.code == INVALID_PARAMS


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Answer(Action.ACCEPT, {"a": 1}), {"action": "accept", "content": {"a": 1}}),
        (Answer(Action.ACCEPT), {"action": "accept"}),
        (Answer(Action.DECLINE, {"a": 1}), {"action": "decline"}),
        (DECLINED, {"action": "decline"}),
        (CANCELLED, {"action": "cancel"}),
    ],
)
def test_content_goes_with_acceptance_only(answer, result):
    """Accept, decline or cancel; only an accepted answer carries content (S289, S291)."""
    assert result == answer.result()


def test_an_answer_does_not_show_its_content():
    """What a person typed appears in no repr."""
    assert "canary" not in repr(Answer(Action.ACCEPT, {"a": "canary"}))


@pytest.mark.parametrize(
    ("kinds", "tools", "declared"),
    [
        ((), False, {}),
        ((Kind.FORM,), False, {"elicitation": {"form": {}}}),
        ((Kind.FORM, Kind.URL), False, {"elicitation": {"form": {}, "url": {}}}),
        ((Kind.SAMPLING,), False, {"sampling": {}}),
        ((Kind.SAMPLING, Kind.ROOTS), True, {"sampling": {"tools": {}}, "roots": {"listChanged": True}}),
    ],
)
def test_only_what_is_answered_is_declared(kinds, tools, declared):
    """Capabilities name exactly what a handler exists for (S110)."""
    assert declared == capabilities(frozenset(kinds), has_sampling_tools=tools)


def url_error(*entries, code=-32042, data=None):
    return RpcError(code=code, message="urls", data={"elicitations": list(entries)} if data is None else data)


def read_error(error, kinds=BOTH):
    return read_url_elicitations("pay", error, kinds=kinds, clean=clean_text)


def test_a_url_error_lists_its_questions_once():
    """The questions of -32042 come in order, each id once (F10)."""
    questions = read_error(url_error(URL, {**URL, "elicitationId": "e2"}, URL))

    assert [question.elicitation_id for question in questions] == ["e1", "e2"]


@pytest.mark.parametrize(
    "error",
    [
        url_error(),
        url_error(URL, code=-32602),
        url_error({**URL, "elicitationId": None}),
        url_error(URL, {**URL, "elicitationId": ""}),
        url_error({**URL, "mode": "form"}),
        url_error({key: value for key, value in URL.items() if key != "mode"}),
        url_error({**URL, "url": "file:///etc/passwd"}),
        url_error("no entry"),
        url_error(data={"elicitations": 3}),
        url_error(data=[]),
        url_error(*({**URL, "elicitationId": str(n)} for n in range(MAX_URLS + 1))),
    ],
)
def test_a_malformed_url_error_is_a_plain_error(error):
    """Entries without id, of another mode or with a bad URL make -32042 an error like any other (S207)."""
    assert read_error(error) is None


def test_a_url_error_means_nothing_undeclared():
    """Without the url mode there is nobody to send anywhere."""
    assert read_error(url_error(URL), frozenset({Kind.FORM})) is None
