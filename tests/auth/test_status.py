"""What is told of a login."""

from __future__ import annotations

import pytest

from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.status import describe_login
from mcp_actors.auth.tokens import Tokens

AS = "https://as.example.com"
MCP = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("expires_at", "refresh_token", "can_mint", "state", "can_renew"),
    [
        (None, None, False, "signed-in", False),
        (11.0, None, False, "signed-in", False),
        (10.0, None, False, "expired", False),
        (10.0, "r", False, "expired", True),
        (11.0, None, True, "signed-in", True),
    ],
)
def test_a_login_is_told_as_it_is_now(expires_at, refresh_token, can_mint, state, can_renew):
    """State and renewal follow from tokens and moment; what was granted, where and by whom is told, no secret."""
    tokens = Tokens("CANARY", expires_at=expires_at, refresh_token=refresh_token, scope=("read",))
    held = Credentials(MCP, MCP, AuthServer(AS, f"{AS}/token"), GrantKind.AUTHORIZATION_CODE, tokens, dpop_key="CANARY")

    told = describe_login("srv", held, tokens, store="file", can_mint=can_mint, now=10.0)

    assert (told.state, told.can_renew) == (state, can_renew)
    assert (told.server, told.issuer, told.resource, told.store) == ("srv", AS, MCP, "file")
    assert (told.scopes, told.client_id, told.is_key_bound) == (("read",), None, True)
    assert "CANARY" not in repr(told)
