"""Owns signing in by the company (XAA, enterprise-managed authorization): one login at its identity provider opens
every server that trusts that provider (S270, S271).

What this is not: ordinary OAuth, and never a way into it: where this fails, nothing else is tried (S280).

::

    leg 0   the person signs in at the identity provider, once: an ID token          (S272)
    leg 1   the provider exchanges it for an ID-JAG, for one authorization server    (S273-S275)
    leg 2   that server takes the ID-JAG for an access token, without a page         (S276, S277)

The ID-JAG goes to the configured issuer's token endpoint and to nobody else (S278).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, field

from mcp_actors.auth.client_auth import authenticate
from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.discovery import Discovery, fetch_server
from mcp_actors.auth.driving import drive, drive_visiting
from mcp_actors.auth.flow import (
    authorization_url,
    choose_presentation,
    credentials_of,
    find,
    read_landing,
    refusal_error,
    wanted_scope,
)
from mcp_actors.auth.grants import ask_token, code_form, jwt_bearer_form, token_exchange_form
from mcp_actors.auth.identity import ClientIdentity, configured_identity
from mcp_actors.auth.jwt import read_claims, read_header
from mcp_actors.auth.messages import Purpose, Visit, form_request, number_in, text_in, texts_in
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.pkce import make_pkce
from mcp_actors.auth.presentation import Bearer
from mcp_actors.auth.tokens import Refused, Tokens, jwt_expiry, read_token_answer
from mcp_actors.auth.urls import place_of, same_issuer
from mcp_actors.errors import AuthFailed, AuthRequired
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from mcp_actors.auth.driving import Fetch, SignInPrompter
    from mcp_actors.auth.flow import Errand
    from mcp_actors.auth.messages import Asking, Flow, Sources, WebAnswer
    from mcp_actors.auth.refreshing import Keeper

__all__ = ["Company", "CompanySetup", "company_login", "exchange_id_token", "read_id_jag", "redeem"]

ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
JAG_TYPE: Final = "oauth-id-jag+jwt"
# Seconds before its end at which an ID token is renewed.
SKEW: Final = 60.0
REMEDY: Final = "sign in at the company with: mcp-actors xaa login"


@frozen
class CompanySetup:
    """The company's identity provider, and which client we are there."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    callback_port: int | None = None
    scopes: tuple[str, ...] = ("openid", "offline_access")

    @property
    def identity(self) -> ClientIdentity:
        """Our client at the provider."""
        return ClientIdentity(self.client_id, client_secret=self.client_secret, issuer=self.issuer)


def company_login(setup: CompanySetup, sources: Sources, *, redirect_uri: str) -> Flow[Credentials]:
    """Leg 0: sign in at the identity provider.

    Raises:
        AuthFailed, ConnectFailed: as `flow.log_in`.

    Source:
        OpenID Connect Core, section 3.1; S272.
    """
    server = yield from fetch_server(setup.issuer)
    if server is None or server.authorization_endpoint is None:
        raise AuthFailed(reason=f"{place_of(setup.issuer)} publishes no metadata of an identity provider")
    found = Discovery(resource="", server=server)
    pkce, state = make_pkce(sources), sources.token(32)
    offered = server.scopes
    scope = tuple(each for each in setup.scopes if each == "openid" or offered is None or each in offered)
    url = authorization_url(
        found, setup.identity, redirect_uri=redirect_uri, scope=scope, state=state, challenge=pkce.challenge
    )
    landing = yield Visit(url, redirect_uri)
    assert isinstance(landing, str)
    code = read_landing(landing, server, state=state)
    form = code_form(code, verifier=pkce.verifier, redirect_uri=redirect_uri, resource="")
    result = yield from ask_token(server, form, identity=setup.identity, presentation=Bearer(), sources=sources)
    if isinstance(result, Refused):
        raise refusal_error(result, server)
    if result.id_token is None:
        raise AuthFailed(reason=f"{place_of(setup.issuer)} gave no ID token")
    return Credentials(
        server_url=setup.issuer,
        resource="",
        server=server,
        grant=GrantKind.AUTHORIZATION_CODE,
        tokens=result,
        identity=setup.identity,
        scope=scope,
    )


def exchange_id_token(
    company: Credentials, id_token: str, *, audience: str, resource: str, scope: tuple[str, ...], sources: Sources
) -> Asking[str | Refused]:
    """Leg 1: the provider's ID token for an ID-JAG that is good at `audience` only.

    Source:
        RFC 8693, section 2.1; MCP extension enterprise-managed-authorization; S273, S274.
    """
    form = token_exchange_form(id_token, subject_type=ID_TOKEN, audience=audience, resource=resource, scope=scope)
    identity = company.identity
    headers, extra = authenticate(identity, company.server, sources) if identity else ((), {})
    request = form_request(Purpose.TOKEN, company.server.token_endpoint, {**form, **extra}, headers)
    answer = yield request
    return read_id_jag(answer, audience=audience, now=sources.now(), secrets=request.secrets)


