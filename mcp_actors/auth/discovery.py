"""Owns finding the authorization server of an MCP server: which documents are asked for, in which order, and whether
what they say may be believed. Pure.

What this is not: fetching (`fetcher`), nor the choice of a client identity (`identity`).

::

    resource metadata   1. the URL of the challenge, exactly (fault 52)   2. well-known + path   3. at the root
    none of them        the server's own origin is the authorization server (2025-03-26, D21)
    server metadata     issuer with a path: RFC 8414 inserted, OIDC inserted, OIDC appended; else the two root forms
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp_actors.auth.messages import Purpose, WebRequest, text_in, texts_in
from mcp_actors.auth.urls import canonical_resource, check_url, covers, is_same_origin, place_of, same_issuer
from mcp_actors.errors import AuthFailed, ConnectFailed
from mcp_actors.origins import origin_of
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.auth.messages import Asking, WebAnswer
    from mcp_actors.jsontypes import Json

__all__ = [
    "AuthServer",
    "Discovery",
    "discover",
    "fetch_server",
    "read_server",
    "resource_metadata_urls",
    "server_metadata_urls",
]

RESOURCE_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
SERVER_WELL_KNOWN: Final = "/.well-known/oauth-authorization-server"
OIDC_WELL_KNOWN: Final = "/.well-known/openid-configuration"
# Servers that a resource may name and that are looked at.
MAX_SERVERS: Final = 4


@frozen
class AuthServer:
    """One authorization server as it describes itself. Every URL in it was checked."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_endpoint: str | None = None
    scopes: tuple[str, ...] | None = None
    # None: it does not say, which means that it does not support PKCE (D05).
    challenge_methods: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = None
    # What it takes DPoP proofs signed with; None: it does not say.
    dpop_algorithms: tuple[str, ...] | None = None
    takes_client_documents: bool = False
    # It promises `iss` in every redirect (D08).
    promises_iss: bool = False
    # It published nothing: the paths of 2025-03-26 are guessed (D21).
    is_guess: bool = False


@frozen
class Discovery:
    """What was found for one MCP server. `resource` is byte for byte what was published (fault 60)."""

    resource: str
    server: AuthServer
    # What the resource says it needs; None: it does not say.
    scopes: tuple[str, ...] | None = None
    is_dpop_required: bool = False
    # The server's document was named by configuration: its whole catalogue may be requested (S259).
    is_configured: bool = False


def resource_metadata_urls(server_url: str, announced: str | None) -> tuple[str, ...]:
    """Where resource metadata may lie, in order.

    Source:
        RFC 9728, section 3.1; MCP, authorization; D01, faults 51 and 52.
    """
    origin, path = origin_of(server_url), urlsplit(server_url).path.rstrip("/")
    places = [announced] if announced else []
    places += [f"{origin}{RESOURCE_WELL_KNOWN}{path}", f"{origin}{RESOURCE_WELL_KNOWN}"]
    return tuple(dict.fromkeys(places))


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where an issuer's metadata may lie, in order.

    Source:
        MCP, authorization, "Authorization Server Metadata Discovery"; RFC 8414, section 3.1; D02, fault 53.
    """
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    if not path:
        return (f"{origin}{SERVER_WELL_KNOWN}", f"{origin}{OIDC_WELL_KNOWN}")
    return (
        f"{origin}{SERVER_WELL_KNOWN}{path}",
        f"{origin}{OIDC_WELL_KNOWN}{path}",
        f"{origin}{path}{OIDC_WELL_KNOWN}",
    )


def discover(
    server_url: str,
    *,
    announced: str | None = None,
    metadata_url: str | None = None,
    issuer: str | None = None,
    is_modern: bool = False,
    revision: str | None = None,
) -> Asking[Discovery]:
    """Find the authorization server of `server_url`.

    Args:
        server_url: the MCP endpoint.
        announced: `resource_metadata` of the challenge.
        metadata_url: the authorization server's document, by configuration; bypasses the rest (S259).
        issuer: the only issuer that will do, by configuration (D18, S278).
        is_modern: the server speaks the modern era, where nothing is guessed.
        revision: protocol revision, told to servers of 2025-03-26.

    Raises:
        AuthFailed: nothing usable was found, or what was found must not be believed; the text names the document.
        ConnectFailed: a server is out of order for now.

    Source:
        D01-D04, D21; S258, S259, S278; faults 51-54.
    """
    if metadata_url is not None:
        server = yield from _fetch_configured(check_url(metadata_url, "oauth.authServerMetadataUrl"))
        _check_pin(server.issuer, issuer)
        return Discovery(canonical_resource(server_url), server, server.scopes, is_configured=True)
    document = yield from _fetch_resource(server_url, announced)
    if document is None:
        origin = str(origin_of(server_url))
        _check_pin(origin, issuer)
        headers = (("MCP-Protocol-Version", revision),) if revision else ()
        found = yield from fetch_server(origin, headers)
        if found is None and is_modern:
            raise AuthFailed(reason="the server asks for a login but publishes no metadata that says where")
        return Discovery(canonical_resource(server_url), found or _guess(origin))
    resource = text_in(document, "resource") or ""
    if not covers(resource, server_url):
        # "the client MUST NOT use" it (RFC 9728, section 3.3).
        other = "another path of the server" if is_same_origin(resource, server_url) else place_of(resource)
        raise AuthFailed(reason=f"the metadata is for another resource ({other}), not for the configured address")
    scopes = texts_in(document, "scopes_supported")
    is_bound = document.get("dpop_bound_access_tokens_required") is True
    issuers = texts_in(document, "authorization_servers") or ()
    if issuer is not None:
        _check_pin(next((each for each in issuers if same_issuer(each, issuer)), ", ".join(issuers)), issuer)
        issuers = (issuer,)
    if not issuers:
        issuers = (str(origin_of(server_url)),)
    for each in issuers[:MAX_SERVERS]:
        found = yield from fetch_server(check_url(each, "the authorization server that the resource names"))
        if found is not None:
            return Discovery(resource, found, scopes, is_bound)
    raise AuthFailed(reason=f"no metadata of the authorization server {place_of(issuers[0])} was found")


def _check_pin(found: str, wanted: str | None) -> None:
    if wanted is not None and not same_issuer(found, wanted):
        raise AuthFailed(
            reason=f"the server names the authorization server {place_of(found)}, but {place_of(wanted)} is configured"
        )


def _get(purpose: Purpose, url: str, headers: tuple[tuple[str, str], ...] = ()) -> Asking[WebAnswer]:
    answer = yield WebRequest(purpose, url, headers=(("Accept", "application/json"), *headers))
    return answer


def _fetch_resource(server_url: str, announced: str | None) -> Asking[dict[str, Json] | None]:
    """The resource's document: the first that is one. None: there is none."""
    outage: int | None = None
    if announced is not None:
        check_url(announced, "the resource metadata URL of the challenge")
    for url in resource_metadata_urls(server_url, announced):
        answer = yield from _get(Purpose.RESOURCE_METADATA, url)
        document = answer.json() if answer.is_success else None
        # A page for every path is no metadata.
        if document is not None and ("resource" in document or "authorization_servers" in document):
            return document
        outage = answer.status if answer.is_outage else outage
    if outage is not None:
        raise ConnectFailed(reason=f"the resource metadata cannot be had now: HTTP {outage}", http_status=outage)
    return None


