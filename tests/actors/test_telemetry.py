"""Tests of `actors.telemetry`."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
from mcp_actors.actors.registry import StatusChange
from mcp_actors.actors.telemetry import connection_event

QUEUED = ServerStatus("srv", ServerState.PENDING, Phase.QUEUED, "queued", transport="http", scope="user")
UP = evolve(
    QUEUED,
    state=ServerState.CONNECTED,
    phase=Phase.READY,
    reason="ready",
    generation=1,
    connect_seconds=0.25,
    list_seconds=0.05,
)
BACKING_OFF = evolve(QUEUED, phase=Phase.BACKING_OFF, reason="timeout", attempt=1)
FAILED = evolve(QUEUED, state=ServerState.FAILED, phase=Phase.PARKED, reason="http", attempt=1)
LOGIN = evolve(FAILED, state=ServerState.NEEDS_AUTH, reason="needs-auth")
OFF = evolve(QUEUED, state=ServerState.DISABLED, phase=Phase.STOPPED, reason="user")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (None, QUEUED, None),
        (QUEUED, UP, ("connected", 300, None)),
        (None, UP, ("connected", 300, None)),
        (UP, evolve(UP, tools=3), None),
        (UP, evolve(UP, generation=2), ("connected", 300, None)),
        (QUEUED, BACKING_OFF, ("failed", None, "timeout")),
        (BACKING_OFF, evolve(BACKING_OFF, next_retry=5.0), None),
        (BACKING_OFF, evolve(BACKING_OFF, attempt=2), ("failed", None, "timeout")),
        (BACKING_OFF, evolve(QUEUED, phase=Phase.CONNECTING), None),
        (QUEUED, FAILED, ("failed", None, "http")),
        (QUEUED, LOGIN, ("failed", None, "needs-auth")),
        (UP, BACKING_OFF, ("disconnected", None, "timeout")),
        (UP, FAILED, ("disconnected", None, "http")),
        (UP, OFF, ("disconnected", None, None)),
        (UP, None, ("disconnected", None, None)),
        (FAILED, OFF, None),
        (FAILED, None, None),
        (None, None, None),
    ],
)
def test_a_change_becomes_an_event_in_the_fields_names(old, new, told):
    """Connected, failed and disconnected, with how long it took or what went wrong; no name (S364)."""
    event = connection_event(StatusChange("srv", old, new))

    if told is None:
        assert event is None
        return
    status, duration, code = told
    rest = {"duration_ms": duration} if duration is not None else {"error_code": code} if code is not None else {}
    fixed = {"event": "mcp_server_connection", "transport_type": "http", "server_scope": "user", "is_plugin": False}
    assert event == {**fixed, "status": status, **rest}


def test_names_are_told_where_asked_for():
    """A plugin's server is one, and its name is told only by those who want it (S364)."""
    change = StatusChange("srv", None, evolve(UP, scope="plugin"))

    assert "srv" not in connection_event(change).values()
    assert connection_event(change, has_names=True)["server_name"] == "srv"
    assert connection_event(change)["is_plugin"] is True
