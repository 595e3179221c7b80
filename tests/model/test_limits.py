"""Limits of results from the environment."""

from __future__ import annotations

import pytest

from mcp_actors.model.limits import read_limits


@pytest.mark.parametrize(
    ("text", "tokens", "warnings"),
    [
        (None, 25_000, 0),
        ("", 25_000, 0),
        ("50000", 50_000, 0),
        (" 7 ", 7, 0),
        ("0", 25_000, 1),
        ("-5", 25_000, 1),
        ("many", 25_000, 1),
        ("1.5", 25_000, 1),
        ("٣", 25_000, 1),
    ],
)
def test_the_limit_is_read(text: str | None, tokens: int, warnings: int) -> None:
    """S222, S358: MAX_MCP_OUTPUT_TOKENS counts when it is a positive whole number, else it is told of."""
    limits, told = read_limits({} if text is None else {"MAX_MCP_OUTPUT_TOKENS": text})

    assert (limits.max_tokens, len(told)) == (tokens, warnings)
