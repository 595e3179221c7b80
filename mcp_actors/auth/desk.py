"""Owns what the servers of one runtime share when they sign in: the store, the memory of who wants a login, the
company's login, and the table of who we are towards each server.

What this is not: any of them. The runtime makes one desk and asks it for each HTTP server's auth.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve, field

from mcp_actors.auth.client_secrets import ClientSecrets, read_secret_file
from mcp_actors.auth.company_desk import CompanyDesk
from mcp_actors.auth.credentials import slot_of
from mcp_actors.auth.driving import drive, real_sources
from mcp_actors.auth.fetcher import SafeFetcher, resolve_name
from mcp_actors.auth.hello import ask_demand
from mcp_actors.auth.jwt import read_header
from mcp_actors.auth.minting import Minter
from mcp_actors.auth.needs_auth import FILE_NAME, NeedsAuthCache, cache_id, why_no_login
from mcp_actors.auth.options import AuthOptions, GrantKind, read_options
from mcp_actors.auth.refreshing import NEWS, Keeper
from mcp_actors.auth.server_auth import ServerAuth
from mcp_actors.auth.status import AuthStatus, describe_login
from mcp_actors.auth.upkeep import mint, revoke
from mcp_actors.auth.xaa import Company, CompanySetup
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import AuthFailed, AuthRequired, ConfigError, McpActorsError
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.driving import Fetch, SignInPrompter, Waiting
    from mcp_actors.auth.fetcher import Exchange, Resolve
    from mcp_actors.auth.messages import Sources
    from mcp_actors.auth.store import CredentialStore
    from mcp_actors.config.specs import ServerSpec

__all__ = ["AuthDesk"]

LOCKS: Final = "locks"


@define(eq=False)
class AuthDesk:
    """One per runtime. Construction does no I/O."""

    _exchange: Exchange = field(repr=False)
    _environ: Mapping[str, str] = field(repr=False)
    _store: CredentialStore = field(repr=False)
    # Where state is kept between runs; None: nowhere.
    _state_dir: Path | None = field(default=None, alias="state_dir")
    # Asks a person during a call; None: calls fail typed (D22).
    _prompter: SignInPrompter | None = field(default=None, repr=False, alias="prompter")
    # Entered with a server's name for as long as its person is asked; see `ServerAuth.waiting`.
    _waiting: Waiting = field(default=nullcontext, repr=False, alias="waiting")
    _resolve: Resolve = field(default=resolve_name, repr=False, alias="resolve")
    _is_proxied: Callable[[str], bool] = field(default=lambda _url: False, repr=False, alias="is_proxied")
    _sources: Sources = field(factory=real_sources, repr=False, alias="sources")
    # The company's identity provider.
    company: CompanyDesk = field(init=False, repr=False)
    _cache: NeedsAuthCache = field(init=False, repr=False)
    _secrets: ClientSecrets = field(init=False, repr=False)
    # Maps slot -> its keeper, so that servers with the same login share it.
    _keepers: dict[str, Keeper] = field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        path = None if self._state_dir is None else self._state_dir / FILE_NAME
        self._cache = NeedsAuthCache(path, self._sources.now)
        self._secrets = ClientSecrets(self._store, self._environ)
        self.company = CompanyDesk(self._store, self._environ, self._state_dir, self._open_company)

    # ── who we are towards a server ──────────────────────────────────────────────────────────────────────────────────

    def for_server(self, spec: ServerSpec) -> ServerAuth | None:
        """Who we are towards `spec`; None: configuration says it, or it is not on HTTP (S255).

        Raises:
            ConfigError: the block ``oauth`` cannot be used.
        """
        target = spec.target
        if not isinstance(target, RemoteTarget) or target.has_credentials:
            return None
        options = read_options(spec.raw.get("oauth"), self._environ, server=spec.name)
        fetch = self._fetcher(target.url, options)
        key = cache_id(spec)
        assert key is not None  # it has no credentials of its own
        auth = ServerAuth(
            name=spec.name,
            url=target.url,
            options=options,
            keeper=self._keeper(slot_of(target.url, options), fetch),
            fetch=fetch,
            sources=self._sources,
            cache=self._cache,
            cache_key=key,
            prompter=self._prompter,
            waiting=partial(self._waiting, spec.name),
            secrets=self._secrets,
        )
        if options.grant.is_silent:
            auth.minter = Minter(lambda demand, previous: self._mint(auth, demand, previous), self._sources)
        return auth

    def _fetcher(self, url: str, options: AuthOptions | None = None) -> SafeFetcher:
        return SafeFetcher(
            server_url=url,
            exchange=self._exchange,
            resolve=self._resolve,
            is_proxied=self._is_proxied,
            allows_private=options is not None and options.allows_private,
        )

    def _keeper(self, slot: str, fetch: Fetch) -> Keeper:
        if slot not in self._keepers:
            locks = None if self._state_dir is None else self._state_dir / LOCKS
            self._keepers[slot] = Keeper(slot, self._store, fetch, self._sources, locks)
        return self._keepers[slot]

    def _open_company(self, setup: CompanySetup, slot: str) -> Company:
        fetch = self._fetcher(setup.issuer)
        return Company(setup, self._keeper(slot, fetch), fetch, self._sources)

    @property
    def news_file(self) -> Path | None:
        """A file that is written anew whenever somebody signs in, in any process; None: nothing is kept."""
        return None if self._state_dir is None else self._state_dir / LOCKS / NEWS

    async def newest(self, spec: ServerSpec) -> str | None:
        """What tells the login that a server waits for from others; None: nobody made one. Cancellation: safe."""
        auth = self.for_server(spec)
        if auth is not None and auth.options.grant is GrantKind.XAA:
            company = await self.company.current()
            return None if company is None else await company.newest()
        return None if auth is None or auth.minter is not None else await auth.keeper.newest()

    async def _mint(self, auth: ServerAuth, demand: Demand | None, previous: Credentials | None) -> Credentials:
        """Get a token without a person, as `options.grant` says."""
        options = await auth.completed()
        errand = auth.errand(demand, previous, options=options)
        if options.grant is GrantKind.XAA:
            company = await self.company.current()
            if company is None:
                raise AuthRequired(
                    reason="this server takes a company's word, and no company is set up",
                    remedy="set it up with: mcp-actors xaa setup",
                )
            return await company.mint(errand, auth.fetch)
        assertion = None
        if options.grant is GrantKind.WORKLOAD and options.assertion_file is not None:
            assertion = await trio.to_thread.run_sync(read_secret_file, options.assertion_file, "oauth.assertionFile")
            if read_header(assertion) is None:  # whatever file was named: only a token of that kind leaves
                raise ConfigError(reason="the file holds no JWT", key="oauth.assertionFile")
        return await drive(mint(errand, assertion=assertion), auth.fetch)

    # ── the secret of a configured client ────────────────────────────────────────────────────────────────────────────

    async def keep_client_secret(self, spec: ServerSpec, secret: str) -> str:
        """Keep the secret of the client that `spec` names, for all runs; returns the kind of the store that took it.

        Raises:
            ConfigError: its entry names no client, or has the secret itself.
            AuthFailed: no store took it.

        Cancellation:
            Shielded until it is written.

        Source:
            S261.
        """
        auth = self.for_server(spec)
        if auth is None or auth.options.client_id is None:
            raise ConfigError(server=spec.name, key="oauth.clientId", reason="names no client that has a secret")
        if auth.options.client_secret is not None:
            raise ConfigError(server=spec.name, key="oauth.clientSecret", reason="the entry has a secret of its own")
        return await self._secrets.keep(auth.options, auth.url, secret)

    async def forget_client_secret(self, spec: ServerSpec) -> None:
        """Forget it; nothing happens where none was kept. Raises `ConfigError`. Cancellation: safe."""
        auth = self.for_server(spec)
        if auth is not None and auth.options.client_id is not None:
            await self._secrets.forget(auth.options, auth.url)

    # ── signing in and out ───────────────────────────────────────────────────────────────────────────────────────────

    async def log_in(
        self,
        spec: ServerSpec,
        prompter: SignInPrompter,
        *,
        scopes: tuple[str, ...] | None = None,
        by_code: bool = False,
        client_secret: str | None = None,
    ) -> AuthStatus:
        """Have a person sign in to one server.

        Args:
            spec: the server.
            prompter: asks the person.
            scopes: what to request, whatever servers say.
            by_code: show a code to type in elsewhere, instead of a redirect.
            client_secret: of the configured client, unless its entry has one; kept with the login.

        Raises:
            AuthFailed: the server has no login, or it was refused.
            ConnectFailed: somebody is out of order.
            ConfigError: configuration does not fit.

        Cancellation:
            Safe; the old login stays.
        """
        auth = self.for_server(spec)
        if auth is None:
            raise AuthFailed(server=spec.name, reason=why_no_login(spec))
        try:
            options = auth.options
            if options.grant is GrantKind.XAA:
                company = await self.company.current()
                if company is None:
                    raise AuthFailed(reason="no company is set up: mcp-actors xaa setup")
                await company.log_in(prompter)
                await self._cache.clear(cache_id(spec) or "")
                return await self.status(spec)
            if options.grant.is_silent:
                raise AuthFailed(reason=f"{options.grant} needs nobody to sign in")
            if client_secret is not None and options.client_id is not None and options.client_secret is None:
                options = evolve(options, client_secret=client_secret)
            if by_code:
                options = evolve(options, grant=GrantKind.DEVICE_CODE)
            auth.options = options
            assert isinstance(spec.target, RemoteTarget)  # it has an auth
            demand = await ask_demand(self._exchange, spec.target)
            await auth.sign_in(prompter, demand=demand, scopes=scopes)
        except McpActorsError as exc:
            exc.server = exc.server or spec.name
            raise
        return await self.status(spec)

    async def log_out(self, spec: ServerSpec) -> bool:
        """Revoke and forget the login of one server, its registration too; returns whether there was one.

        Cancellation:
            Safe; what is not revoked then is forgotten all the same.

        Source:
            S267, fault 67.
        """
        auth = self.for_server(spec)
        if auth is None:
            return False
        before = await auth.keeper.forget()
        if before is None:
            return False
        with suppress(McpActorsError):  # the issuer cannot be told; here it is over
            await drive(revoke(before, self._sources), auth.fetch)
        return before.tokens is not None

    async def status(self, spec: ServerSpec) -> AuthStatus:
        """How one server is signed in to. Reads the store, asks nobody. Cancellation: safe."""
        target = spec.target
        if not isinstance(target, RemoteTarget):
            return AuthStatus(spec.name, "none")
        auth = self.for_server(spec)
        if auth is None:
            return AuthStatus(spec.name, "configured")
        minter, grant = auth.minter, str(auth.options.grant)
        held = await auth.keeper.load() if minter is None else minter.held
        if held is None or held.tokens is None:
            return AuthStatus(spec.name, "signed-out" if minter is None else "silent", grant)
        store = "memory" if minter is not None else await self._store.kind()
        return describe_login(
            spec.name, held, held.tokens, store=store, can_mint=minter is not None, now=self._sources.now()
        )
