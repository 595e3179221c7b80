"""Owns dynamic client registration (RFC 7591): what we say of ourselves, and what comes back. Pure.

What this is not: the decision to register (`identity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.auth.identity import REGISTERED, ClientIdentity
from mcp_actors.auth.messages import Purpose, WebRequest, number_in, text_in
from mcp_actors.auth.tokens import read_token_answer
from mcp_actors.auth.urls import place_of
from mcp_actors.errors import AuthFailed, ConnectFailed
from mcp_actors.protocol.jsonrpc import encode

if TYPE_CHECKING:
    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.messages import Asking, WebAnswer
    from mcp_actors.jsontypes import Json

__all__ = ["CLIENT_NAME", "read_registration", "register", "registration_document"]

CLIENT_NAME: Final = "mcp-actors"
CLIENT_URI: Final = "https://pypi.org/project/mcp-actors/"
# Best first: a secret of a program on a person's machine is none, so none is wanted where the server lets us choose.
_WISHES: Final = ("none", "client_secret_basic", "client_secret_post")


def registration_document(
    server: AuthServer, *, redirect_uri: str, scope: tuple[str, ...], grant_types: tuple[str, ...]
) -> dict[str, Json]:
    """What we say of ourselves; nothing is sent empty (fault 63).

    Source:
        MCP 2026-07-28, authorization: "MUST specify an appropriate application_type"; D10.
    """
    taken = server.auth_methods
    method = next((name for name in _WISHES if taken and name in taken), "none")
    document: dict[str, Json] = {
        "client_name": CLIENT_NAME,
        "client_uri": CLIENT_URI,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": list(grant_types),
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }
    if scope:
        document["scope"] = " ".join(scope)
    return document


def register(
    server: AuthServer,
    *,
    redirect_uri: str,
    scope: tuple[str, ...] = (),
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token"),
    now: float,
) -> Asking[ClientIdentity]:
    """Register once.

    Raises:
        AuthFailed: the server refused, or its answer cannot be used.
        ConnectFailed: it is out of order for now.
    """
    document = registration_document(server, redirect_uri=redirect_uri, scope=scope, grant_types=grant_types)
    headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
    url = server.registration_endpoint or ""
    request = WebRequest(Purpose.REGISTRATION, url, "POST", headers, encode(document))
    answer = yield request
    return read_registration(answer, server, redirect_uri=redirect_uri, now=now, secrets=request.secrets)


def read_registration(
    answer: WebAnswer, server: AuthServer, *, redirect_uri: str, now: float, secrets: tuple[str, ...] = ()
) -> ClientIdentity:
    """Read the answer; null and empty members mean absent, a secret that ends at 0 never ends (fault 62)."""
    document = answer.json() or {}
    client_id = text_in(document, "client_id")
    if answer.is_outage:
        raise ConnectFailed(
            reason=f"the registration at {place_of(server.issuer)} is out of order: HTTP {answer.status}",
            http_status=answer.status,
        )
    if not answer.is_success or client_id is None or "error" in document:
        refused = read_token_answer(answer, now=now, secrets=secrets)
        raise AuthFailed(reason=f"{place_of(server.issuer)} did not register us: {refused}; oauth.clientId may be set")
    secret = text_in(document, "client_secret")
    method = text_in(document, "token_endpoint_auth_method")
    if secret is None and method not in (None, "none"):
        raise AuthFailed(reason=f"{place_of(server.issuer)} registered us for {str(method)[:40]} without a secret")
    return ClientIdentity(
        client_id=client_id,
        kind=REGISTERED,
        client_secret=secret,
        auth_method=method,
        issuer=server.issuer,
        redirect_uri=redirect_uri,
        secret_expires_at=number_in(document, "client_secret_expires_at") or None,
    )
