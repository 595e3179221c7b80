"""Tests of `protocol.questions`; how a round comes to them is in `test_mrtr`."""

from __future__ import annotations

import pytest

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.questions import InputRequest, InputRequired, read_questions

ALL = {"roots": {}, "elicitation": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"who": {"method": "elicitation/create", "params": FORM}, "where": {"method": "roots/list"}}
ANSWERS = {"who": {"action": "decline"}, "where": {"roots": []}}


def asked(**more: bytes) -> InputRequired:
    return InputRequired("tools/call", {"name": "t"}, read_questions(encode(ASK), ALL), **more)


def test_questions_stand_in_the_order_of_the_server() -> None:
    """Each with its key, its method, and params that may be left out (B06)."""
    assert asked().questions == (
        InputRequest("who", "elicitation/create", FORM),
        InputRequest("where", "roots/list", {}),
    )


def test_too_many_questions_are_refused() -> None:
    """A hundred may be asked at once and no more."""
    assert len(read_questions(encode({str(n): ASK["where"] for n in range(100)}), ALL)) == 100
    with pytest.raises(RemoteProtocolError, match="101"):
        read_questions(encode({str(n): ASK["where"] for n in range(101)}), ALL)


@pytest.mark.parametrize(
    "answers",
    [{}, {"who": ANSWERS["who"]}, {**ANSWERS, "more": {}}],
)
def test_answers_must_fit(answers):
    """Missing and superfluous answers are bugs of ours and are not sent."""
    with pytest.raises(LocalProtocolError):
        asked().retry(answers)


@pytest.mark.parametrize("value", [{}, {"method": "m", "params": {}, "questions": [1], "state": None}])
def test_stored_questions_are_checked(value):
    """What was not stored by us is refused."""
    with pytest.raises(ValueError, match="stored"):
        InputRequired.from_json(value)


def test_a_state_is_not_shown():
    """It may be a secret of the server."""
    assert "hidden" not in repr(asked(state=b'"hidden"'))


def test_no_questions_are_none():
    """``inputRequests`` null counts as absent."""
    assert read_questions(b"null", ALL) == ()
