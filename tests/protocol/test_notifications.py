"""Tests of the table of notifications and of progress reports."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.events import ListChanged, LogReceived, ResourceUpdated
from mcp_actors.protocol.notifications import NOTIFICATIONS, Progress, read_progress


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
