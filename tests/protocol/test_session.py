"""Tests of the session: both eras end to end against a scripted peer, and the handshake."""

from __future__ import annotations

import pytest

from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    LocalProtocolError,
    RemoteProtocolError,
    RpcError,
    UnsupportedRevision,
)
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.jsonrpc import decode
from mcp_actors.protocol.lists import PageCollector
from mcp_actors.protocol.session import Session, SessionSettings, SessionState
from mcp_actors.protocol.types import Era, Refusal

from .kit import ERAS, NEW, OLD, TOOLS, Link, Peer, hear, probing, ready, say, sent

# ── both eras, end to end ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_conversation_from_probe_to_call(era, step):
    """S094: against a server of either era: find it, list all pages, call a tool; both ends agree on what was said."""
    session: Session[str] = Session(SessionSettings(probe_timeout=5.0))
    peer = Peer(era)
    link = Link(session, peer, step)

    session.open(0.0)
    events = link.send()
    assert [type(event) for event in events] == (
        [happened.FellBack, happened.SessionReady] if era == "legacy" else [happened.SessionReady]
    )

    pages = PageCollector("tools/list", "tools")
    params = pages.first()
    while params is not None:
        [answer] = link.send(session.request("tools/list", params, "list"))
        params = pages.feed(answer.result)
    assert [decode(item) for item in pages.items] == TOOLS

    [answer] = link.send(session.request("tools/call", {"name": "tool1"}, "call"))
    assert answer.waiter == "call"
    assert decode(answer.result) == {"content": [{"type": "text", "text": "tool1"}]}

    methods = [message["method"] for message in peer.seen]
    handshake = (
        ["server/discover", "initialize", "notifications/initialized"] if era == "legacy" else ["server/discover"]
    )
    assert methods == [*handshake, *["tools/list"] * 3, "tools/call"]
    ids = [message["id"] for message in peer.seen if "id" in message]
    assert ids == sorted(set(ids))
    assert repr(session) == f"<Session READY {OLD if era == 'legacy' else NEW} | 0 in flight>"


@pytest.mark.parametrize("era", ERAS)
def test_answers_may_come_in_any_order(era):
    """Each waiter gets its own answer, whatever the order."""
    session = ready(era)
    for waiter in "abc":
        session.request("m", None, waiter)
    assert repr(session).endswith("| 3 in flight>")

    events = [*say(session, {"id": 4, "result": {"n": 4}}), *say(session, {"id": 2, "result": {"n": 2}})]

    assert [(event.waiter, decode(event.result)) for event in events] == [("c", {"n": 4}), ("a", {"n": 2})]
    assert session.in_flight == 1
    assert session.is_waiting(3)
    assert not session.is_waiting(4)


@pytest.mark.parametrize("era", ERAS)
def test_a_result_is_the_bytes_that_were_sent(era):
    """Results are handed on undecoded: spaces, number forms and unknown keys stay (B12)."""
    session = ready(era)
    session.request("m", None, "a")
    result = b'{ "content":[1.0, 1e2],  "future":{"x":null} }'

    session.receive_message(b'{"id":2,"result":' + result + b',"jsonrpc":"2.0"}', 0.0)

    [event] = session.events()
    assert event.result == result


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_open_probes_first():
    """In auto mode the first frame is server/discover at our newest revision, with headers on HTTP only (A01)."""
    stdio: Session[str] = Session(SessionSettings())
    http: Session[str] = Session(SessionSettings(is_http=True))
    stdio.open(0.0)
    http.open(0.0)

    [frame], [http_frame] = stdio.frames_to_send(), http.frames_to_send()

    assert (frame.request_id, frame.method, frame.headers) == (1, "server/discover", ())
    assert decode(frame.data)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == NEW
    assert http_frame.headers == (("MCP-Protocol-Version", NEW), ("Mcp-Method", "server/discover"))
    assert stdio.is_waiting(1)


