"""Owns the record of one login: tokens and what it takes to renew and revoke them, one value that is stored whole.

What this is not: storing it (`store`). Rotation of a refresh token must reach the store in one write, hence one record.

A record is found by server URL and identity (`slot_of`); it names its issuer, and what it holds goes to that issuer and
that server only (D11, D14, fault 54). A server's name plays no part: another server of the same name cannot read it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import field

from mcp_actors.auth.discovery import AuthServer  # noqa: TC001 - cattrs reads the fields' types
from mcp_actors.auth.identity import ClientIdentity  # noqa: TC001
from mcp_actors.auth.options import GrantKind  # noqa: TC001
from mcp_actors.auth.tokens import Tokens  # noqa: TC001
from mcp_actors.auth.urls import canonical_resource
from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode_object, encode
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from cattrs import Converter

    from mcp_actors.auth.options import AuthOptions

__all__ = ["Credentials", "decode_credentials", "encode_credentials", "slot_of"]

VERSION = 1


@frozen
class Credentials:
    """One login. Tokens, secret and keys are left out of its repr."""

    server_url: str
    resource: str
    server: AuthServer
    grant: GrantKind
    # None once they were revoked or died; the registration stays.
    tokens: Tokens | None
    # None: no client (workload identity).
    identity: ClientIdentity | None = None
    # What was requested, in sum.
    scope: tuple[str, ...] = ()
    # PEM of the key that the tokens are bound to.
    dpop_key: str | None = field(default=None, repr=False)

    @property
    def issuer(self) -> str:
        """Whose they are."""
        return self.server.issuer

    @property
    def granted(self) -> tuple[str, ...]:
        """What the token may do, as far as is known."""
        said = None if self.tokens is None else self.tokens.scope
        return self.scope if said is None else said


def slot_of(server_url: str, options: AuthOptions) -> str:
    """The name under which a login is stored: readable host, and a hash of server URL and identity (S251)."""
    resource = canonical_resource(server_url)
    digest = hashlib.sha256(f"{resource}\0{options.identity_hash()}".encode()).hexdigest()[:32]
    host = "".join(char if char.isalnum() or char in ".-" else "-" for char in resource.partition("://")[2])
    return f"{host[:40].strip('.-')}.{digest}"


@cache
def _converter() -> Converter:
    from cattrs import Converter

    return Converter()


def encode_credentials(credentials: Credentials) -> bytes:
    """As bytes to store: a secret."""
    document: dict[str, Any] = _converter().unstructure(credentials)
    return encode({"version": VERSION, **document})


def decode_credentials(data: bytes) -> Credentials | None:
    """Read what was stored. None: it is damaged, or of a version to come."""
    from cattrs import BaseValidationError

    try:
        document = decode_object(data)
        if document.get("version") != VERSION:
            return None
        made: Credentials = _converter().structure(document, Credentials)
    except (RemoteProtocolError, BaseValidationError, ValueError, TypeError):
        return None
    return made
