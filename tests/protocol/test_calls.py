"""Tests of the table of requests in flight."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.calls import Calls


def calls_of(*waiters: str, wants_progress: bool = False, max_tombstones: int = 10) -> Calls[str]:
    calls: Calls[str] = Calls(max_tombstones)
    for waiter in waiters:
        calls.add(waiter, wants_progress=wants_progress)
    return calls


def test_ids_are_never_used_twice():
    """Every request, answered or forgotten or nobody's, takes the next integer (A14)."""
    calls = calls_of("a", "b")
    calls.settle(1)
    calls.forget(2)

    assert calls.take_id() == 3
    assert calls.next_id == 4


@pytest.mark.parametrize("request_id", [1.0, True, "1", 2, None])
def test_forget_takes_exact_ids_only(request_id):
    """An id of another type, or of nobody, forgets nothing."""
    calls = calls_of("a")

    assert calls.forget(request_id) is False
    assert calls.waiting == {1: "a"}


def test_a_forgotten_id_is_buried_once():
    """One late answer is recognised for each forgotten request."""
    calls = calls_of("a")

    assert calls.forget(1)
    assert not calls.forget(1)
    assert calls.is_buried(1)
    assert calls.unearth(1)
    assert not calls.unearth(1)


def test_tombstones_are_bounded():
    """The oldest tombstone makes room for the newest."""
    calls = calls_of(*"abcde", max_tombstones=3)

    for request_id in range(1, 6):
        calls.forget(request_id)

    assert [calls.is_buried(request_id) for request_id in range(1, 6)] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("reports", "risen"),
    [
        ([(1, 0.0), (1, 0.5), (1, 0.5), (1, 0.4), (1, 1.0)], [1, 1, None, None, 1]),
        ([(1, -5.0), (1, -4.0)], [1, 1]),
        ([("1", 1.0), (1.0, 2.0)], [1, 1]),
        ([(2, 1.0), ("x", 1.0), (None, 1.0), ([1], 1.0), ({}, 1.0), (True, 1.0)], [None] * 6),
    ],
)
def test_progress_counts_when_it_rises(reports, risen):
    """Only rising progress of a request in flight that asked for it counts (S203, B16)."""
    calls = calls_of("a", wants_progress=True)

    assert [calls.risen(token, progress) for token, progress in reports] == risen


def test_progress_that_nobody_asked_for_does_not_count():
    """A request without the wish for progress has none, and none after its end."""
    calls = calls_of("a")
    wishing = calls_of("a", wants_progress=True)
    wishing.settle(1)

    assert calls.risen(1, 1.0) is None
    assert wishing.risen(1, 1.0) is None


def test_clear_hands_back_everybody_in_order():
    """Everybody who waits is handed back, oldest first, and the table is empty."""
    calls = calls_of("a", "b", "c")
    calls.settle(2)

    assert calls.clear() == ["a", "c"]
    assert calls.waiting == {}
