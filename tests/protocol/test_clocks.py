"""Tests of the clocks of a call: which runs out when, what resets them, and how long each may run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.clocks import CallClocks, CallTimeouts, Clock, resolve_timeouts

T = CallTimeouts(queue=5, first_byte=60, idle=300, wall=1000)


def clocks(*steps: tuple, timeouts: CallTimeouts = T) -> CallClocks:
    found = CallClocks(timeouts, Budget(timeouts.wall, 0.0), 0.0)
    for name, now in steps:
        getattr(found, name)(now)
    return found


@pytest.mark.parametrize(
    ("steps", "clock", "deadline"),
    [
        ([], Clock.QUEUE, 5),
        ([("sent", 3)], Clock.FIRST_BYTE, 63),
        ([("sent", 3), ("answered", 50)], Clock.IDLE, 350),
        ([("sent", 3), ("progressed", 50)], Clock.IDLE, 350),
        ([("sent", 3), ("answered", 50), ("progressed", 340)], Clock.IDLE, 640),
        ([("sent", 3), ("answered", 50), ("progressed", 340), ("progressed", 900)], Clock.WALL, 1000),
        ([("sent", 3), ("answered", 50), ("sent", 100)], Clock.FIRST_BYTE, 160),
        ([("pause", 1), ("resume", 101)], Clock.QUEUE, 105),
        ([("sent", 3), ("pause", 10), ("resume", 20)], Clock.FIRST_BYTE, 73),
        ([("sent", 3), ("answered", 50), ("pause", 60), ("resume", 10_060)], Clock.IDLE, 10_350),
        ([("sent", 3), ("answered", 50), ("pause", 60), ("progressed", 80), ("resume", 100)], Clock.IDLE, 400),
        ([("sent", 3), ("pause", 10), ("pause", 20), ("resume", 30), ("resume", 110)], Clock.FIRST_BYTE, 163),
        ([("sent", 3), ("resume", 30)], Clock.FIRST_BYTE, 63),
        ([("sent", 3), ("pause", 30), ("resume", 20)], Clock.FIRST_BYTE, 63),
    ],
)
def test_the_clock_that_runs_out_first_is_named(steps, clock, deadline):
    """Each clock runs from its own moment; progress resets idle, a person stops all, the wall never resets (S201)."""
    found = clocks(*steps)

    assert found.next_deadline == deadline
    assert found.expired(deadline - 0.001) is None
    assert found.expired(deadline) is clock
    assert found.expired(math.inf) is clock


def test_nothing_runs_out_while_a_person_answers():
    """With a question open there is no deadline, however late it is (S202)."""
    found = clocks(("sent", 0), ("pause", 1), ("pause", 2), ("resume", 3))

    assert found.next_deadline == math.inf
    assert found.expired(1e9) is None


def test_the_earliest_of_several_is_named():
    """Seen late, the clock that ran out first is named; on a tie the more specific one."""
    assert clocks(("sent", 0)).expired(1e6) is Clock.FIRST_BYTE
    assert clocks(("sent", 0), timeouts=CallTimeouts(first_byte=60, wall=60)).expired(60) is Clock.FIRST_BYTE
    assert clocks(("sent", 0), timeouts=CallTimeouts(first_byte=60, wall=59)).expired(1e6) is Clock.WALL


def test_without_clocks_a_call_has_no_end():
    """The default is patience."""
    found = clocks(("sent", 0), timeouts=CallTimeouts())

    assert found.next_deadline == math.inf
    assert found.expired(1e12) is None


@given(st.lists(st.tuples(st.sampled_from(["sent", "answered", "progressed", "pause", "resume"]), st.floats(0, 50))))
def test_the_wall_moves_by_pauses_alone(steps):
    """After any history the call ends at most at its wall plus what a person took; so does its budget."""
    found, now, paused, since, depth = CallClocks(T, Budget(T.wall, 0.0), 0.0), 0.0, 0.0, 0.0, 0
    for name, gap in steps:
        now += gap
        getattr(found, name)(now)
        if name == "pause":
            since, depth = (now if depth == 0 else since), depth + 1
        elif name == "resume" and depth:
            depth -= 1
            paused += now - since if depth == 0 else 0.0

    if depth == 0:
        assert found.next_deadline <= T.wall + paused + 1e-6
        assert found.budget.deadline == pytest.approx(T.wall + paused)


@pytest.mark.parametrize("clock", Clock)
def test_the_timeout_of_a_clock_can_be_told(clock):
    """Error texts name the clock and its length."""
    assert clocks().timeout_of(clock) == {"queue": 5, "first-byte": 60, "idle": 300, "wall": 1000}[clock.value]


INF = math.inf
UNSET = 100_000.0


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        # Nothing set: 60 s to the first byte, and the transport's idle clock.
        ("http", {}, (60, 300, UNSET)),
        ("sse", {}, (60, 300, UNSET)),
        ("ws", {}, (INF, 300, UNSET)),
        ("stdio", {}, (INF, 1800, UNSET)),
        ("memory", {}, (INF, INF, UNSET)),
        ("sse-ide", {}, (INF, INF, UNSET)),
        ("ws-ide", {}, (INF, INF, UNSET)),
        ("sdk", {}, (INF, INF, UNSET)),
        # All calls: raises the first byte, never shortens it; caps idle.
        ("http", {"call_timeout": 120}, (120, INF, 120)),
        ("http", {"call_timeout": 10}, (60, INF, 10)),
        ("stdio", {"call_timeout": 2000}, (INF, 1800, 2000)),
        # An entry wins; below a second it is ignored; it is a floor of idle.
        ("http", {"call_timeout": 120, "entry_timeout": 600}, (600, INF, 600)),
        ("http", {"call_timeout": 120, "entry_timeout": 0.5}, (120, INF, 120)),
        ("http", {"entry_timeout": 0.5}, (60, 300, UNSET)),
        ("http", {"entry_timeout": 10, "idle_timeout": 2}, (60, INF, 10)),
        # Idle: set, off, capped.
        ("http", {"idle_timeout": 7}, (60, 7, UNSET)),
        ("stdio", {"idle_timeout": 0}, (INF, INF, UNSET)),
        ("stdio", {"idle_timeout": 50, "call_timeout": 20}, (INF, INF, 20)),
        # The entry's own first byte.
        ("http", {"first_byte_timeout": 5, "call_timeout": 600}, (5, 300, 600)),
        ("stdio", {"first_byte_timeout": 5}, (INF, 1800, UNSET)),
    ],
)
def test_how_long_each_clock_may_run(kind, given, expected):
    """The table of S076 and S199-S201, for each transport and whatever was set."""
    found = resolve_timeouts(kind, **{"call_timeout": UNSET, "default": UNSET, **given})

    assert (found.first_byte, found.idle, found.wall) == expected
    assert found.queue == INF
