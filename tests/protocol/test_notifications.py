"""Tests of the reading of notifications: the table, progress reports, and whom each is for."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.calls import Calls
from mcp_actors.protocol.events import ListChanged, LogReceived, ResourceUpdated
from mcp_actors.protocol.inbound import Blame, Fault
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.notifications import NOTIFICATIONS, NotificationReader, Progress, read_progress
from mcp_actors.protocol.server_requests import ServerRequests

TAG = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("notifications/tools/list_changed", {}, ListChanged),
        ("notifications/prompts/list_changed", {"x": 1}, ListChanged),
        ("notifications/resources/list_changed", {}, ListChanged),
        ("notifications/resources/updated", {"uri": "file:///a"}, ResourceUpdated),
        ("notifications/resources/updated", {}, None),
        ("notifications/message", {"level": "info", "data": [1]}, LogReceived),
        ("notifications/message", {"level": "info", "logger": 5}, LogReceived),
        ("notifications/message", {"data": 1}, None),
    ],
)
def test_notifications_become_events(method, params, expected):
    """Each known notification becomes its event; one with unreadable params is refused alone (fault 74)."""
    if expected is None:
        with pytest.raises(RemoteProtocolError):
            NOTIFICATIONS[method](params)
    else:
        assert type(NOTIFICATIONS[method](params)) is expected


@pytest.mark.parametrize("progress", ["5", None, True, [], 10**400])
def test_progress_that_is_no_number_is_refused(progress):
    """`progress` must be a number that fits (fault 74)."""
    with pytest.raises(RemoteProtocolError):
        read_progress({"progressToken": 1, "progress": progress})


def test_progress_drops_what_it_cannot_use():
    """A bad total or message does not cost the progress itself."""
    report = read_progress({"progressToken": "t", "progress": 1, "total": "x", "message": 5})

    assert report == Progress("t", 1.0, None, None)


def reader() -> NotificationReader[str]:
    """Over three requests: 1 wants progress, 2 listens, 3 was given up; and a question "q" of the server."""
    calls: Calls[str] = Calls(max_tombstones=10)
    calls.add("works", wants_progress=True)
    calls.add("listens", wants_progress=False, is_listening=True)
    calls.add("left", wants_progress=True)
    calls.forget(3)
    server_requests = ServerRequests(frozenset({"roots/list"}), max_open=10)
    server_requests.receive("q", "roots/list", b"", is_ready=True)
    return NotificationReader(calls, server_requests)


def tagged(tag: object, **params: object) -> dict:
    return {**params, "_meta": {TAG: tag}}


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("initialized", None, None),
        ("progress", {"progressToken": 1, "progress": 1}, happened.ProgressReceived),
        ("progress", {"progressToken": 2, "progress": 1}, Fault.STALE_PROGRESS),
        ("progress", {"progressToken": 3, "progress": 1}, None),
        ("progress", {"progressToken": 1, "progress": "half"}, Fault.BAD_NOTIFICATION),
        ("cancelled", {"requestId": "q"}, happened.ServerRequestCancelled),
        ("cancelled", {"requestId": 2}, happened.ListenEnded),
        ("cancelled", {"requestId": 1}, None),
        ("cancelled", {"requestId": None}, None),
        ("cancelled", [], Fault.BAD_NOTIFICATION),
        ("subscriptions/acknowledged", tagged(2), happened.ListenAcknowledged),
        ("subscriptions/acknowledged", tagged("2"), Fault.UNKNOWN_SUBSCRIPTION),
        ("subscriptions/acknowledged", tagged(3), None),
        ("subscriptions/acknowledged", {}, None),
        ("tools/list_changed", None, happened.ListChanged),
        ("tools/list_changed", tagged(2), happened.ListChanged),
        ("tools/list_changed", tagged(1), Fault.UNKNOWN_SUBSCRIPTION),
        ("tools/list_changed", tagged(3), None),
        ("resources/updated", tagged(2, uri="a"), happened.ResourceUpdated),
        ("resources/updated", tagged(2), Fault.BAD_NOTIFICATION),
        ("tasks", {"taskId": "t"}, None),
        ("tasks/status", {"taskId": "t"}, None),
        ("elicitation/complete", {"elicitationId": "e"}, happened.ElicitationCompleted),
        ("message", {"level": "info", "data": 1}, happened.LogReceived),
        ("made/up", None, Fault.UNKNOWN_NOTIFICATION),
    ],
)
def test_each_notification_comes_home(method, params, expected):
    """To the call, the subscription or everybody; what is late is dropped, what is wrong is counted (fault 74, F01)."""
    came = reader().read(f"notifications/{method}", b"" if params is None else encode(params))

    if isinstance(expected, Fault):
        assert isinstance(came, Blame)
        assert came.fault is expected
    else:
        assert came is None if expected is None else type(came) is expected


def test_an_ended_subscription_is_over():
    """After its end the table is as if it had never been, but for the tombstone."""
    found = reader()

    found.read("notifications/cancelled", encode({"requestId": 2}))

    assert list(found.calls.waiting.values()) == ["works"]
    assert found.calls.is_buried(2)
    assert found.calls.listener(2) is None


def test_the_text_of_progress_is_cut():
    """Each call in flight keeps the newest report until its caller looks: what it holds is bounded."""
    report = read_progress({"progressToken": "t", "progress": 1, "message": "m" * 1_000_000})

    assert report.message == "m" * 65_536
