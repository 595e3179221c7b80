"""What errors say of themselves."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RpcError


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no such thing", "s: error -32602: no such thing"),
        ("MCP error -32602: no such thing", "s: error -32602: no such thing"),
        ("MCP error -32603: no such thing", "s: error -32602: MCP error -32603: no such thing"),
    ],
)
def test_a_refusal_names_its_code_once(message: str, said: str) -> None:
    """Servers that repeat the code in the message are not quoted twice; the message itself stays as sent."""
    error = RpcError(server="s", code=-32602, message=message)

    assert (str(error), error.message) == (said, message)
