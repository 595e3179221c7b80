"""Owns how a token is presented: as a bearer's, or bound to a key with a fresh proof for every attempt (DPoP).

What this is not: getting the token (`grants`), nor proving which client we are (`client_auth`): all combine freely.

Rules. (1) A proof is made for one attempt of one request and never sent twice. (2) The newest nonce of each origin is
remembered; an authorization server's and a resource server's are different things (RFC 9449, sections 8 and 9).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from attrs import field

from mcp_actors.auth.jwt import SigningKey
from mcp_actors.auth.pkce import b64url
from mcp_actors.origins import origin_of
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.auth.messages import Sources
    from mcp_actors.auth.tokens import Tokens
    from mcp_actors.jsontypes import Json
    from mcp_actors.origins import Origin

__all__ = ["Bearer", "Dpop", "Presentation", "make_presentation"]

# Origins whose nonces are kept: an authorization server, a resource server, and where they moved to.
MAX_NONCES: Final = 8
MAX_NONCE_CHARS: Final = 1024

Headers = list[tuple[str, str]]


class Presentation(Protocol):
    """One way to present a token."""

    def token_request(self, url: str) -> Headers:
        """Headers of a token request: what the token shall be bound to."""
        ...

    def headers(self, tokens: Tokens, method: str, url: str) -> Headers:
        """Headers of one attempt of a request."""
        ...

    def take_nonce(self, url: str, headers: Mapping[str, str]) -> bool:
        """Remember the nonce that came with an answer; returns whether it is news for that origin."""
        ...

    def key_pem(self) -> str | None:
        """The private key that tokens are bound to, to be stored with them; None when they are not."""
        ...


@frozen
class Bearer:
    """Whoever has the token may use it (RFC 6750)."""

    def token_request(self, url: str) -> Headers:
        """Nothing."""
        del url
        return []

    def headers(self, tokens: Tokens, method: str, url: str) -> Headers:
        """The token. Odd token types are bearer tokens too (S264)."""
        del method, url
        return [("Authorization", f"Bearer {tokens.access_token}")]

    def take_nonce(self, url: str, headers: Mapping[str, str]) -> bool:
        """Nothing."""
        del url, headers
        return False

    def key_pem(self) -> str | None:
        """None."""
        return None


@define(eq=False)
class Dpop:
    """Only who has the key may use the token (RFC 9449, D19)."""

    _key: SigningKey
    _sources: Sources = field(repr=False)
    # Maps origin -> newest nonce, oldest origin first; at most MAX_NONCES.
    _nonces: dict[Origin, str] = field(factory=dict, repr=False)

    def token_request(self, url: str) -> Headers:
        """A proof without a token."""
        return [("DPoP", self._proof("POST", url, None))]

    def headers(self, tokens: Tokens, method: str, url: str) -> Headers:
        """The token and a fresh proof; a server that bound nothing gets its bearer token."""
        if tokens.token_type.lower() != "dpop":
            return Bearer().headers(tokens, method, url)
        proof = self._proof(method, url, tokens.access_token)
        return [("Authorization", f"DPoP {tokens.access_token}"), ("DPoP", proof)]

    def take_nonce(self, url: str, headers: Mapping[str, str]) -> bool:
        """Remember it, if it can be sent."""
        nonce = headers.get("dpop-nonce")
        if not nonce or len(nonce) > MAX_NONCE_CHARS or not nonce.isascii() or not nonce.isprintable():
            return False
        origin = origin_of(url)
        is_news = self._nonces.pop(origin, None) != nonce
        self._nonces[origin] = nonce
        while len(self._nonces) > MAX_NONCES:
            del self._nonces[next(iter(self._nonces))]
        return is_news

    def key_pem(self) -> str | None:
        """The key."""
        return self._key.pem()

    def _proof(self, method: str, url: str, access_token: str | None) -> str:
        # "htu: ... without query and fragment parts" (RFC 9449, section 4.2).
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        claims: dict[str, Json] = {
            "jti": self._sources.token(16),
            "htm": method,
            "htu": urlunsplit((parts.scheme, host, parts.path, "", "")),
            "iat": int(self._sources.now()),
        }
        if access_token is not None:
            claims["ath"] = b64url(hashlib.sha256(access_token.encode()).digest())
        nonce = self._nonces.get(origin_of(url))
        if nonce is not None:
            claims["nonce"] = nonce
        return self._key.sign({"typ": "dpop+jwt", "jwk": dict(self._key.public_jwk())}, claims)


def make_presentation(key_pem: str | None, sources: Sources) -> Presentation:
    """The presentation of tokens that were stored with this key; None: with none."""
    return Bearer() if key_pem is None else Dpop(SigningKey.load(key_pem), sources)