def fetch_server(issuer: str, headers: tuple[tuple[str, str], ...] = ()) -> Asking[AuthServer | None]:
    """Fetch the metadata of `issuer`. None: it publishes none.

    Raises:
        AuthFailed: all that it publishes is of another issuer, or is unusable.
        ConnectFailed: it is out of order for now.

    Source:
        RFC 8414, section 3.3: the issuer "MUST be identical"; D02, D03, fault 54.
    """
    outage: int | None = None
    other: str | None = None
    for url in server_metadata_urls(issuer):
        answer = yield from _get(Purpose.SERVER_METADATA, url, headers)
        document = answer.json() if answer.is_success else None
        named = None if document is None else text_in(document, "issuer")
        if document is not None and named is not None:
            if same_issuer(named, issuer):
                return read_server(document, url)
            other = named
        outage = answer.status if answer.is_outage else outage
    if other is not None:
        raise AuthFailed(reason=f"the metadata of {place_of(issuer)} says that it is of {place_of(other)}: not used")
    if outage is not None:
        raise ConnectFailed(reason=f"{place_of(issuer)} is out of order: HTTP {outage}", http_status=outage)
    return None


def _fetch_configured(url: str) -> Asking[AuthServer]:
    answer = yield from _get(Purpose.SERVER_METADATA, url)
    if answer.is_outage:
        raise ConnectFailed(reason=f"{place_of(url)} is out of order: HTTP {answer.status}", http_status=answer.status)
    document = answer.json() if answer.is_success else None
    if document is None:
        raise AuthFailed(reason=f"{place_of(url)} is no metadata (HTTP {answer.status})")
    return read_server(document, url)


def read_server(document: Mapping[str, Json], url: str) -> AuthServer:
    """Read an authorization server's document that came from `url`.

    Raises:
        AuthFailed: an endpoint is missing, relative, or must not be used; names the document and the member.
    """

    def endpoint(key: str) -> str | None:
        value = text_in(document, key)
        return None if value is None else check_url(value, f"{key} of {place_of(url)}")

    issuer, token_endpoint = text_in(document, "issuer"), endpoint("token_endpoint")
    if token_endpoint is None or issuer is None:
        missing = "issuer" if issuer is None else "token_endpoint"
        raise AuthFailed(reason=f"{place_of(url)} has no {missing}")
    return AuthServer(
        issuer=issuer,
        token_endpoint=token_endpoint,
        authorization_endpoint=endpoint("authorization_endpoint"),
        registration_endpoint=endpoint("registration_endpoint"),
        revocation_endpoint=endpoint("revocation_endpoint"),
        device_endpoint=endpoint("device_authorization_endpoint"),
        scopes=texts_in(document, "scopes_supported"),
        challenge_methods=texts_in(document, "code_challenge_methods_supported"),
        auth_methods=texts_in(document, "token_endpoint_auth_methods_supported"),
        dpop_algorithms=texts_in(document, "dpop_signing_alg_values_supported"),
        takes_client_documents=document.get("client_id_metadata_document_supported") is True,
        promises_iss=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _guess(origin: str) -> AuthServer:
    """The paths that 2025-03-26 falls back to."""
    check_url(origin, "the server")
    return AuthServer(
        issuer=origin,
        token_endpoint=f"{origin}/token",
        authorization_endpoint=f"{origin}/authorize",
        registration_endpoint=f"{origin}/register",
        is_guess=True,
    )