def read_id_jag(answer: WebAnswer, *, audience: str, now: float, secrets: tuple[str, ...]) -> str | Refused:
    """Read the answer to leg 1, and look whether what came can be what was asked for (S274, S275)."""
    result = read_token_answer(answer, now=now, secrets=secrets)
    if isinstance(result, Refused):
        return result
    document = answer.json() or {}
    if text_in(document, "issued_token_type") != ID_JAG:
        return Refused("", "the identity provider gave something else than an ID-JAG")
    header, claims = read_header(result.access_token), read_claims(result.access_token)
    if header is None or claims is None or (text_in(header, "typ") or "").lower() != JAG_TYPE:
        return Refused("", "the identity provider gave something that is no ID-JAG")
    audiences = texts_in(claims, "aud") or ()
    expiry = number_in(claims, "exp")
    if not any(same_issuer(each, audience) for each in audiences):
        return Refused("", "the ID-JAG is for another authorization server")
    if expiry is not None and expiry <= now:
        return Refused("", "the ID-JAG has expired already: is this machine's clock right?")
    return result.access_token


def redeem(errand: Errand, found: Discovery, id_jag: str) -> Asking[Credentials]:
    """Leg 2: the ID-JAG for an access token.

    Raises:
        AuthFailed, ConnectFailed: refused, or out of order.

    Source:
        RFC 7523, section 2.1; S276.
    """
    scope = wanted_scope(errand, found)
    identity = configured_identity(errand.options, found.server.issuer)
    if identity is None:
        raise AuthFailed(reason="xaa needs oauth.clientId: which client we are at the server's authorization server")
    presentation = choose_presentation(errand, found)
    form = jwt_bearer_form(id_jag, resource=found.resource, scope=scope)
    result = yield from ask_token(
        found.server, form, identity=identity, presentation=presentation, sources=errand.sources
    )
    if isinstance(result, Refused):
        raise refusal_error(result, found.server)
    # "repeat legs 1-2": a refresh token would outlive the company's word (S277).
    tokens = evolve(result, refresh_token=None)
    return credentials_of(errand, found, tokens, GrantKind.XAA, identity, presentation)


@define(eq=False)
class Company:
    """The company's login, shared by all servers that take its word."""

    setup: CompanySetup
    _keeper: Keeper = field(repr=False)
    _fetch: Fetch = field(repr=False)
    _sources: Sources = field(repr=False)

    async def log_in(self, prompter: SignInPrompter) -> str:
        """Leg 0; returns the kind of store that keeps it.

        Cancellation:
            Safe; the old login stays until the new one works.
        """
        port = self.setup.callback_port
        fixed = None if port is None else f"http://localhost:{port}/callback"
        async with prompter.receive(fixed=fixed, preferred=None) as reception:
            flow = company_login(self.setup, self._sources, redirect_uri=reception.redirect_uri)
            credentials = await drive_visiting(flow, self._fetch, reception)
        return await self._keeper.adopt(credentials)

    async def adopt(self, credentials: Credentials) -> None:
        """Use a login that was made elsewhere. Cancellation: safe."""
        await self._keeper.adopt(credentials)

    async def newest(self) -> str | None:
        """What tells the login from others; None: there is none, or it did not do. Cancellation: safe."""
        return await self._keeper.newest()

    async def log_out(self) -> bool:
        """Forget the login; returns whether there was one. Cancellation: safe."""
        return await self._keeper.forget() is not None

    async def mint(self, errand: Errand, fetch: Fetch) -> Credentials:
        """Legs 1 and 2, silently.

        Args:
            errand: for which server.
            fetch: for what that server names.

        Raises:
            AuthRequired: the company wants to see the person again.
            AuthFailed: refused; nothing else is tried.
            ConnectFailed: somebody is out of order for now; the company's login stays.

        Cancellation:
            Safe.

        Source:
            S277, S278, S280; D18.
        """
        if errand.options.issuer is None and errand.options.metadata_url is None:
            raise AuthFailed(reason="xaa needs oauth.issuer: the authorization server that may have the company's word")
        found = await drive(find(errand), fetch)
        company, id_token = await self._id_token()
        exchanging = exchange_id_token(
            company,
            id_token,
            audience=found.server.issuer,
            resource=found.resource,
            scope=wanted_scope(errand, found),
            sources=self._sources,
        )
        result = await drive(exchanging, self._fetch)
        if isinstance(result, Refused):
            if result.is_passing:
                raise refusal_error(result, company.server)
            if 400 <= result.status < 500:
                self._keeper.missed = "" if company.tokens is None else company.tokens.access_token
                await self._keeper.adopt(evolve(company, tokens=None))
                raise AuthRequired(reason=f"the company's identity provider said no: {result}", remedy=REMEDY)
            raise refusal_error(result, company.server)
        return await drive(redeem(errand, found, result), fetch)

    async def _id_token(self) -> tuple[Credentials, str]:
        """The company's login with an ID token that has not ended; renews it silently."""
        held = await self._keeper.usable() or await self._keeper.load()
        for is_last in (False, True):
            tokens: Tokens | None = None if held is None else held.tokens
            if held is not None and tokens is not None and tokens.id_token is not None:
                expiry = jwt_expiry(tokens.id_token)
                if expiry is None or self._sources.now() < expiry - SKEW:
                    return held, tokens.id_token
            if tokens is None or is_last:
                break
            held = await self._keeper.usable(refused=tokens.access_token)
        self._keeper.missed = "" if tokens is None else tokens.access_token
        raise AuthRequired(reason="the company's login is missing or has ended", remedy=REMEDY)
