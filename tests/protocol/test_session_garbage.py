"""Tests of the session against arrays, floods, cuts and arbitrary bytes: nothing breaks it, no waiter is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.protocol import events as happened
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.types import Era, Refusal

from .kit import ERAS, faults, probing, ready, say

if TYPE_CHECKING:
    from mcp_actors.protocol.session import Session

# ── arrays, garbage, floods ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_array_is_taken_element_by_element():
    """Every good element of an array counts, bad ones are diagnostics (fault 77, C14)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")
    session.request("m", None, "b")
    answers = [{"jsonrpc": "2.0", "id": number, "result": {}} for number in (2, 3)]
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    events = say(session, [answers[0], changed, 1, [answers[1]], None, answers[1]])

    assert [getattr(event, "waiter", None) or getattr(event, "kind", None) for event in events] == [
        "a",
        "tools",
        "b",
        "malformed",
        "malformed",
        "malformed",
    ]


@pytest.mark.parametrize("bad", [1, None, "x", [{"jsonrpc": "2.0", "id": 2}]])
def test_a_bad_element_before_the_answer_costs_no_call(bad):
    """The answer in an array completes its call, whatever stands before it (fault 77)."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    events = say(session, [bad, {"jsonrpc": "2.0", "id": 2, "result": {"n": 1}}])

    assert [(type(event), getattr(event, "waiter", None)) for event in events] == [
        (happened.ResponseReceived, "a"),
        (happened.PeerFault, None),
    ]


@pytest.mark.parametrize(("array", "fault"), [([], "batch"), ([1], "malformed"), ([1] * 11, "batch")])
def test_odd_arrays_are_counted(array, fault):
    """Empty and oversized arrays are one fault each (fault 77)."""
    assert faults(say(ready(Era.LEGACY, max_batch=10), array)) == [fault]


def test_an_array_may_end_the_session_in_the_middle():
    """What follows in an array after the handshake failed is not taken any more."""
    session = probing(is_http=True, probe_timeout=None)
    failure = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32021, "message": "x"}}

    events = say(session, [failure, failure, {"jsonrpc": "2.0", "id": 5, "method": "ping"}])

    assert [type(event) for event in events] == [happened.SessionFailed]
    assert session.frames_to_send() == []


def test_a_flood_of_pings_is_bounded():
    """Frames that wait to be drained are bounded; what is over the bound is dropped and counted (invariant 5)."""
    session = ready(Era.LEGACY, max_outbox=5)

    events = [event for number in range(8) for event in say(session, {"id": number, "method": "ping"})]

    assert faults(events) == ["flood"] * 3
    assert len(session.frames_to_send()) == 5


GARBAGE = [
    b"",
    b" ",
    b"{",
    b"null",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b"npm WARN deprecated",
    b"[" * 100_000,
]


@pytest.mark.parametrize("raw", GARBAGE, ids=lambda raw: repr(raw[:10]))
@pytest.mark.parametrize("era", ERAS)
def test_garbage_is_counted(era, raw):
    """What is no message is a diagnostic, and the calls in flight are untouched (faults 9, 72)."""
    session = ready(era)
    session.request("m", None, "a")

    session.receive_message(raw, 0.0)

    assert faults(session.events()) == ["malformed"]
    assert session.in_flight == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.just("2026-07-28"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
METHODS = st.sampled_from(
    ["ping", "roots/list", "notifications/progress", "notifications/cancelled", "notifications/message", "x"]
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers(0, 4) | JSON,
        "method": METHODS | JSON,
        "params": JSON
        | st.fixed_dictionaries({}, optional={"progressToken": JSON, "progress": JSON, "requestId": JSON}),
        "result": JSON | st.fixed_dictionaries({}, optional={"supportedVersions": JSON, "protocolVersion": JSON}),
        "error": JSON | st.fixed_dictionaries({}, optional={"code": st.just(-32022) | JSON, "data": JSON}),
    },
)


def everywhere() -> list[Session[str]]:
    """A session in each state that listens, with a request in flight where it can have one."""
    handled = frozenset({"roots/list"})
    legacy, modern = ready(Era.LEGACY, handled_methods=handled), ready(Era.MODERN)
    for session in (legacy, modern):
        session.request("m", None, "a", wants_progress=True)
    return [legacy, modern, probing(), probing(is_http=True), probing(pinned_era=Era.LEGACY)]


def check_sane(session: Session[str], raw: bytes) -> None:
    """Every waiter is told once or still waits; what goes out is a message."""
    waiting = session.in_flight
    session.receive_message(raw, 0.0)
    told = [event for event in session.events() if hasattr(event, "waiter") and not hasattr(event, "progress")]
    assert len(told) + session.in_flight == waiting
    for frame in session.frames_to_send():
        assert isinstance(decode(frame.data), dict)


@given(MESSAGES)
def test_no_message_breaks_a_session(message):
    """Whatever a peer says, the session neither raises nor loses a waiter (faults 72-78, law 5)."""
    for session in everywhere():
        check_sane(session, encode(message))


@given(st.binary(max_size=200) | st.lists(MESSAGES, max_size=3).map(encode))
def test_no_bytes_break_a_session(raw):
    """Whatever bytes come, the session neither raises nor loses a waiter."""
    for session in everywhere():
        check_sane(session, raw)


def test_a_message_cut_anywhere_breaks_nothing():
    """Each prefix and each suffix of a good answer is a diagnostic, and ends no call but the one whose id it shows."""
    raw = encode({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "é\U0001f600"}]}})

    for cut in range(1, len(raw)):
        for part in (raw[:cut], raw[cut:]):
            session = ready(Era.MODERN)
            session.request("m", None, "a")
            session.receive_message(part, 0.0)
            assert faults(session.events()) == ["malformed"]
            assert session.in_flight == (0 if b'"id":2,' in part else 1)


@given(st.integers(100, 599), st.binary(max_size=60), st.booleans())
def test_no_refusal_breaks_a_session(status, body, has_challenge):
    """Whatever HTTP answers, the session neither raises nor loses a waiter."""
    refusal = Refusal(status, body=body, challenge="Bearer" if has_challenge else None)
    for session in everywhere():
        for frame_id in (None, 1, 2, "x"):
            session.receive_refusal(frame_id, refusal, 0.0)
        assert session.in_flight == 0
