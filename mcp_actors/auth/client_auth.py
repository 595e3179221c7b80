"""Owns how our client proves itself at a token endpoint: not at all, with a secret, or with a signed assertion. Pure.

What this is not: which client we are (`identity`), nor what we ask for (`grants`).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mcp_actors.auth.jwt import SigningKey
from mcp_actors.errors import AuthFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.identity import ClientIdentity
    from mcp_actors.auth.messages import Sources
    from mcp_actors.jsontypes import Json

__all__ = ["ASSERTION_TYPE", "METHODS", "authenticate", "choose_method"]

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# Seconds that an assertion lives: enough for a clock that is a little wrong.
ASSERTION_LIFE: Final = 120

Headers = tuple[tuple[str, str], ...]
Form = dict[str, str | None]


def _none(identity: ClientIdentity, server: AuthServer, sources: Sources) -> tuple[Headers, Form]:
    del server, sources
    return (), {"client_id": identity.client_id}


def _basic(identity: ClientIdentity, server: AuthServer, sources: Sources) -> tuple[Headers, Form]:
    # "encoded using the application/x-www-form-urlencoded encoding algorithm" (RFC 6749, section 2.3.1).
    del server, sources
    pair = f"{quote(identity.client_id, safe='')}:{quote(identity.client_secret or '', safe='')}"
    # The id is repeated in the form, which is allowed: the official Python SDK's server finds its client by that alone.
    return (("Authorization", "Basic " + base64.b64encode(pair.encode()).decode()),), {"client_id": identity.client_id}


def _post(identity: ClientIdentity, server: AuthServer, sources: Sources) -> tuple[Headers, Form]:
    del server, sources
    return (), {"client_id": identity.client_id, "client_secret": identity.client_secret}


def _signed(identity: ClientIdentity, server: AuthServer, sources: Sources) -> tuple[Headers, Form]:
    """Source: RFC 7523, section 3; MCP client credentials extension: aud is the issuer (D17)."""
    key = SigningKey.load(identity.private_key or "", identity.signing_algorithm)
    now = int(sources.now())
    claims: dict[str, Json] = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": server.issuer,
        "iat": now,
        "exp": now + ASSERTION_LIFE,
        "jti": sources.token(16),
    }
    return (), {
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": key.sign({"typ": "JWT"}, claims),
    }


METHODS: Final[Mapping[str, Callable[[ClientIdentity, AuthServer, Sources], tuple[Headers, Form]]]] = {
    "none": _none,
    "client_secret_basic": _basic,
    "client_secret_post": _post,
    "private_key_jwt": _signed,
}


def choose_method(identity: ClientIdentity, server: AuthServer) -> str:
    """How this client proves itself there: as it was registered, else the best that both can.

    Raises:
        AuthFailed: it was registered for something that we cannot do.

    Source:
        D16; RFC 8414, section 2: a server that does not say takes client_secret_basic.
    """
    if identity.auth_method is not None:
        if identity.auth_method not in METHODS:
            raise AuthFailed(reason=f"the client was registered for {identity.auth_method[:40]}, which we cannot do")
        return identity.auth_method
    if identity.private_key is not None:
        return "private_key_jwt"
    if identity.client_secret is None:
        return "none"
    taken = server.auth_methods or ("client_secret_basic",)
    return next((name for name in ("client_secret_basic", "client_secret_post") if name in taken), "client_secret_post")


def authenticate(identity: ClientIdentity, server: AuthServer, sources: Sources) -> tuple[Headers, Form]:
    """The headers and form fields with which this client proves itself in one request."""
    return METHODS[choose_method(identity, server)](identity, server, sources)
