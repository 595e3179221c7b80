"""Tests of subscriptions: filters, plans for each era, demultiplexing by id, ends and new tries."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RpcError, TransportBroken
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.jsonrpc import decode
from mcp_actors.protocol.listening import (
    Again,
    ListenFilter,
    Never,
    covers_uri,
    decide_relisten,
    plan_listening,
    subscription_id,
)
from mcp_actors.protocol.types import Era, ServerInfo

from .kit import NEW, OLD, faults, hear, ready, say

EVERYTHING = ListenFilter(frozenset({"tools", "prompts", "resources"}), frozenset({"file:///a"}))
WIRE = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["file:///a"],
}
ID = "io.modelcontextprotocol/subscriptionId"
ABLE = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}


def lists(*kinds: str) -> ListenFilter:
    return ListenFilter(frozenset(kinds))


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_filter_is_written_and_read():
    """Everything is opt-in: what is not wanted is not named."""
    assert EVERYTHING.to_params() == {"notifications": WIRE}
    assert ListenFilter().to_params() == {"notifications": {}}
    assert ListenFilter.read(WIRE) == EVERYTHING
    assert not ListenFilter()
    assert EVERYTHING


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {"toolsListChanged": "yes", "resourceSubscriptions": "file:///a"}, {"resourceSubscriptions": [1]}],
)
def test_an_unreadable_filter_honours_nothing(value):
    """In doubt nothing is promised."""
    assert ListenFilter.read(value) == ListenFilter()


def test_filters_are_sets():
    """One may be taken from another, kind by kind."""
    assert EVERYTHING - lists("tools") == ListenFilter(frozenset({"prompts", "resources"}), EVERYTHING.uris)
    assert not EVERYTHING - EVERYTHING


@pytest.mark.parametrize(
    ("uri", "is_covered"),
    [("file:///a", True), ("file:///a/b", True), ("file:///ab", False), ("file:///", False), ("dir://x/y", True)],
)
def test_news_of_what_lies_below_count(uri, is_covered):
    """``resources/updated`` may name a sub-resource (spec_client 7.8)."""
    assert any(covers_uri(own, uri) for own in ("file:///a", "dir://x/")) is is_covered


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("era", "capabilities", "listen", "subscribe", "missing"),
    [
        (Era.MODERN, ABLE, EVERYTHING, (), ListenFilter()),
        (Era.MODERN, {}, None, (), EVERYTHING),
        (Era.MODERN, {"tools": {"listChanged": True}}, lists("tools"), (), EVERYTHING - lists("tools")),
        (Era.LEGACY, ABLE, None, ("file:///a",), ListenFilter()),
        (Era.LEGACY, {"tools": {}, "resources": {"subscribe": False}}, None, (), EVERYTHING),
    ],
)
def test_each_era_is_asked_in_its_way(era, capabilities, listen, subscribe, missing):
    """One listen request in modern, a subscription for each resource in legacy; what cannot come is told (F01, F04)."""
    plan = plan_listening(EVERYTHING, ServerInfo(NEW if era is Era.MODERN else OLD, era, capabilities))

    assert (plan.listen, plan.subscribe, plan.missing) == (listen, subscribe, missing)


# ── the open request ─────────────────────────────────────────────────────────────────────────────────────────────────


def listening(*waiters: str):
    session = ready(Era.MODERN)
    for waiter in waiters:
        session.request("subscriptions/listen", EVERYTHING.to_params(), waiter)
    return session


def notice(method: str, tag: object, **params: object) -> dict:
    return {"method": f"notifications/{method}", "params": {**params, "_meta": {ID: tag}}}


def test_a_subscription_is_acknowledged_and_heard():
    """The honoured subset comes first, then notices tagged with it; several subscriptions are open at once (F01)."""
    session = listening("a", "b")

    [ready_a] = say(session, notice("subscriptions/acknowledged", 2, notifications={"toolsListChanged": True}))
    [first] = say(session, notice("tools/list_changed", 2))
    [second] = say(session, notice("resources/updated", 3, uri="file:///a/b"))

    assert (type(ready_a), ready_a.waiter, ready_a.honoured) == (happened.ListenAcknowledged, "a", lists("tools"))
    assert (type(first), first.kind) == (happened.ListChanged, "tools")
    assert (type(second), second.uri) == (happened.ResourceUpdated, "file:///a/b")
    assert session.in_flight == 2


@pytest.mark.parametrize("tag", ["2", 2.0, True, 99, [2], {"id": 2}, 3])
def test_notices_are_matched_with_the_type_of_their_id(tag):
    """What carries an id that nobody listens by, or one of another type, is for nobody (F01)."""
    session = listening("a")
    session.request("tools/list", None, "plain")

    for method in ("subscriptions/acknowledged", "tools/list_changed"):
        assert faults(say(session, notice(method, tag))) == ["unknown-subscription"]


def test_an_untagged_notice_is_for_everybody():
    """As in legacy: it costs a fetch and nothing else."""
    [event] = say(listening("a"), {"method": "notifications/tools/list_changed"})

    assert isinstance(event, happened.ListChanged)


@pytest.mark.parametrize(
    "end",
    [
        {"id": 2, "result": {"resultType": "complete", "_meta": {ID: 2}}},
        {"id": 2, "result": {}},
        {"method": "notifications/cancelled", "params": {"requestId": 2, "reason": "shutting down"}},
    ],
)
def test_a_server_ends_a_subscription_in_order(end):
    """A result or ``cancelled``: both are an end and no loss; late notices are nobody's fault (F02)."""
    session = listening("a")

    [event] = say(session, end)

    assert (type(event), event.waiter) == (happened.ListenEnded, "a")
    assert session.in_flight == 0
    assert say(session, notice("tools/list_changed", 2)) == []
    assert say(session, end) == []


