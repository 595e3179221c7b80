"""Owns who we are towards one MCP server: adds the token to each request, and meets what the server demands.

What this is not: HTTP. It has the shape of httpx's auth flow and knows nothing of httpx: `async_auth_flow` is given a
request and answers by name only (``headers``, ``method``, ``url``, ``status_code``).

::

    401 use_dpop_nonce               the same again, with the nonce                       (D19)
    401, a token of ours             one renewal, one try (D15, S206), then as below
    401 without a challenge, amid    passed on: servers say it of a session that they forgot, and
    a session begun without a token  where that is not meant, the next handshake is refused as well
    401, none or not that one        mint silently; a person where there is one; else `AuthRequired`
    403 insufficient_scope           a new authorization for the union of scopes, at most 3 in all (D13)
    403, anything else               not about us: a firewall's, or the server's own refusal; passed on
    another origin                   gets no token of ours (D14)

Rule 1: nothing here waits for a person unless a prompter was supplied; a call fails at once, typed (D22, S268).
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio
from attrs import evolve, field

from mcp_actors.auth.challenge import read_demand
from mcp_actors.auth.demands import is_covered, required, why_no_step
from mcp_actors.auth.device import log_in_by_code
from mcp_actors.auth.driving import drive_visiting
from mcp_actors.auth.flow import Errand, log_in
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.scopes import MAX_STEPS
from mcp_actors.auth.urls import host_of, is_same_origin
from mcp_actors.config.remedies import sign_in_remedy
from mcp_actors.errors import AuthFailed, AuthRequired, McpActorsError
from mcp_actors.sent_secrets import hide, longest_first, of_request
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractContextManager

    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.client_secrets import ClientSecrets
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.driving import Fetch, SignInPrompter
    from mcp_actors.auth.messages import Sources
    from mcp_actors.auth.minting import Minter
    from mcp_actors.auth.needs_auth import NeedsAuthCache
    from mcp_actors.auth.options import AuthOptions
    from mcp_actors.auth.refreshing import Keeper
    from mcp_actors.jsontypes import Json

__all__ = ["ServerAuth"]

log = logging.getLogger("mcp_actors.auth")

# Nonces that one request may be asked for: one, and one more where it had just changed.
MAX_NONCES: Final = 2
LATEST_LEGACY_YEAR: Final = "2025"
PROBE: Final = "server/discover"
SESSION_HEADER: Final = "mcp-session-id"
_EXTENSIONS: Final = {
    GrantKind.XAA: "io.modelcontextprotocol/enterprise-managed-authorization",
    GrantKind.CLIENT_CREDENTIALS: "io.modelcontextprotocol/oauth-client-credentials",
}


@define(eq=False)
class _Attempt:
    """What one request has been through."""

    nonces: int = 0
    authorizations: int = 0
    # Whether the store was looked at, or a first token minted, for a request that went without.
    has_looked: bool = False
    # Whether a refused token was renewed. Once: a server that refuses that as well would refuse the next one too.
    has_renewed: bool = False

    def may_renew(self, token: str) -> bool:
        """Whether a renewal may help, and note that it was tried."""
        if not token:
            may, self.has_looked = not self.has_looked, True
        else:
            may, self.has_renewed = not self.has_renewed and self.authorizations == 0, True
        return may


@define(eq=False)
class ServerAuth:
    """Who we are towards one server (S244). Used by the HTTP transport as its `auth`; safe to share between tasks."""

    # What httpx asks an auth flow.
    requires_request_body = False
    requires_response_body = False

    name: str
    url: str = field(repr=False)
    options: AuthOptions
    # The login that is kept; silent grants keep theirs in memory.
    keeper: Keeper = field(repr=False)
    fetch: Fetch = field(repr=False)
    _sources: Sources = field(repr=False, alias="sources")
    # What the configured client proves itself with, where its entry does not say.
    _secrets: ClientSecrets = field(repr=False, alias="secrets")
    # Who asked for a login lately, and under which key this server stands there.
    _cache: NeedsAuthCache = field(repr=False, alias="cache")
    _cache_key: str = field(alias="cache_key")
    # Mints tokens without a person; None: a person signs in.
    minter: Minter | None = field(default=None, repr=False)
    # Asks a person; None: there is none, fail typed.
    prompter: SignInPrompter | None = field(default=None, repr=False)
    # Entered for as long as a person is asked during a request: clocks that do not count that stop.
    waiting: Callable[[], AbstractContextManager[object]] = field(default=nullcontext, repr=False)
    # One person signs in once, however many calls want it.
    _signing: trio.Lock = field(factory=trio.Lock, init=False, repr=False)
    # Whether the server has served us: then a GET that it refuses is a stream that it does not offer us (fault 33).
    _has_served: bool = field(default=False, init=False)
    # Scopes that were asked for in vain: the failure is remembered (S263).
    _vain: set[frozenset[str]] = field(factory=set, init=False)

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        """Drive one request: yields it with credentials, is sent the answer, yields it again or ends.

        Raises:
            AuthRequired: a person must sign in; names the command.
            AuthFailed: refused, and signing in again would not help.
            ConnectFailed: the login cannot be renewed just now.

        Cancellation:
            Safe; a renewal under way is finished for the others.

        Source:
            D13-D15, D19, D22; S245, S263.
        """
        url = str(request.url)
        if not self._is_ours(url):
            yield request
            return
        attempt = _Attempt()
        # The tokens that the server has seen by now.
        shown: list[str] = []
        try:
            held = await self._usable(None)
            if held is None and await self._was_asked_lately():
                # A login that was made meanwhile goes before what is remembered (S255).
                held = await self._usable("")
                if held is None:
                    raise AuthRequired(reason="the server asked for a login a moment ago", http_status=401)
            while True:
                source = self.minter or self.keeper
                if held is not None and held.tokens is not None:
                    for header, value in source.presentation.headers(held.tokens, request.method, url):
                        request.headers[header] = value
                    shown.append(held.tokens.access_token)
                response = yield request
                is_news = source.presentation.take_nonce(url, response.headers)
                if response.status_code not in (401, 403):
                    self._has_served = self._has_served or response.is_success
                    return
                demand = read_demand(response.status_code, response.headers.get_list("www-authenticate"))
                if demand.is_nonce_wanted and is_news and attempt.nonces < MAX_NONCES:
                    attempt.nonces += 1
                    continue
                if demand.status == 403 and not demand.is_step_up:
                    return
                if not shown and self._may_mean_the_session(demand, request):
                    return
                held = await self._meet(demand, held, attempt, request)
        except McpActorsError as exc:
            exc.server = exc.server or self.name
            hide(exc, longest_first((*shown, *of_request(request.headers.items(), url))))
            if isinstance(exc, AuthRequired) and exc.remedy is None:
                exc.remedy = self.remedy
            raise

    @property
    def extensions(self) -> dict[str, dict[str, Json]]:
        """Extensions that our client capabilities may declare to this server, because they are in use (S281)."""
        name = _EXTENSIONS.get(self.options.grant)
        return {} if name is None else {name: {}}

    async def completed(self) -> AuthOptions:
        """The options, with the secrets that lie elsewhere; see `ClientSecrets.complete`. Cancellation: safe."""
        return await self._secrets.complete(self.options, self.url, self.name)

    @property
    def remedy(self) -> str:
        """The command that a person runs to sign in."""
        return sign_in_remedy(self.name)

    def _may_mean_the_session(self, demand: Demand, request: Any) -> bool:
        """Whether a 401 to a request without a token may be about its wire session: it served us and asks nothing."""
        is_call = request.method == "POST" and SESSION_HEADER in request.headers
        return self._has_served and is_call and demand.status == 401 and not demand.schemes

    # ── meeting demands ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _meet(self, demand: Demand, held: Credentials | None, attempt: _Attempt, request: Any) -> Credentials:
        """Get a token that may do, or say why there is none."""
        tokens = None if held is None else held.tokens
        token = "" if tokens is None else tokens.access_token
        if demand.is_step_up and held is not None:
            self._check_step(demand, held)
        elif attempt.may_renew(token):
            renewed = await self._usable(token, demand)
            if renewed is not None:
                return renewed
        if attempt.authorizations >= MAX_STEPS:
            raise AuthFailed(reason=f"the server refused {attempt.authorizations} fresh logins in a row")
        attempt.authorizations += 1
        if self.minter is not None:
            if not demand.is_step_up:
                raise AuthFailed(reason="the server refused a token that its authorization server had just given")
            return await self._minted(token, demand)
        if self.prompter is None:
            newer = await self._newer_step(demand, held) if demand.is_step_up else None
            if newer is not None:
                return newer
            self.keeper.missed = token
            if request.method != "GET" or not self._has_served:
                await self._remember(demand)
            raise required(demand, held, self.remedy)
        # The question which era a server speaks is no answer to it: one of 2025-03-26 is asked as well (D21).
        is_probe = request.headers.get("mcp-method") == PROBE
        revision = None if is_probe else request.headers.get("mcp-protocol-version")
        with self.waiting():
            return await self.sign_in(self.prompter, demand=demand, refused=token, revision=revision)

    async def _newer_step(self, demand: Demand, held: Credentials | None) -> Credentials | None:
        """A login with the scopes that are wanted, which somebody made in another process meanwhile."""
        newest = await self.keeper.load()
        if newest is None or newest.tokens is None or held is None or newest.tokens == held.tokens:
            return None
        return newest if is_covered(demand, newest) else None

    def _check_step(self, demand: Demand, held: Credentials) -> None:
        """Fail where asking for more scopes cannot help (D13, S263, fault 66)."""
        wanted = frozenset(demand.scope or ())
        why = why_no_step(demand, held, self.options.scopes, is_vain=wanted in self._vain)
        if why is not None:
            self._vain.add(wanted)
            raise AuthFailed(reason=why)

    async def _usable(self, refused: str | None, demand: Demand | None = None) -> Credentials | None:
        if self.minter is not None:
            return await self.minter.usable(refused, demand)
        return await self.keeper.usable(refused)

    async def _minted(self, refused: str, demand: Demand) -> Credentials:
        assert self.minter is not None
        made = await self.minter.usable(refused, demand)
        assert made is not None  # something was refused
        return made

    # ── the memory of who asked for a login ──────────────────────────────────────────────────────────────────────────

    async def _was_asked_lately(self) -> bool:
        """Whether the server asked for a login a moment ago: then it is not asked again (S254)."""
        if self.prompter is not None or self.minter is not None:
            return False
        return await self._cache.is_fresh(self._cache_key)

    async def _remember(self, demand: Demand) -> None:
        if demand.status == 401:
            await self._cache.note(self._cache_key)

    # ── a person ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def sign_in(
        self,
        prompter: SignInPrompter,
        *,
        demand: Demand | None = None,
        refused: str | None = None,
        revision: str | None = None,
        scopes: tuple[str, ...] | None = None,
    ) -> Credentials:
        """Have a person sign in; the old login stays until the new one works (S267).

        Args:
            prompter: asks the person.
            demand: what the server demanded.
            refused: the token that did not do; a newer one that somebody else got meanwhile does.
            revision: protocol revision in use, None when unknown.
            scopes: what to request, whatever servers say; None: as configured.

        Raises:
            AuthFailed: it was refused, or not finished in time.
            ConnectFailed: a server is out of order.

        Cancellation:
            Safe; the listener is closed.
        """
        async with self._signing:
            newest = self.keeper.held
            if refused is not None and newest is not None and newest.tokens is not None:
                is_newer = newest.tokens.access_token != refused and newest.tokens.is_alive(self._sources.now())
                if is_newer and is_covered(demand, newest):
                    return newest
            previous = newest or await self.keeper.load()
            options = await self.completed()
            if scopes is not None:
                options = evolve(options, scopes=scopes)
            errand = self.errand(demand, previous, options=options, revision=revision)
            if options.grant is GrantKind.DEVICE_CODE:
                credentials = await log_in_by_code(errand, self.fetch, prompter)
            else:
                credentials = await self._visit(prompter, errand)
            await self.keeper.adopt(credentials)
            await self._cache.clear(self._cache_key)
            log.info("[MCP:%s] signed in at %s", self.name, host_of(credentials.issuer))
            return credentials

    async def _visit(self, prompter: SignInPrompter, errand: Errand) -> Credentials:
        identity = None if errand.previous is None else errand.previous.identity
        preferred = None if identity is None else identity.redirect_uri
        async with prompter.receive(fixed=errand.options.fixed_redirect_uri, preferred=preferred) as reception:
            errand = evolve(errand, redirect_uri=reception.redirect_uri)
            return await drive_visiting(log_in(errand), self.fetch, reception)

    def errand(
        self,
        demand: Demand | None,
        previous: Credentials | None,
        *,
        options: AuthOptions | None = None,
        revision: str | None = None,
    ) -> Errand:
        """What a flow for this server starts from."""
        return Errand(
            server_url=self.url,
            options=options or self.options,
            sources=self._sources,
            demand=demand,
            previous=previous,
            is_modern=revision is not None and revision[:4] > LATEST_LEGACY_YEAR,
            revision=revision,
        )

    def _is_ours(self, url: str) -> bool:
        """Whether a request goes to the server: its origin, or https instead of http on the same host (fault 38)."""
        if url == self.url or is_same_origin(url, self.url):
            return True
        ours, theirs = urlsplit(self.url), urlsplit(url)
        return (ours.scheme, theirs.scheme) == ("http", "https") and ours.hostname == theirs.hostname
