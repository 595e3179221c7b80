"""Owns signing in with an authorization code, from a server's demand to the record of a login: one pure state machine.

What this is not: fetching, opening a browser, listening (`driving`, `loopback`), renewing and revoking (`upkeep`).

::

    discover -> settle who we are (register) -> scope -> [visit] -> state, iss, error, code -> token -> record

It is a generator: it yields `WebRequest`s and one `Visit`, and is sent answers and the URL that the visit led back to.
What may not be sent is not built: the order of the checks is the order of the lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from attrs import field

from mcp_actors.auth.client_auth import choose_method
from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.discovery import discover
from mcp_actors.auth.grants import ask_token, code_form
from mcp_actors.auth.identity import REGISTERED, choose_identity
from mcp_actors.auth.jwt import OWN_ALGORITHMS, SigningKey
from mcp_actors.auth.messages import Visit
from mcp_actors.auth.options import AuthOptions, DpopUse, GrantKind
from mcp_actors.auth.pkce import make_pkce
from mcp_actors.auth.presentation import Bearer, Dpop
from mcp_actors.auth.registration import register
from mcp_actors.auth.scopes import first_scope, stepped_scope
from mcp_actors.auth.tokens import Refused, Tokens
from mcp_actors.auth.urls import check_url, place_of
from mcp_actors.errors import AuthFailed, ConnectFailed
from mcp_actors.sent_secrets import longest_first, starred
from mcp_actors.shown import one_line, visible
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.discovery import AuthServer, Discovery
    from mcp_actors.auth.identity import ClientIdentity
    from mcp_actors.auth.messages import Asking, Flow, Sources
    from mcp_actors.auth.presentation import Presentation

__all__ = [
    "Errand",
    "authorization_url",
    "check_pkce",
    "choose_presentation",
    "credentials_of",
    "find",
    "is_dpop_used",
    "log_in",
    "read_landing",
    "refusal_error",
    "settle_identity",
    "wanted_scope",
]


@frozen
class Errand:
    """What one login starts from."""

    server_url: str
    options: AuthOptions
    sources: Sources = field(repr=False)
    # Where the person is led back to; empty for grants without a visit.
    redirect_uri: str = ""
    # What the server demanded; None: nobody asked it.
    demand: Demand | None = None
    # The last login, for its registration and its scopes.
    previous: Credentials | None = None
    is_modern: bool = False
    revision: str | None = None


def find(errand: Errand) -> Asking[Discovery]:
    """Find the authorization server; see `discovery`."""
    demand = errand.demand
    return discover(
        errand.server_url,
        announced=None if demand is None else demand.resource_metadata,
        metadata_url=errand.options.metadata_url,
        issuer=errand.options.issuer,
        is_modern=errand.is_modern,
        revision=errand.revision,
    )


def is_dpop_used(errand: Errand, found: Discovery) -> bool:
    """Whether the tokens shall be bound to a key of ours."""
    use = errand.options.dpop
    if use is DpopUse.AUTO:
        is_demanded = errand.demand is not None and errand.demand.is_dpop_wanted
        return found.is_dpop_required or is_demanded
    return use is DpopUse.ALWAYS


def choose_presentation(errand: Errand, found: Discovery) -> Presentation:
    """Bearer, or DPoP with a new key that signs as the server asks.

    Raises:
        AuthFailed: it takes no proof that we can make.

    Source:
        RFC 9449, section 5.1; D19.
    """
    if not is_dpop_used(errand, found):
        return Bearer()
    taken = found.server.dpop_algorithms
    algorithm = next((each for each in OWN_ALGORITHMS if not taken or each in taken), None)
    if algorithm is None:
        raise AuthFailed(
            reason=f"{place_of(found.server.issuer)} takes none of our DPoP proofs, which are signed with "
            + ", ".join(OWN_ALGORITHMS)
        )
    return Dpop(SigningKey.generate(algorithm), errand.sources)


def log_in(errand: Errand) -> Flow[Credentials]:
    """Sign in. Yields requests, and one visit (two where the server had forgotten our registration).

    Returns:
        The record of the login; nothing is stored here, so the old one stays until this one works (S267).

    Raises:
        AuthFailed: it was refused, or something must not be believed.
        ConnectFailed: a server is out of order for now.

    Source:
        MCP, authorization; D05-D13; S243, S258-S267.
    """
    found = yield from find(errand)
    check_pkce(found.server, errand.options)
    presentation = choose_presentation(errand, found)
    identity = yield from settle_identity(errand, found)
    result = yield from _authorize(errand, found, identity, presentation)
    if isinstance(result, Refused) and result.is_client_unknown and _is_old_registration(errand, identity):
        # Fault 67: the server was set up anew; once.
        identity = yield from _register(errand, found)
        result = yield from _authorize(errand, found, identity, presentation)
    if isinstance(result, Refused):
        raise refusal_error(result, found.server)
    return credentials_of(errand, found, result, GrantKind.AUTHORIZATION_CODE, identity, presentation)


def check_pkce(server: AuthServer, options: AuthOptions) -> None:
    """Source: "If code_challenge_methods_supported is absent ... clients MUST refuse to proceed" (D05)."""
    if server.authorization_endpoint is None:
        raise AuthFailed(reason=f"{place_of(server.issuer)} has no authorization_endpoint: people cannot sign in there")
    if options.needs_pkce and not server.is_guess and "S256" not in (server.challenge_methods or ()):
        raise AuthFailed(
            reason=f"{place_of(server.issuer)} does not say that it supports PKCE with S256; "
            "oauth.allowMissingPkce would sign in all the same"
        )


def settle_identity(errand: Errand, found: Discovery) -> Asking[ClientIdentity]:
    """Settle who we are, by registering where that is what is left."""
    previous = None if errand.previous is None else errand.previous.identity
    identity = choose_identity(
        found.server,
        errand.options,
        redirect_uri=errand.redirect_uri,
        remembered=previous,
        now=errand.sources.now(),
    )
    if identity is None:
        identity = yield from _register(errand, found)
    choose_method(identity, found.server)  # refused early, before a person is sent anywhere
    return identity


def _register(errand: Errand, found: Discovery) -> Asking[ClientIdentity]:
    identity = yield from register(
        found.server,
        redirect_uri=errand.redirect_uri,
        scope=wanted_scope(errand, found),
        now=errand.sources.now(),
    )
    return identity


def _is_old_registration(errand: Errand, identity: ClientIdentity) -> bool:
    return identity.kind == REGISTERED and errand.previous is not None and errand.previous.identity == identity


def wanted_scope(errand: Errand, found: Discovery) -> tuple[str, ...]:
    """What to request: see `scopes`. A step-up keeps what was requested before, with the same server."""
    demand, previous = errand.demand, errand.previous
    demanded = None if demand is None else demand.scope
    pinned = errand.options.scopes
    if demand is not None and demand.is_step_up and previous is not None and previous.issuer == found.server.issuer:
        return stepped_scope(previous.scope or previous.granted, demanded) if pinned is None else pinned
    return first_scope(found, pinned=pinned, demanded=demanded)


def credentials_of(
    errand: Errand,
    found: Discovery,
    tokens: Tokens,
    grant: GrantKind,
    identity: ClientIdentity | None,
    presentation: Presentation,
) -> Credentials:
    """What is kept of a grant, whichever way it was had."""
    return Credentials(
        server_url=errand.server_url,
        resource=found.resource,
        server=found.server,
        grant=grant,
        tokens=tokens,
        identity=identity,
        scope=wanted_scope(errand, found),
        dpop_key=presentation.key_pem(),
    )


def _authorize(
    errand: Errand, found: Discovery, identity: ClientIdentity, presentation: Presentation
) -> Flow[Tokens | Refused]:
    pkce = make_pkce(errand.sources)
    state = errand.sources.token(32)
    url = authorization_url(
        found,
        identity,
        redirect_uri=errand.redirect_uri,
        scope=wanted_scope(errand, found),
        state=state,
        challenge=pkce.challenge,
    )
    landing = yield Visit(url, errand.redirect_uri)
    assert isinstance(landing, str)
    code = read_landing(landing, found.server, state=state)
    form = code_form(code, verifier=pkce.verifier, redirect_uri=errand.redirect_uri, resource=found.resource)
    result = yield from ask_token(
        found.server, form, identity=identity, presentation=presentation, sources=errand.sources
    )
    return result


def authorization_url(
    found: Discovery,
    identity: ClientIdentity,
    *,
    redirect_uri: str,
    scope: tuple[str, ...],
    state: str,
    challenge: str,
) -> str:
    """The URL to send a person to.

    Raises:
        AuthFailed: it must not be opened (fault 105).

    Source:
        RFC 6749, 4.1.1; RFC 7636, 4.3; RFC 8707, 2: `resource` as published (S262, D06, fault 60).
    """
    endpoint = check_url(found.server.authorization_endpoint or "", "authorization_endpoint")
    fields = {
        "response_type": "code",
        "client_id": identity.client_id,
        "redirect_uri": redirect_uri,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": state,
        "resource": found.resource,
    }
    if not found.resource:  # an identity provider is no resource
        del fields["resource"]
    if scope:
        fields["scope"] = " ".join(scope)
    if "offline_access" in scope:
        # OpenID Connect Core, section 11: it is ignored without.
        fields["prompt"] = "consent"
    return endpoint + ("&" if urlsplit(endpoint).query else "?") + urlencode(fields)


def read_landing(url: str, server: AuthServer, *, state: str) -> str:
    """Take the code out of the URL that a visit led back to.

    Raises:
        AuthFailed: it is not the answer to our visit, not of this server, or it says no.

    Source:
        RFC 9207, section 2.4, "simple string comparison"; MCP 2026-07-28; D07, D08, S266.

    ::

        promised  there   then
        yes       yes     compare
        yes       no      refuse
        no        yes     compare
        no        no      go on
    """
    try:
        pairs = parse_qsl(urlsplit(url.strip()).query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise AuthFailed(reason="the redirect is no usable URL") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise AuthFailed(reason="the redirect repeats a parameter: not used")
    if not state or fields.get("state") != state:
        raise AuthFailed(reason="the redirect does not belong to this sign-in (state differs): start it again")
    issuer = fields.get("iss")
    if issuer is None and server.promises_iss:
        raise AuthFailed(reason=f"the redirect does not say who it is from, which {place_of(server.issuer)} promises")
    # Before the code is used, and before the text of an error is shown.
    if issuer is not None and issuer != server.issuer:
        raise AuthFailed(reason=f"the redirect is from {place_of(issuer)}, not from {place_of(server.issuer)}")
    if "error" in fields:
        said = ": ".join(text for text in (fields["error"], fields.get("error_description")) if text)
        known = longest_first((state, fields.get("code", "")))
        raise AuthFailed(reason=f"the sign-in was not granted: {one_line(starred(visible(said), known))}")
    if not fields.get("code"):
        raise AuthFailed(reason="the redirect has no code")
    return fields["code"]


def refusal_error(refused: Refused, server: AuthServer) -> AuthFailed | ConnectFailed:
    """The error for a token endpoint that said no."""
    text = f"{place_of(server.issuer)} gave no token: {refused}"
    if refused.is_passing:
        return ConnectFailed(reason=text, http_status=refused.status or None)
    return AuthFailed(reason=text)
