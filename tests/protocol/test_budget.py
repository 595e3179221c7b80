"""Tests of the time that a whole call may take: it only runs out, and stands still while a person answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.budget import Budget


@pytest.mark.parametrize(
    ("steps", "deadline", "left_at_20"),
    [
        ([], 15, -5),
        ([("pause", 6)], math.inf, 9),
        ([("pause", 6), ("resume", 106)], 115, 95),
        ([("pause", 6), ("pause", 7), ("resume", 8)], math.inf, 9),
        ([("pause", 6), ("pause", 7), ("resume", 8), ("resume", 16)], 25, 5),
        ([("pause", 6), ("resume", 7), ("pause", 8), ("resume", 9)], 17, -3),
        ([("resume", 9)], 15, -5),
        ([("pause", 16), ("resume", 18)], 17, -3),
    ],
)
def test_what_is_left_is_what_no_person_took(steps, deadline, left_at_20):
    """S200, S202: ten seconds from 5 on, and the open questions on top, however they overlap; spent is spent."""
    budget = Budget(10, 5)
    for name, now in steps:
        getattr(budget, name)(now)

    assert budget.deadline == deadline
    assert budget.left(20) == left_at_20
    assert budget.timeout == 10


@pytest.mark.parametrize("timeout", [math.nan, "5", None, b"5"])
def test_a_time_that_is_no_number_is_refused(timeout):
    """No deadline is ever past NaN: a call with it would have none."""
    with pytest.raises(LocalProtocolError, match="a number of seconds"):
        Budget(timeout, 0)


@given(st.lists(st.tuples(st.sampled_from(["pause", "resume"]), st.integers(0, 50))))
def test_no_history_gives_more_than_a_person_took(steps):
    """After any history, seconds in which nobody is asked are counted once each, and no others."""
    budget, now, spent, depth = Budget(1000, 0), 0, 0, 0
    for name, gap in steps:
        now += gap
        spent += 0 if depth else gap
        getattr(budget, name)(now)
        depth = max(0, depth + (1 if name == "pause" else -1))

    assert budget.left(now) == 1000 - spent


def test_without_a_limit_it_has_no_end():
    """A call that was given no time is patient, whoever was asked meanwhile."""
    budget = Budget(math.inf, 5)
    budget.pause(6)
    budget.resume(7)

    assert (budget.deadline, budget.left(1e9)) == (math.inf, math.inf)
