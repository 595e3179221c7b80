"""Tests of the session in READY: answers, cancel, progress, and what a server asks and tells."""

from __future__ import annotations

import pytest

from mcp_actors.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
)
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.session import SessionState
from mcp_actors.protocol.types import Era, Refusal

from .kit import ERAS, faults, probing, ready, say, sent

# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("request_id", ["2", 2.0, "2.0"])
def test_an_id_of_another_type_completes_the_call_with_a_notice(request_id):
    """Answers to request 2 with the ids "2", 2.0 and "2.0" complete it (fault 72)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    fault, answer = say(session, {"id": request_id, "result": {}})

    assert fault.kind == "id-type"
    assert answer.waiter == "a"


@pytest.mark.parametrize("request_id", [0, 999, "x", True, 2.5, [], {}, -1])
def test_answers_that_nobody_waits_for_are_counted(request_id):
    """Unknown ids are a diagnostic, and the session goes on (faults 72, 73, S415)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    assert faults(say(session, {"id": request_id, "result": {}})) == ["unknown-id"]
    assert session.fault_counts == {"unknown-id": 1}
    assert session.in_flight == 1


def test_a_second_answer_is_counted():
    """The second answer to a finished request is a fault, and reaches nobody (fault 73)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    first, second = say(session, {"id": 2, "result": {}}), say(session, {"id": 2, "result": {}})

    assert [event.waiter for event in first] == ["a"]
    assert faults(second) == ["unknown-id"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": {"code": -32602, "message": "bad", "data": [1]}}, RpcError),
        ({"error": {"code": -1, "message": "x"}, "result": None}, RpcError),
        ({"error": {"code": -1}, "result": {}}, RemoteProtocolError),
        ({"error": "text"}, RemoteProtocolError),
        ({"result": "text"}, RemoteProtocolError),
        ({"result": [1]}, RemoteProtocolError),
        ({}, RemoteProtocolError),
        ({"result": {"resultType": "novel"}}, RemoteProtocolError),
        ({"result": {"resultType": "input_required"}}, None),
        ({"result": {}, "error": None}, None),
    ],
)
def test_every_answer_settles_its_waiter(answer, expected):
    """An answer that is malformed fails its own waiter at once, rather than leaving it to wait (S416, B06)."""
    session = ready(Era.MODERN)
    session.request("m", None, "a")

    [event] = say(session, {"id": 2, **answer})

    assert event.waiter == "a"
    assert session.in_flight == 0
    if expected is None:
        assert isinstance(event, happened.ResponseReceived)
    else:
        assert type(event.error) is expected


@pytest.mark.parametrize("jsonrpc", [None, "1.0", 2.0])
def test_a_wrong_version_is_counted_and_the_answer_taken(jsonrpc):
    """A message without the right `jsonrpc` is a fault, but nobody is left waiting for it (S416)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    fault, answer = say(session, {"jsonrpc": jsonrpc, "id": 2, "result": {}})

    assert (fault.kind, answer.waiter) == ("version", "a")


@pytest.mark.parametrize("message", [{"error": {"code": 1, "message": "x"}}, {"id": None, "error": {"code": 1}}])
def test_an_error_without_id_is_counted(message):
    """An error that cannot be bound to a request is a diagnostic (spec_client 1)."""
    assert faults(say(ready(Era.LEGACY), message)) == ["unbound-error"]


@pytest.mark.parametrize("era", ERAS)
def test_a_refused_request_fails_alone(era):
    """An HTTP refusal fails the request that got it and no other; late or doubled ones do nothing (C10)."""
    session = ready(era, is_http=True)
    session.request("m", None, "a")
    session.request("m", None, "b")

    session.receive_refusal(2, Refusal(404, body=encode({"error": {"code": -32001, "message": "gone"}})), 0.0)
    session.receive_refusal(2, Refusal(500), 0.0)
    session.receive_lost(3, "end of stream")
    session.receive_lost(3, "again")
    session.receive_lost(99, "unknown")

    first, second = session.events()
    assert (first.waiter, type(first.error), first.error.code, first.error.http_status) == ("a", RpcError, -32001, 404)
    assert (second.waiter, type(second.error), second.error.reason) == ("b", TransportBroken, "end of stream")


def test_a_refused_notification_does_not_hurt():
    """A refusal of a notification or of an answer of ours is counted and ends nothing (fault 35)."""
    session = ready(Era.LEGACY, is_http=True)

    session.receive_refusal(None, Refusal(500), 0.0)

    assert faults(session.events()) == ["refused"]
    assert session.state is SessionState.READY


