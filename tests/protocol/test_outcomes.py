"""Tests of what comes of requests: results, errors, second tries, lost sessions and their renewal."""

from __future__ import annotations

import pytest

from mcp_actors.errors import ConnectFailed, LocalProtocolError, RpcError, TransportBroken, UnsupportedRevision
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.session import SessionState
from mcp_actors.protocol.types import Era, Refusal

from .kit import NEW, OLD, hear, ready, say, sent

GONE = Refusal(404, body=encode({"error": {"code": -32001, "message": "Session not found"}}), had_session=True)
INITIALIZED = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "again"}}
VERSION = {"code": -32022, "message": "Unsupported", "data": {"supported": [NEW]}}


def http(era: Era, **settings):
    return ready(era, is_http=True, **settings)


def test_three_calls_lose_one_session():
    """Each refused call may be sent once more; the session is renewed once, over ids that go on (fault 32)."""
    session = http(Era.LEGACY)
    for waiter in "abc":
        session.request("tools/call", {"name": "t"}, waiter)

    session.receive_refusal(2, GONE, 0.0)
    [first] = session.events()
    session.renew(0.0)
    [initialize] = session.frames_to_send()
    session.receive_refusal(3, GONE, 0.0)
    [second] = session.events()
    say(session, {"id": initialize.request_id, "result": INITIALIZED})
    [initialized] = session.frames_to_send()
    session.receive_refusal(4, GONE, 0.0)
    [third] = session.events()

    assert [(event.waiter, event.needs_renewal) for event in (first, second, third)] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert isinstance(first.error, RpcError)
    assert (initialize.method, initialize.request_id, initialize.headers) == ("initialize", 5, ())
    assert initialized.method == "notifications/initialized"
    assert session.info.name == "again"
    assert session.request("tools/call", {"name": "t"}, "a", is_resend=True).request_id == 6


def test_a_second_loss_is_an_error():
    """A resend that meets a lost session again fails with it: one renewal for each call, never a loop (S124)."""
    session = http(Era.LEGACY)
    session.request("tools/call", {"name": "t"}, "a", is_resend=True)

    session.receive_refusal(2, GONE, 0.0)

    [event] = session.events()
    assert isinstance(event, happened.ErrorReceived)
    assert isinstance(event.error, RpcError)


def test_words_are_believed_after_an_answer():
    """400 with a session message is an error at first, and a lost session once this session has served."""
    session = http(Era.LEGACY)
    lost = Refusal(400, body=encode({"error": {"code": -32000, "message": "No valid session ID"}}), had_session=True)

    session.request("m", None, "a")
    session.receive_refusal(2, lost, 0.0)
    [before] = session.events()
    session.request("m", None, "b")
    say(session, {"id": 3, "result": {}})
    session.request("m", None, "c")
    session.receive_refusal(4, lost, 0.0)
    [after] = session.events()

    assert isinstance(before, happened.ErrorReceived)
    assert isinstance(after, happened.SessionExpired)


@pytest.mark.parametrize("expiry", ["dual", "spec"])
def test_a_plain_404_points_at_the_url(expiry):
    """A 404 without session id is an error that no restart helps; its text points at the configuration (S408)."""
    session = http(Era.LEGACY, session_expiry=expiry)
    session.request("m", None, "a")

    session.receive_refusal(2, Refusal(404, url="http://h/mcp"), 0.0)

    [event] = session.events()
    assert isinstance(event.error, TransportBroken)
    assert not event.error.can_retry
    assert "url in its configuration" in str(event.error)


def test_a_404_in_the_modern_era_is_no_lost_session():
    """Modern servers have no session to lose (C20, S407)."""
    session = http(Era.MODERN, session_expiry="spec")
    session.request("m", None, "a")

    session.receive_refusal(2, GONE, 0.0)

    assert isinstance(session.events()[0], happened.ErrorReceived)
    with pytest.raises(LocalProtocolError):
        session.renew(0.0)


def test_others_wait_through_a_renewal():
    """A request in flight keeps its waiter; its answer counts during and after the renewal."""
    session = http(Era.LEGACY)
    for waiter in "abc":
        session.request("m", None, waiter)
    session.receive_refusal(2, GONE, 0.0)
    session.events()
    session.renew(0.0)
    session.renew(0.0)

    assert [frame["method"] for frame in sent(session)] == ["initialize"]
    assert [event.waiter for event in say(session, {"id": 3, "result": {}})] == ["b"]
    say(session, {"id": 5, "result": INITIALIZED})
    assert [event.waiter for event in say(session, {"id": 4, "result": {}})] == ["c"]


