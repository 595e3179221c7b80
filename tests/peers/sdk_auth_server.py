"""The official SDK's MCP server with an authorization server in memory: ``python sdk_auth_server.py PORT LIFETIME``.

Approves everybody at once; rotates refresh tokens and ends the login when an old one is used again.
"""

from __future__ import annotations

import secrets
import sys
import time

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, TokenError, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

PORT, LIFETIME = int(sys.argv[1]), int(sys.argv[2])
ORIGIN = f"http://127.0.0.1:{PORT}"


class Provider:
    """Keeps everything in dictionaries."""

    def __init__(self):
        self.clients, self.codes, self.refresh, self.access = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(16),
            client_id=client.client_id,
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.give(client, authorization_code.scopes)

    def give(self, client, scopes):
        access, refresh = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        ends = int(time.time()) + LIFETIME
        resource = f"{ORIGIN}/mcp"
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME, scope=" ".join(scopes))

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if self.refresh.pop(refresh_token.token, None) is None:
            self.refresh.clear()
            raise TokenError("invalid_grant")
        return self.give(client, scopes)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.clear()
        self.refresh.clear()


server = MCPServer(
    "sdk",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=ORIGIN,
        resource_server_url=f"{ORIGIN}/mcp",
        required_scopes=["read"],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["read"], default_scopes=["read"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
)


@server.tool()
def whoami() -> str:
    """Say who asks."""
    return "you"


server.run("streamable-http", host="127.0.0.1", port=PORT)
