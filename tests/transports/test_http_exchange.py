"""What the head of an answer says about a pause."""

from __future__ import annotations

import pytest

from mcp_actors.transports.http_exchange import is_success, retry_after

NOON = 1_785_240_000.0  # Tue, 28 Jul 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("2", 2.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("9" * 500, 604800.0),
        ("Tue, 28 Jul 2026 12:00:30 GMT", 30.0),
        ("Tue, 28 Jul 2026 14:00:30 +0200", 30.0),
        ("Tue, 28 Jul 2026 11:00:00 GMT", 0.0),
        ("Tue, 28 Jul 9999 11:00:00 GMT", 604800.0),
        ("Tue, 99 Jul 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(value, expected):
    """Retry-After is read as seconds or as a date, never negative, at most a week (fault 46)."""
    assert expected == retry_after(value, now=NOON)


def test_is_success():
    """Only 2xx is success."""
    assert [status for status in (100, 199, 200, 202, 299, 300, 404, 500) if is_success(status)] == [200, 202, 299]
