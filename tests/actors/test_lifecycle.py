"""Public states move along one table."""

from __future__ import annotations

import itertools

import pytest

from mcp_actors.actors.lifecycle import TRANSITIONS, Phase, ServerState, ServerStatus, advance
from mcp_actors.errors import LocalProtocolError


def _status(state: ServerState) -> ServerStatus:
    return ServerStatus("s", state, Phase.QUEUED, "queued", "stdio", "user", since=1.0)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(ServerState, ServerState)))
def test_a_move_is_legal_exactly_where_the_table_says_so(old: ServerState, new: ServerState) -> None:
    """S097: other moves raise and change nothing; staying is always legal (S096, S098)."""
    status = _status(old)

    if new is old or new in TRANSITIONS[old]:
        assert advance(status, new, Phase.READY, "why", now=2.0).state is new
    else:
        with pytest.raises(LocalProtocolError):
            advance(status, new, Phase.READY, "why", now=2.0)


def test_every_state_can_be_disabled() -> None:
    """S097: disabling sticks whatever the server is doing."""
    assert all(ServerState.DISABLED in TRANSITIONS[state] for state in ServerState if state is not ServerState.DISABLED)


def test_since_is_kept_while_the_state_stays() -> None:
    """`since` tells when the state began, not the phase."""
    status = _status(ServerState.PENDING)

    same = advance(status, ServerState.PENDING, Phase.CONNECTING, "connecting", now=5.0)
    other = advance(status, ServerState.FAILED, Phase.PARKED, "exit", now=5.0)

    assert (same.since, other.since) == (1.0, 5.0)
