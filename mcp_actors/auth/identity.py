"""Owns which client we are towards an authorization server, and the order in which that is settled. Pure.

What this is not: registering (`registration`), nor proving it (`client_auth`).

::

    1. configured (oauth.clientId)
    2. a client metadata document, where the server takes those (its URL is the client id; portable)
    3. what was registered before, with this issuer and this redirect URI
    4. register now, where the server has an endpoint for it
    5. ask: configuration needs a client id
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import field

from mcp_actors.auth.urls import place_of, same_issuer
from mcp_actors.errors import AuthFailed
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.options import AuthOptions

__all__ = ["ClientIdentity", "choose_identity", "configured_identity"]

CONFIGURED = "configured"
DOCUMENT = "document"
REGISTERED = "registered"


@frozen
class ClientIdentity:
    """One client, as one authorization server knows it."""

    client_id: str
    # "configured", "document" or "registered".
    kind: str = CONFIGURED
    client_secret: str | None = field(default=None, repr=False)
    # None: the best that both can, see `client_auth`.
    auth_method: str | None = None
    private_key: str | None = field(default=None, repr=False)
    signing_algorithm: str | None = None
    # Whose it is; None: not bound to an issuer (D11).
    issuer: str | None = None
    # The one it was registered with; None: any.
    redirect_uri: str | None = None
    # Seconds since the epoch; None: never.
    secret_expires_at: float | None = None

    def fits(self, issuer: str, redirect_uri: str, now: float) -> bool:
        """Whether a registration may be used there again (D11, faults 64 and 67)."""
        is_current = self.secret_expires_at is None or now < self.secret_expires_at
        is_there = self.issuer is not None and same_issuer(self.issuer, issuer)
        return is_current and is_there and self.redirect_uri == redirect_uri


def configured_identity(options: AuthOptions, issuer: str) -> ClientIdentity | None:
    """The client that configuration names, bound to the issuer that it is first used with."""
    if options.client_id is None:
        return None
    return ClientIdentity(
        client_id=options.client_id,
        client_secret=options.client_secret,
        auth_method=options.auth_method,
        private_key=options.private_key,
        signing_algorithm=options.signing_algorithm,
        issuer=issuer,
    )


def choose_identity(
    server: AuthServer,
    options: AuthOptions,
    *,
    redirect_uri: str,
    remembered: ClientIdentity | None,
    now: float,
) -> ClientIdentity | None:
    """Settle who we are.

    Args:
        server: where.
        options: what is configured.
        redirect_uri: where the person will be led back to.
        remembered: the last registration.
        now: seconds since the epoch.

    Returns:
        The identity; None: register now.

    Raises:
        AuthFailed: only a person can settle it; names the setting (fault 61).

    Source:
        MCP, authorization, "Client Registration Approaches"; D09, D11, S261.
    """
    configured = configured_identity(options, server.issuer)
    if configured is not None:
        return configured
    document = options.client_metadata_url
    if document is not None and server.takes_client_documents and len(urlsplit(document).path) > 1:
        method = "private_key_jwt" if options.private_key else "none"
        return ClientIdentity(
            client_id=document,
            kind=DOCUMENT,
            auth_method=method,
            private_key=options.private_key,
            signing_algorithm=options.signing_algorithm,
        )
    if remembered is not None and remembered.kind == REGISTERED and remembered.fits(server.issuer, redirect_uri, now):
        return remembered
    if server.registration_endpoint is not None:
        return None
    raise AuthFailed(
        reason=f"{place_of(server.issuer)} registers no clients by itself: set oauth.clientId to one it knows"
    )