def test_a_server_cancels_nothing_but_subscriptions():
    """Only a listen id may be cancelled by a server in the modern era (spec_client 7.2)."""
    session = ready(Era.MODERN)
    session.request("tools/call", {"name": "t"}, "a")

    assert say(session, {"method": "notifications/cancelled", "params": {"requestId": 2}}) == []
    assert session.is_waiting(2)


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda session: session.receive_lost(2, "cut"), TransportBroken),
        (lambda session: hear(session, {"id": 2, "error": {"code": -32601, "message": "no"}}), RpcError),
    ],
)
def test_a_lost_subscription_is_an_error(end, error):
    """Loss and refusal are errors of the one who listens."""
    session = listening("a")

    end(session)

    [event] = session.events()
    assert isinstance(event.error, error)


@pytest.mark.parametrize("over_http", [False, True])
def test_we_end_a_subscription(over_http):
    """By ``cancelled`` on message streams, by closing the stream on HTTP; what still comes is silently dropped."""
    session = ready(Era.MODERN, is_http=over_http)
    frame = session.request("subscriptions/listen", lists("tools").to_params(), "a")

    cancel = session.cancel(frame.request_id, "no longer wanted")

    assert (cancel is None) is over_http
    assert over_http or decode(cancel.data)["params"]["requestId"] == 2
    assert say(session, notice("tools/list_changed", 2)) == []


@pytest.mark.parametrize("meta", [None, [], {}, {ID: None}])
def test_what_has_no_id_is_untagged(meta):
    """A malformed `_meta` is none."""
    assert subscription_id({"_meta": meta}) is None


# ── new tries ────────────────────────────────────────────────────────────────────────────────────────────────────────

LOST = TransportBroken(reason="cut")


@pytest.mark.parametrize(
    ("error", "pauses"),
    [(LOST, [1, 2, 4, 8, 16, 32, 60, 60]), (None, [30, 60, 60]), (RpcError(code=-32603, message="x"), [1, 2, 4])],
)
def test_a_subscription_is_opened_again_later_each_time(error, pauses):
    """After a loss soon, after an end in order later; up to half of the pause is chance (F02)."""
    for failures, pause in enumerate(pauses, 1):
        assert decide_relisten(error, failures, 0.0) == Again(pause)
        assert decide_relisten(error, failures, 1.0) == Again(pause / 2)
    assert decide_relisten(error, 10**6, 0.0) == Again(60)


@pytest.mark.parametrize("code", [-32601, -32602, -32021])
def test_a_refused_subscription_is_not_opened_again(code):
    """A server without subscriptions is left to the age of its answers (spec_client 7.8)."""
    assert isinstance(decide_relisten(RpcError(code=code, message="no"), 1, 0.0), Never)