@pytest.mark.parametrize(
    ("era", "refusal", "is_doubted"),
    [
        *((Era.LEGACY, Refusal(status, had_session=True), True) for status in (400, 404, 410)),
        *((Era.LEGACY, Refusal(status, had_session=True), False) for status in (401, 403, 405, 429, 500)),
        (Era.LEGACY, Refusal(404), False),
        (Era.MODERN, Refusal(404, had_session=True), False),
    ],
)
def test_a_refused_stream_is_a_reason_to_ask(era, refusal, is_doubted):
    """What waits for no answer and is refused as if the session were gone raises a doubt, and no renewal (S205)."""
    session = ready(era, is_http=True)

    session.receive_refusal(None, refusal, 0.0)

    events = session.events()
    assert [type(event) for event in events] == [happened.PeerFault, *[happened.SessionDoubted] * is_doubted]


# ── cancel, progress, close ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("era", "is_http", "tells"),
    [(Era.LEGACY, False, True), (Era.LEGACY, True, True), (Era.MODERN, False, True), (Era.MODERN, True, False)],
)
def test_cancel_takes_the_form_of_the_era(era, is_http, tells):
    """Cancel is a notification, but on modern HTTP, where closing the stream is the cancel (B17, B18)."""
    session = ready(era, is_http=is_http)
    session.request("tools/call", {"name": "x"}, "a")

    frame = session.cancel(2, "timed out")

    assert (frame is not None) is tells
    if frame is not None:
        message = decode(frame.data)
        assert message["method"] == "notifications/cancelled"
        assert message["params"] == {"requestId": 2, "reason": "timed out"}
        assert "id" not in message
    assert session.cancel(2, "again") is None
    assert session.in_flight == 0


@pytest.mark.parametrize("request_id", [1, 99, "2", 2.0])
def test_cancel_of_what_is_not_in_flight_does_nothing(request_id):
    """Neither unknown ids nor the handshake are ever cancelled (B18)."""
    session = probing(pinned_era=Era.LEGACY)

    assert session.cancel(request_id, "x") is None
    assert session.is_waiting(1)


def test_a_late_answer_after_cancel_is_silent_once():
    """The late answer to a cancelled request, and its progress, are no fault; a second one is (fault 73, B18)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a", wants_progress=True)
    session.cancel(2, "x")
    late = {"method": "notifications/progress", "params": {"progressToken": 2, "progress": 1}}

    assert say(session, late) == []
    assert say(session, {"id": 2, "result": {}}) == []
    assert faults(say(session, {"id": 2, "result": {}})) == ["unknown-id"]


def test_progress_reaches_its_waiter_while_it_rises():
    """Progress of an active token that rises is told; anything else is counted (B16, S203, fault 74)."""
    session = ready(Era.MODERN)
    frame = session.request("m", None, "a", wants_progress=True)
    token = decode(frame.data)["params"]["_meta"]["progressToken"]

    def report(token: object, progress: object, **more: object) -> list[happened.Event[str]]:
        params = {"progressToken": token, "progress": progress, **more}
        return say(session, {"method": "notifications/progress", "params": params})

    [first] = report(token, 1, total=4, message="m")
    assert (first.waiter, first.progress, first.total, first.message) == ("a", 1.0, 4.0, "m")
    assert [event.progress for event in report(token, 2.5)] == [2.5]
    assert faults(report(token, 2.5)) == ["stale-progress"]
    assert faults(report(77, 1)) == ["stale-progress"]
    assert faults(report([], 1)) == ["stale-progress"]
    assert faults(report(token, "3")) == ["bad-notification"]
    say(session, {"id": token, "result": {}})
    assert faults(report(token, 9)) == ["stale-progress"]


def test_abandon_hands_back_everybody():
    """Closing gives every waiter to the caller, oldest first, and nothing is heard afterwards (invariant 1)."""
    session = ready(Era.LEGACY, handled_methods=frozenset({"roots/list"}))
    session.request("m", None, "a")
    session.request("m", None, "b")
    say(session, {"id": 7, "method": "roots/list"})

    assert session.abandon() == ["a", "b"]
    assert session.abandon() == []
    assert say(session, {"id": 2, "result": {}}) == []
    assert session.answer(7, {}) is None
    assert session.cancel(2, "x") is None
    with pytest.raises(LocalProtocolError):
        session.request("m", None, "c")
    assert repr(session).startswith("<Session CLOSED")


@pytest.mark.parametrize("params", [{"x": object()}, {"x": "\ud800"}])
def test_an_illegal_command_changes_nothing(params):
    """Params that are no JSON are our bug: no id is used up, nobody waits (law 4)."""
    session = ready(Era.LEGACY)

    with pytest.raises(LocalProtocolError):
        session.request("m", params, "a")

    assert session.in_flight == 0
    assert session.request("m", None, "a").request_id == 2


# ── requests and notifications of the server ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("request_id", [0, "a", 2])
def test_a_ping_is_answered_at_once(request_id):
    """Ping gets {} with its id; the same id as one of ours is no conflict (fault 75)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    assert say(session, {"id": request_id, "method": "ping"}) == []
    assert sent(session) == [{"jsonrpc": "2.0", "id": request_id, "result": {}}]
    assert session.in_flight == 1


