"""The figures of `storm`; the verb itself is in test_commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.cli.storm import percentiles


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], {"p50": None, "p95": None, "p99": None}),
        ([7], {"p50": 7, "p95": 7, "p99": 7}),
        ([2, 1], {"p50": 1, "p95": 2, "p99": 2}),
        (list(range(1, 101)), {"p50": 50, "p95": 95, "p99": 99}),
        (list(range(1000, 0, -1)), {"p50": 500, "p95": 950, "p99": 990}),
    ],
)
def test_percentiles(values, expected):
    """Percentiles go by the nearest rank."""
    assert percentiles(values) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_are_values(values):
    """Each percentile is a value that occurred, and they rise."""
    p50, p95, p99 = percentiles(values).values()

    assert {p50, p95, p99} <= set(values)
    assert p50 <= p95 <= p99 <= max(values)
