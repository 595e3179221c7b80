"""Owns the requests that renew a kept login, mint one anew without a person, or revoke it. Pure.

What this is not: when and by whom (`refreshing`), nor the first sign-in of a person (`flow`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.auth.client_auth import authenticate
from mcp_actors.auth.flow import choose_presentation, credentials_of, find, refusal_error, wanted_scope
from mcp_actors.auth.grants import ask_token, client_credentials_form, jwt_bearer_form, refresh_form
from mcp_actors.auth.identity import configured_identity
from mcp_actors.auth.messages import Purpose, form_request
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.tokens import Refused
from mcp_actors.errors import AuthFailed

if TYPE_CHECKING:
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.flow import Errand
    from mcp_actors.auth.messages import Asking, Sources
    from mcp_actors.auth.presentation import Presentation

__all__ = ["mint", "renew", "revoke"]


def renew(credentials: Credentials, presentation: Presentation, sources: Sources) -> Asking[Credentials | Refused]:
    """Use the refresh token, at the issuer that gave it.

    Source:
        RFC 6749, section 6; D06, D15; faults 54, 57.
    """
    tokens = credentials.tokens
    if tokens is None or tokens.refresh_token is None:
        return Refused("invalid_grant", "there is no refresh token")
    form = refresh_form(tokens.refresh_token, resource=credentials.resource)
    result = yield from ask_token(
        credentials.server,
        form,
        identity=credentials.identity,
        presentation=presentation,
        sources=sources,
        previous=tokens,
    )
    return result if isinstance(result, Refused) else evolve(credentials, tokens=result)


def mint(errand: Errand, *, assertion: str | None = None) -> Asking[Credentials]:
    """Get a token without a person: client credentials, or a workload's platform token as `assertion`.

    One try: after a refusal neither is repeated, and no other grant is tried (D20).

    Raises:
        AuthFailed: refused, or configuration lacks something.
        ConnectFailed: a server is out of order for now.

    Source:
        MCP extensions oauth-client-credentials and auth/wif; D17, D20.
    """
    options = errand.options
    found = yield from find(errand)
    presentation = choose_presentation(errand, found)
    scope = wanted_scope(errand, found)
    identity = None
    if options.grant is GrantKind.WORKLOAD:
        if assertion is None:
            raise AuthFailed(reason="workload identity needs oauth.assertionFile")
        form = jwt_bearer_form(assertion, resource=found.resource, scope=scope)
    else:
        identity = configured_identity(options, found.server.issuer)
        if identity is None or (identity.client_secret is None and identity.private_key is None):
            raise AuthFailed(reason="client credentials need oauth.clientId, and oauth.clientSecret or a private key")
        form = client_credentials_form(resource=found.resource, scope=scope)
    result = yield from ask_token(
        found.server, form, identity=identity, presentation=presentation, sources=errand.sources
    )
    if isinstance(result, Refused):
        raise refusal_error(result, found.server)
    return credentials_of(errand, found, result, options.grant, identity, presentation)


def revoke(credentials: Credentials, sources: Sources) -> Asking[bool]:
    """Tell the issuer that the login has ended: the refresh token first, which takes its access tokens along.

    Returns:
        Whether the issuer was told and agreed; it may offer no way to be told.

    Source:
        RFC 7009, section 2.1; S267.
    """
    server: AuthServer = credentials.server
    tokens = credentials.tokens
    if server.revocation_endpoint is None or tokens is None:
        return False
    held = [("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token)]
    is_done = True
    for hint, token in held:
        if token is None:
            continue
        headers, extra = authenticate(credentials.identity, server, sources) if credentials.identity else ((), {})
        form = {"token": token, "token_type_hint": hint, **extra}
        answer = yield form_request(Purpose.REVOCATION, server.revocation_endpoint, form, headers)
        is_done = is_done and answer.is_success
    return is_done
