"""Owns what configuration says about signing in to one server: the block ``oauth`` of its entry. Pure.

What this is not: reading files; a key or an assertion that lies in a file is read when it is used.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.auth.messages import texts_in
from mcp_actors.auth.urls import check_url
from mcp_actors.config.expand import expand
from mcp_actors.config.settings import read_callback_port
from mcp_actors.errors import AuthFailed, ConfigError
from mcp_actors.jsontypes import Json  # noqa: TC001
from mcp_actors.origins import is_loopback
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AuthOptions", "DpopUse", "GrantKind", "read_options"]


class GrantKind(enum.StrEnum):
    """How a token is obtained."""

    AUTHORIZATION_CODE = "authorization_code"
    DEVICE_CODE = "device_code"
    CLIENT_CREDENTIALS = "client_credentials"
    # A workload's platform vouches for it (D20).
    WORKLOAD = "workload_identity"
    # A company's identity provider vouches for the person (D18).
    XAA = "xaa"

    @property
    def is_silent(self) -> bool:
        """Whether no person is needed at the server's own login page."""
        return self not in (GrantKind.AUTHORIZATION_CODE, GrantKind.DEVICE_CODE)


class DpopUse(enum.StrEnum):
    """When tokens are bound to a key of ours: as the server asks, whatever it says, never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@frozen
class AuthOptions:
    """What is configured for one server. Everything may be absent: then it is discovered."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    # An https URL that answers with our client metadata (CIMD).
    client_metadata_url: str | None = None
    callback_port: int | None = None
    redirect_uri: str | None = None
    # The authorization server's document; bypasses discovery (S259).
    metadata_url: str | None = None
    # What is requested, whatever servers say; None: as they say (S260).
    scopes: tuple[str, ...] | None = None
    # The only authorization server that will do.
    issuer: str | None = None
    grant: GrantKind = GrantKind.AUTHORIZATION_CODE
    # How the client proves itself at the token endpoint; None: as the server takes it.
    auth_method: str | None = None
    private_key: str | None = field(default=None, repr=False)
    private_key_file: str | None = None
    signing_algorithm: str | None = None
    # File of the platform's token, read anew for every use (D20).
    assertion_file: str | None = None
    dpop: DpopUse = DpopUse.AUTO
    # False: a server that does not say that it supports PKCE is used all the same (S243).
    needs_pkce: bool = True
    # Addresses of private networks may be asked (E01).
    allows_private: bool = False

    @property
    def fixed_redirect_uri(self) -> str | None:
        """Where people must be led back to, by configuration: exactly that (fault 65); None: anywhere."""
        if self.redirect_uri is not None:
            return self.redirect_uri
        return None if self.callback_port is None else f"http://localhost:{self.callback_port}/callback"

    def identity_hash(self) -> str:
        """Which of our identities this is: two configurations share a login only when it is the same one."""
        parts = (self.grant, self.client_id, self.client_metadata_url, self.issuer, self.metadata_url)
        return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:16]


# Key in the file -> attribute, for plain texts.
_TEXTS: Final[Mapping[str, str]] = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "clientMetadataUrl": "client_metadata_url",
    "redirectUri": "redirect_uri",
    "authServerMetadataUrl": "metadata_url",
    "issuer": "issuer",
    "tokenEndpointAuthMethod": "auth_method",
    "privateKey": "private_key",
    "privateKeyFile": "private_key_file",
    "signingAlgorithm": "signing_algorithm",
    "assertionFile": "assertion_file",
}
_TRUTHS: Final[Mapping[str, tuple[str, bool]]] = {
    "allowMissingPkce": ("needs_pkce", False),
    "allowPrivateNetwork": ("allows_private", True),
}
_KINDS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "grant": ("grant", GrantKind),
    "dpop": ("dpop", DpopUse),
}
_URLS: Final = ("client_metadata_url", "metadata_url", "issuer")
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")


def read_options(raw: Json, environ: Mapping[str, str], *, server: str | None = None) -> AuthOptions:
    """Read the block ``oauth``. Unknown keys are left alone.

    Args:
        raw: as written; None: no such block.
        environ: variable name -> text, for ``${VAR}`` and for ``MCP_OAUTH_CALLBACK_PORT``.
        server: name of the server, for errors.

    Raises:
        ConfigError: a value cannot be used; names the key, never the value of a secret.

    Source:
        S243, S247, S259-S261, S279.
    """
    block: Mapping[str, Json] = raw if isinstance(raw, Mapping) else {}
    found: dict[str, object] = {}

    def fault(key: str, reason: str) -> ConfigError:
        return ConfigError(server=server, key=f"oauth.{key}", reason=reason)

    for key, name in _TEXTS.items():
        value = block.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise fault(key, "must be a text")
        expansion = expand(value, environ)
        if expansion.unset:
            raise fault(key, f"the variable {expansion.unset[0]} is not set")
        found[name] = expansion.text or None
    for key, (name, meaning) in _TRUTHS.items():
        if block.get(key) is True:
            found[name] = meaning
    for key, (name, kind) in _KINDS.items():
        value = block.get(key)
        if value is not None:
            try:
                found[name] = kind(str(value))
            except ValueError:
                raise fault(key, f"{value!r} is not known") from None
    if block.get("xaa") is True:
        found["grant"] = GrantKind.XAA
    found["scopes"] = texts_in(block, "scopes") or None
    port = block.get("callbackPort")
    if port is None:
        port = read_callback_port(environ)
    if port is not None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise fault("callbackPort", "must be a port number")
        found["callback_port"] = port
    options = AuthOptions(**found)  # type: ignore[arg-type]
    _check(options, fault)
    return options


def _check(options: AuthOptions, fault: Callable[[str, str], ConfigError]) -> None:
    names = {attribute: key for key, attribute in _TEXTS.items()}
    for name in _URLS:
        value = getattr(options, name)
        if value is not None:
            try:
                check_url(value, f"oauth.{names[name]}")
            except AuthFailed as exc:
                raise fault(names[name], exc.reason) from None
    if options.auth_method is not None and options.auth_method not in _METHODS:
        raise fault("tokenEndpointAuthMethod", f"must be one of {', '.join(_METHODS)}")
    if options.redirect_uri is not None:
        from urllib.parse import urlsplit

        parts = urlsplit(options.redirect_uri)
        if parts.scheme != "http" or not is_loopback(parts.hostname or "") or parts.query or parts.fragment:
            raise fault("redirectUri", "must be an http URL on this machine, without query")