@pytest.mark.parametrize("settings", [{}, {"pinned_era": Era.LEGACY}])
def test_a_ping_is_answered_during_the_handshake(settings):
    """A server may ping before it answers the handshake, and the answer carries no header."""
    session = probing(is_http=True, **settings)

    say(session, {"id": 1, "method": "ping"})

    [frame] = session.frames_to_send()
    assert decode(frame.data) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert frame.headers == ()
    assert session.is_waiting(1)


def test_an_unhandled_request_is_refused_at_once():
    """What no handler exists for gets -32601 (fault 75)."""
    session = ready(Era.LEGACY)

    assert say(session, {"id": 5, "method": "sampling/createMessage", "params": {}}) == []
    assert [message["error"]["code"] for message in sent(session)] == [-32601]


def test_a_handled_request_gets_exactly_one_answer():
    """A handler's request becomes an event; the first answer goes out, a second one does not (fault 75)."""
    session = ready(Era.LEGACY, handled_methods=frozenset({"elicitation/create"}))

    [event] = say(session, {"id": "q", "method": "elicitation/create", "params": {"message": "?"}})
    frame = session.answer("q", {"action": "accept"})

    assert (event.request_id, event.method, event.params) == ("q", "elicitation/create", {"message": "?"})
    assert decode(frame.data) == {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}
    assert session.answer("q", {}) is None
    assert session.answer_error("q", -1, "x") is None


def test_an_answer_that_is_no_json_leaves_the_request_open():
    """A handler that returns nonsense can still be answered with an error (law 4, fault 76)."""
    session = ready(Era.LEGACY, handled_methods=frozenset({"roots/list"}))
    say(session, {"id": 1, "method": "roots/list"})

    with pytest.raises(LocalProtocolError):
        session.answer(1, {"roots": object()})

    assert decode(session.answer_error(1, -32603, "failed").data)["error"] == {"code": -32603, "message": "failed"}


def test_a_cancelled_server_request_gets_no_answer():
    """After the server cancels its request no answer is sent (fault 76)."""
    session = ready(Era.LEGACY, handled_methods=frozenset({"roots/list"}))
    say(session, {"id": 1, "method": "roots/list"})

    [event] = say(session, {"method": "notifications/cancelled", "params": {"requestId": 1}})
    unknown = say(session, {"method": "notifications/cancelled", "params": {"requestId": 1}})

    assert isinstance(event, happened.ServerRequestCancelled)
    assert unknown == []
    assert session.answer(1, {}) is None


@pytest.mark.parametrize("method", ["ping", "roots/list", "unknown"])
def test_a_modern_server_makes_no_requests(method):
    """In the modern era a server's request is counted and never answered (spec_client 1)."""
    session = ready(Era.MODERN, handled_methods=frozenset({"roots/list"}))

    assert faults(say(session, {"id": 1, "method": method})) == ["server-request"]
    assert session.frames_to_send() == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"method": "notifications/tools/list_changed"}, happened.ListChanged),
        ({"method": "notifications/tools/list_changed", "params": None}, happened.ListChanged),
        ({"method": "notifications/resources/updated", "params": {"uri": "a"}}, happened.ResourceUpdated),
        ({"method": "notifications/message", "params": {"level": "info", "data": 1}}, happened.LogReceived),
        ({"method": "notifications/message", "params": {"data": 1}}, "bad-notification"),
        ({"method": "notifications/message", "params": []}, "bad-notification"),
        ({"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}}, "bad-notification"),
        ({"method": "notifications/progress"}, "bad-notification"),
        ({"method": "notifications/cancelled", "params": {"requestId": []}}, None),
        ({"method": "window/logMessage", "params": {}}, "unknown-notification"),
        ({"method": ""}, "unknown-notification"),
        ({"method": "notifications/subscriptions/acknowledged", "params": {}}, None),
        ({"method": 5}, "malformed"),
        ({"method": None, "id": 1}, "malformed"),
        ({"id": None, "result": {}}, "malformed"),
        ({}, "malformed"),
    ],
)
def test_a_notification_costs_at_most_itself(era, message, expected):
    """Known notifications become events; unknown and malformed ones are counted and the session goes on (fault 74)."""
    session = ready(era)

    events = say(session, message)

    if expected is None:
        assert events == []
    elif isinstance(expected, str):
        assert faults(events) == [expected]
    else:
        assert [type(event) for event in events] == [expected]
    assert session.state is SessionState.READY
