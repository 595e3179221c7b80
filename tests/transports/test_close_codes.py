"""What an ended WebSocket is said to have ended of."""

from __future__ import annotations

import pytest

from mcp_actors.transports.close_codes import describe_close


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (1006, "", "the connection ended without a word"),
        (1000, "", "the server closed the connection: 1000 NAME"),
        (1001, "going\n\x1b[31mhome", "the server closed the connection: 1001 NAME: going home"),
        (1002, "bad frame", "the connection was closed: 1002 NAME: bad frame"),
        (1007, "", "the connection was closed: 1007 NAME"),
        (1009, "Exceeded maximum message size: 9 bytes", "message larger than 8 bytes"),
        (1009, "of yours", "the server closed the connection: 1009 NAME: of yours"),
    ],
)
def test_who_closed_and_why_is_told(code: int, words: str, expected: str) -> None:
    """Whose fault it was follows from the code; a stranger's words are made harmless and stand last (S416)."""
    assert describe_close(code, "NAME", words, max_bytes=8) == expected
