"""The log lines of `run`, as a table; the verb itself is in test_commands."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
from mcp_actors.cli.running import change_line, login_notice

QUEUED = ServerStatus("s", ServerState.PENDING, Phase.QUEUED, "queued", transport="stdio", scope="user")
CONNECTING = evolve(QUEUED, phase=Phase.CONNECTING, reason="connecting")
UP = evolve(
    QUEUED, state=ServerState.CONNECTED, phase=Phase.READY, reason="ready", revision="2025-11-25", tools=2, pid=7
)
RESTARTED = evolve(UP, generation=1, pid=8, restarts=1)
BACKING_OFF = evolve(QUEUED, phase=Phase.BACKING_OFF, reason="exit", error="exit status 3\n  | oh")
FAILED = evolve(QUEUED, state=ServerState.FAILED, phase=Phase.PARKED, reason="crash-loop", error="gave up")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (None, QUEUED, None),
        (BACKING_OFF, QUEUED, None),
        (QUEUED, BACKING_OFF, "s: pending (exit) phase=backing-off error='exit status 3 | oh'"),
        (UP, QUEUED, "s: connected -> pending (queued)"),
        (QUEUED, CONNECTING, None),
        (CONNECTING, UP, "s: pending -> connected (ready) revision=2025-11-25 tools=2 pid=7"),
        (UP, evolve(UP, tools=3), None),
        (
            UP,
            evolve(UP, warnings=("a list\n failed",)),
            "s: connected (ready) revision=2025-11-25 tools=2 pid=7 warning='a list failed'",
        ),
        (UP, BACKING_OFF, "s: connected -> pending (exit) phase=backing-off error='exit status 3 | oh'"),
        (BACKING_OFF, evolve(BACKING_OFF, attempt=2), None),
        (UP, RESTARTED, "s: connected (ready) revision=2025-11-25 tools=2 pid=8 restarts=1"),
        (BACKING_OFF, FAILED, "s: pending -> failed (crash-loop) phase=parked error='gave up'"),
        (UP, None, "s: removed"),
        (None, None, None),
        (
            None,
            evolve(FAILED, name="s\n\x1b", error=None),
            "s \N{REPLACEMENT CHARACTER}: failed (crash-loop) phase=parked",
        ),
    ],
)
def test_change_line(old, new, line):
    """A change of state is one line; what only moves within a state is none."""
    assert change_line(old, new) == line


WAITING = evolve(QUEUED, state=ServerState.NEEDS_AUTH, phase=Phase.PARKED, reason="needs-auth")


@pytest.mark.parametrize(
    ("statuses", "notice"),
    [
        ((), None),
        ((UP, FAILED), None),
        ((UP, WAITING), "1 server waits for a login: mcp-actors login s"),
        (
            (WAITING, UP, evolve(WAITING, name="t")),
            "2 servers wait for a login: mcp-actors login s, mcp-actors login t",
        ),
    ],
)
def test_servers_that_wait_for_a_login_are_told_in_one_notice(statuses, notice):
    """However many there are, one line says how many and what to run (S269)."""
    assert login_notice(statuses) == notice
