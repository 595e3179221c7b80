"""Tests of multi-round-trip requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.mrtr import Complete, RoundTrip
from mcp_actors.protocol.questions import InputRequest, InputRequired
from mcp_actors.protocol.types import Era

from .kit import ready

ALL = {"roots": {}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"who": {"method": "elicitation/create", "params": FORM}, "where": {"method": "roots/list"}}
ANSWERS = {"who": {"action": "decline"}, "where": {"roots": []}}
CALL = {"name": "t", "arguments": {"a": 1}}


def trip(method: str = "tools/call", **more) -> RoundTrip:
    return RoundTrip(method, CALL, ALL, **more)


def wants(**members: object) -> bytes:
    return encode({"resultType": "input_required", **members})


@pytest.mark.parametrize("result", [{"content": []}, {"resultType": "complete", "content": []}])
def test_a_complete_result_is_handed_on(result):
    """Absent means complete (B06); the bytes are what was sent."""
    raw = encode(result)

    assert trip().feed(raw) == Complete(raw)


def test_questions_are_answered_in_a_second_round():
    """The same params again, with answers under the server's keys and the state (B07)."""
    step = trip().feed(wants(inputRequests=ASK, requestState="s"))

    assert step.questions == (InputRequest("who", "elicitation/create", FORM), InputRequest("where", "roots/list", {}))
    assert step.pause == 0
    sent = decode(encode(step.retry(ANSWERS)))
    assert sent == {**CALL, "inputResponses": ANSWERS, "requestState": "s"}


@pytest.mark.parametrize(
    "state",
    [b'"plain"', b'""', b'"\\u0041\\/ \\ud83d\\ude00"', '"žluťoučký"'.encode(), b'"' + b"x" * 100_000 + b'"'],
)
def test_the_state_is_kept_byte_for_byte(state):
    """Escapes, pairs and all: the text of ``requestState`` comes back as it was written (B07)."""
    raw = b'{ "requestState" : ' + state + b' , "resultType":"input_required"}'

    step = trip().feed(raw)
    again = InputRequired.from_json(decode(encode(step.to_json())))

    for one in (step, again):
        frame = ready(Era.MODERN).request("tools/call", one.retry({}), "a")
        assert b'"requestState":' + state + b"," in frame.data
        assert b"inputResponses" not in frame.data


@given(st.text())
def test_any_state_comes_back(state):
    """For every text."""
    step = trip().feed(wants(requestState=state))

    assert decode(encode(step.retry({})))["requestState"] == state


@pytest.mark.parametrize("members", [{"inputRequests": ASK}, {"inputRequests": ASK, "requestState": None}])
def test_without_state_none_is_sent(members):
    """MUST omit requestState if not given."""
    assert "requestState" not in trip().feed(wants(**members)).retry(ANSWERS)


def test_a_round_carries_only_the_newest():
    """Answers and state of earlier rounds are gone in the next one, and nothing leaks into the first params (B07)."""
    rounds = trip()
    first = rounds.feed(wants(inputRequests=ASK, requestState="one"))
    first.retry(ANSWERS)
    second = rounds.feed(wants(inputRequests={"where": ASK["where"]}))

    assert second.retry({"where": {"roots": []}}) == {**CALL, "inputResponses": {"where": {"roots": []}}}
    assert CALL == {"name": "t", "arguments": {"a": 1}}
    resumed = RoundTrip("tools/call", first.retry(ANSWERS), ALL).feed(wants(requestState="two"))
    assert decode(encode(resumed.retry({}))) == {**CALL, "requestState": "two"}


def test_rounds_are_bounded():
    """The eleventh question ends it (B08)."""
    rounds = trip()
    for _ in range(10):
        rounds.feed(wants(inputRequests=ASK))

    with pytest.raises(RemoteProtocolError, match="10 rounds"):
        rounds.feed(wants(inputRequests=ASK))


def test_rounds_without_questions_wait():
    """50 ms, doubled up to 250, and anew after a question (B08)."""
    rounds = trip()

    pauses = [rounds.feed(wants(requestState="s")).pause for _ in range(5)]
    rounds.feed(wants(inputRequests=ASK))

    assert pauses == [0.05, 0.1, 0.2, 0.25, 0.25]
    assert rounds.feed(wants(requestState="s")).pause == 0.05


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_some_methods_may_be_asked_back(method):
    """tools/call, prompts/get and resources/read may."""
    assert isinstance(trip(method).feed(wants(requestState="s")), InputRequired)


@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "vendor/x", "tasks/get"])
def test_others_may_not(method):
    """Anything else with questions is an invalid answer."""
    with pytest.raises(RemoteProtocolError, match="input_required"):
        trip(method).feed(wants(requestState="s"))


def test_a_task_may_come_instead():
    """For tools/call, where the extension was declared (G01); anywhere else it is invalid."""
    raw = encode({"resultType": "task", "taskId": "1"})

    assert trip().feed(raw) == Complete(raw, "task")
    for refusing in (trip("prompts/get"), RoundTrip("tools/call", CALL, {})):
        with pytest.raises(RemoteProtocolError, match="task"):
            refusing.feed(raw)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"inputRequests": {}},
        {"requestState": 5},
        {"requestState": {"a": 1}},
        {"inputRequests": []},
        {"inputRequests": {"a": None}},
        {"inputRequests": {"a": {"params": {}}}},
        {"inputRequests": {"a": {"method": "roots/list", "params": []}}},
        {"inputRequests": {"a": {"method": "tools/call", "params": {}}}},
        {"inputRequests": {"a": {"method": "sampling/createMessage", "params": {}}}},
        {"inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url", "message": "", "url": ""}}}},
        {"inputRequests": {str(n): {"method": "roots/list"} for n in range(101)}},
    ],
)
def test_bad_questions_make_the_answer_invalid(members):
    """Nothing asked, malformed, too many, or of a kind that was not declared (F08)."""
    with pytest.raises(RemoteProtocolError):
        trip().feed(wants(**members))