def test_a_refused_probe_falls_back_without_leftovers():
    """After the fall-back initialize has the next id and no header; legacy headers follow at READY (A07, C08)."""
    session = probing(is_http=True, probe_timeout=None)

    session.receive_refusal(1, Refusal(404), 0.0)
    [frame] = session.frames_to_send()
    say(session, {"id": 2, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
    [initialized] = session.frames_to_send()

    assert (frame.request_id, frame.method, frame.headers) == (2, "initialize", ())
    assert initialized.method == "notifications/initialized"
    assert initialized.headers == (("MCP-Protocol-Version", "2025-06-18"),)
    assert session.request("tools/list", None, "a").headers == initialized.headers


def test_initialize_is_first_and_initialized_follows():
    """In legacy nothing is said between initialize and its result, then notifications/initialized (A08, S111, S109)."""
    session: Session[str] = Session(SessionSettings(pinned_era=Era.LEGACY, capabilities={"roots": {}}))
    session.open(0.0)
    [first] = sent(session)
    with pytest.raises(LocalProtocolError):
        session.request("tools/list", None, "a")
    assert session.frames_to_send() == []

    events = say(session, {"id": 1, "result": {"protocolVersion": OLD, "serverInfo": {"name": "s"}}})

    assert first["method"] == "initialize"
    assert first["params"]["protocolVersion"] == OLD
    assert first["params"]["capabilities"] == {"roots": {}}
    assert first["params"]["clientInfo"]["name"] == "mcp-actors"
    assert sent(session) == [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    assert events[0].info is session.info
    assert session.info.name == "s"


def test_silence_falls_back_on_the_same_wire():
    """When the deadline passes, initialize follows on the same pipe; before that nothing happens (A02)."""
    session = probing()
    assert session.next_deadline == 105.0

    session.receive_timeout(104.9)
    assert session.frames_to_send() == []
    session.receive_timeout(105.0)

    [fell_back] = session.events()
    assert not fell_back.needs_reopen
    assert [frame.method for frame in session.frames_to_send()] == ["initialize"]
    assert session.next_deadline is None


def test_a_late_answer_to_the_probe_is_ignored():
    """After the fall-back the probe's answer changes nothing and is no fault of the peer."""
    session = probing()
    session.receive_timeout(105.0)
    session.events()

    assert say(session, {"id": 1, "result": {"supportedVersions": [NEW]}}) == []
    [event] = say(session, {"id": 2, "result": {"protocolVersion": OLD}})

    assert event.info.era is Era.LEGACY


def test_a_slow_modern_server_ends_modern():
    """Silence, initialize refused with -32022, second probe, modern: the late race ends well (3.4.6)."""
    session = probing()
    session.receive_timeout(105.0)

    say(session, {"id": 2, "error": {"code": -32022, "message": "x", "data": {"supported": [NEW]}}})
    [_, frame] = session.frames_to_send()
    [event] = say(session, {"id": 3, "result": {"supportedVersions": [NEW]}})

    assert frame.method == "server/discover"
    assert event.info.era is Era.MODERN
    assert session.frames_to_send() == []


@pytest.mark.parametrize("message", [{"id": None}, {}], ids=["null", "absent"])
def test_an_error_without_id_answers_the_probe(message):
    """A server that cannot even read the probe answers without its id: legacy by evidence."""
    events = say(session := probing(), {**message, "error": {"code": -32700, "message": "Parse error"}})

    assert [type(event) for event in events] == [happened.FellBack]
    assert session.state is SessionState.INITIALIZING


def test_death_on_the_probe_is_a_verdict():
    """A server that exits on the probe is legacy: the session ends and asks for another transport (A02)."""
    session = probing()

    session.receive_eof(0.0)

    [event] = session.events()
    assert isinstance(event, happened.FellBack)
    assert event.needs_reopen
    assert session.state is SessionState.FAILED
    assert session.next_deadline is None


@pytest.mark.parametrize("settings", [{"is_http": True}, {"pinned_era": Era.MODERN}, {"pinned_era": Era.LEGACY}])
def test_death_elsewhere_is_no_verdict(settings):
    """On HTTP, and where the era is pinned, the end of the transport says nothing."""
    session = probing(**settings)

    session.receive_eof(0.0)

    assert session.events() == []


@pytest.mark.parametrize("era", ERAS)
def test_death_in_ready_is_told_to_nobody_here(era):
    """After the handshake the caller fails the waiters; the session says nothing on its own."""
    session = ready(era)
    session.request("m", None, "a")

    session.receive_eof(0.0)

    assert session.events() == []
    assert session.abandon() == ["a"]


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (lambda session: session.receive_refusal(1, Refusal(401), 0.0), AuthRequired),
        (lambda session: session.receive_refusal(1, Refusal(503), 0.0), ConnectFailed),
        (lambda session: session.receive_lost(1, "end of stream"), ConnectFailed),
        (
            lambda session: hear(session, {"id": 1, "error": {"code": -32021, "message": "x"}}),
            RpcError,
        ),
        (
            lambda session: hear(session, {"id": 1, "result": {"supportedVersions": ["2031-01-01"]}}),
            UnsupportedRevision,
        ),
    ],
)
def test_a_handshake_that_cannot_end_well_fails_once(happens, expected):
    """Login, outage, loss and disjoint versions end the session with the right class of error."""
    session = probing(is_http=True, probe_timeout=None)

    happens(session)

    [event] = session.events()
    assert isinstance(event, happened.SessionFailed)
    assert type(event.error) is expected
    assert session.state is SessionState.FAILED
    happens(session)
    assert session.events() == []


@pytest.mark.parametrize("answer", [{"result": "x"}, {"result": []}, {}, {"result": None}])
def test_a_malformed_answer_to_initialize_fails(answer):
    """An answer to initialize that cannot be read ends the handshake."""
    session = probing(pinned_era=Era.LEGACY)

    [event] = say(session, {"id": 1, **answer})

    assert isinstance(event.error, RemoteProtocolError)


def test_opening_twice_is_our_bug():
    """A session is opened once."""
    session = probing()

    with pytest.raises(LocalProtocolError):
        session.open(0.0)
    assert session.state is SessionState.PROBING
