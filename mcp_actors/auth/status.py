"""Owns `AuthStatus`, what a program or a person is shown of how a server is signed in to, made of the kept login.

What this is not: the state of a server (`actors.lifecycle`), or anything that asks somebody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.tokens import Tokens

__all__ = ["AuthStatus", "describe_login"]


@frozen
class AuthStatus:
    """How one server is signed in to. No secret, and reading it asks nobody."""

    server: str
    # "signed-in", "expired" (renewed at its next use), "signed-out", "silent" (minted at its next use), "configured"
    # (its own header) or "none" (no HTTP).
    state: str
    grant: str | None = None
    issuer: str | None = None
    resource: str | None = None
    client_id: str | None = None
    scopes: tuple[str, ...] = ()
    # Seconds since the epoch; None: unknown.
    expires_at: float | None = None
    can_renew: bool = False
    # Where the login is kept: "keyring", "file" or "memory".
    store: str | None = None
    is_key_bound: bool = False


def describe_login(
    server: str, held: Credentials, tokens: Tokens, *, store: str, can_mint: bool, now: float
) -> AuthStatus:
    """Tell of a login that is kept.

    Args:
        server: its name.
        held: what is kept.
        tokens: its tokens.
        store: where.
        can_mint: tokens come without a person, so that an ended one is no loss.
        now: seconds since the epoch.
    """
    return AuthStatus(
        server=server,
        state="signed-in" if tokens.is_alive(now) else "expired",
        grant=str(held.grant),
        issuer=held.issuer,
        resource=held.resource,
        client_id=None if held.identity is None else held.identity.client_id,
        scopes=held.granted,
        expires_at=tokens.expires_at,
        can_renew=tokens.refresh_token is not None or can_mint,
        store=store,
        is_key_bound=held.dpop_key is not None,
    )