def test_a_call_can_be_cancelled_during_a_renewal():
    """The server that ran it is gone, so nothing is said; its late answer is nobody's fault."""
    session = http(Era.LEGACY)
    session.request("m", None, "a")
    session.renew(0.0)

    assert session.cancel(2, "no longer") is None
    assert say(session, {"id": 2, "result": {}}) == []
    with pytest.raises(LocalProtocolError):
        session.request("m", None, "b")


def test_a_renewal_withdraws_what_the_server_asked():
    """Questions of a session that is gone are cancelled; their answers go nowhere."""
    session = ready(Era.LEGACY, is_http=True, handled_methods=frozenset({"roots/list"}))
    say(session, {"id": "q", "method": "roots/list"})

    session.renew(0.0)

    [event] = session.events()
    assert (type(event), event.request_id) == (happened.ServerRequestCancelled, "q")
    assert session.answer("q", {"roots": []}) is None


@pytest.mark.parametrize(
    "end",
    [
        lambda session: session.receive_refusal(3, Refusal(404), 0.0),
        lambda session: session.receive_lost(3, "cut"),
        lambda session: hear(session, {"id": 3, "error": {"code": -1, "message": "no"}}),
        lambda session: hear(session, {"id": 3, "result": {"protocolVersion": "1999-01-01"}}),
    ],
)
def test_a_failed_renewal_fails_who_waits(end):
    """When the renewal fails nobody waits for the dead: each gets an error of its own, then the session has failed."""
    session = http(Era.LEGACY)
    session.request("m", None, "a")
    session.renew(0.0)

    end(session)

    failed, over = session.events()
    assert failed.waiter == "a"
    assert isinstance(over, happened.SessionFailed)
    assert failed.error is not over.error
    assert type(failed.error) is type(over.error)
    assert session.state is SessionState.FAILED
    with pytest.raises(LocalProtocolError):
        session.renew(0.0)


def test_a_renewal_refused_with_404_did_not_connect():
    """The URL that gives 404 to initialize as well is wrong."""
    session = http(Era.LEGACY)
    session.renew(0.0)

    session.receive_refusal(2, Refusal(404), 0.0)

    [over] = session.events()
    assert isinstance(over.error, ConnectFailed)
    assert not over.error.can_retry


def test_a_session_that_was_never_ready_cannot_be_renewed():
    """Renewal is for READY sessions."""
    session = ready(Era.LEGACY)
    session.abandon()

    with pytest.raises(LocalProtocolError):
        session.renew(0.0)


@pytest.mark.parametrize("over_http", [False, True])
def test_a_version_error_is_worth_one_more_try(over_http):
    """-32022 that names a revision of ours, even the one just sent, asks for one resend; the second is final (A03)."""
    session = ready(Era.MODERN, is_http=over_http)

    def refuse(request_id: int) -> happened.Event[str]:
        if over_http:
            session.receive_refusal(request_id, Refusal(400, body=encode({"id": request_id, "error": VERSION})), 0.0)
        else:
            hear(session, {"id": request_id, "error": VERSION})
        [event] = session.events()
        return event

    session.request("m", None, "a")
    first = refuse(2)
    again = session.request("m", None, "a", is_resend=True)
    second = refuse(3)

    assert (type(first), first.waiter, first.revision) == (happened.Resend, "a", NEW)
    assert decode(again.data)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == NEW
    assert isinstance(second.error, UnsupportedRevision)
    assert session.info.revision == NEW


def test_a_version_error_without_a_common_revision_names_both_sides():
    """No resend where nothing is shared."""
    session = ready(Era.MODERN)
    session.request("m", None, "a")

    [event] = say(session, {"id": 2, "error": {**VERSION, "data": {"supported": ["2027-01-01"]}}})

    assert isinstance(event.error, UnsupportedRevision)
    assert event.error.supported == ("2027-01-01",)


def test_a_version_error_in_legacy_is_an_error():
    """-32022 has no meaning of its own in the legacy era."""
    session = ready(Era.LEGACY)
    session.request("m", None, "a")

    [event] = say(session, {"id": 2, "error": VERSION})

    assert isinstance(event.error, RpcError)
    assert session.info.revision == OLD
