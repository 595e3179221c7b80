"""Owns one login while it is in use: that only one at a time renews it, across tasks and processes.

What this is not: what renewing says on the wire (`upkeep`), nor the sign-in of a person (`server_auth`).

Rules (faults 56-59).

1. One renewal at a time: a lock among tasks, then a lock among processes, then the store is read again. Whoever finds a
   newer token there adopts it and renews nothing: a rotated refresh token that is used twice costs the whole login.
2. What a renewal gave is stored before it is used. The exchange is not cancelled half-way for `GRACE` seconds.
3. Only the issuer's word that this very refresh token is dead drops it, and only while it is still the stored one.
   Whatever else fails passes: the login stays, the error says so, and the next try waits a little longer.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from attrs import evolve, field

from mcp_actors.auth.credentials import decode_credentials, encode_credentials
from mcp_actors.auth.driving import drive
from mcp_actors.auth.flow import refusal_error
from mcp_actors.auth.identity import REGISTERED
from mcp_actors.auth.presentation import Bearer, make_presentation
from mcp_actors.auth.tokens import Refused
from mcp_actors.auth.upkeep import renew
from mcp_actors.errors import ConnectFailed, McpActorsError
from mcp_actors.files.locks import process_lock
from mcp_actors.files.private import write_private
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.driving import Fetch
    from mcp_actors.auth.messages import Sources
    from mcp_actors.auth.presentation import Presentation
    from mcp_actors.auth.store import CredentialStore

__all__ = ["NEWS", "Keeper", "finish_soon"]

log = logging.getLogger("mcp_actors.auth")

T = TypeVar("T")

# A file among the locks, written anew at every login: who waits for one looks at its moment and not into the store.
NEWS: Final = "logins"
# Seconds that a renewal may go on after its asker was cancelled.
GRACE: Final = 5.0
# Seconds before the next try after one that failed: doubled each time.
FIRST_PAUSE: Final = 1.0
LAST_PAUSE: Final = 60.0


async def finish_soon(work: Callable[[], Awaitable[T]], grace: float = GRACE) -> T:
    """Do `work` to its end; when the caller is cancelled, it gets `grace` more seconds.

    Cancellation:
        Shielded for at most `grace` seconds.
    """
    results: list[T] = []
    failures: list[Exception] = []
    scope = trio.CancelScope(shield=True)
    is_done = trio.Event()

    async def run() -> None:
        with scope:
            try:
                results.append(await work())
            except Exception as exc:  # noqa: BLE001 - for the asker, if it still waits
                failures.append(exc)
        is_done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await is_done.wait()
        except trio.Cancelled:
            scope.deadline = trio.current_time() + grace
            raise
    if failures:
        raise failures[0]
    return results[0]


@define(eq=False)
class Keeper:
    """Keeps one login. All users of a slot in this process share one keeper."""

    _slot: str
    _store: CredentialStore = field(repr=False)
    _fetch: Fetch = field(repr=False)
    _sources: Sources = field(repr=False)
    # Where locks between processes lie; None: there are no other processes.
    _locks: Path | None = None
    # The login as it was last seen; the first use reads the store.
    held: Credentials | None = field(default=None, init=False, repr=False)
    _is_loaded: bool = field(default=False, init=False)
    # How the tokens are presented; made anew when the key changes.
    _presentation: Presentation = field(factory=Bearer, init=False, repr=False)
    _key_pem: str | None = field(default=None, init=False, repr=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False, repr=False)
    # The last failure that passes, how many there were, and when the next try is due (seconds since the epoch).
    _failure: McpActorsError | None = field(default=None, init=False, repr=False)
    _failures: int = field(default=0, init=False)
    _not_before: float = field(default=0.0, init=False)
    # The token for whose sake a person was last asked for; empty: there was none.
    missed: str = field(default="", init=False, repr=False)

    @property
    def presentation(self) -> Presentation:
        """How the tokens are presented; remembers nonces."""
        key_pem = None if self.held is None else self.held.dpop_key
        if key_pem != self._key_pem:
            self._presentation, self._key_pem = make_presentation(key_pem, self._sources), key_pem
        return self._presentation

    async def usable(self, refused: str | None = None) -> Credentials | None:
        """A login whose token may be sent now; renews it where need be.

        Args:
            refused: a token that the server has just refused: not that one again. Empty: it wants one, and had none;
                then the store is looked at anew.

        Returns:
            The login, with tokens; None: there is none, and only a person can change that.

        Raises:
            ConnectFailed: it cannot be renewed just now.
            AuthFailed: it cannot be renewed, and why is no passing thing.

        Cancellation:
            While waiting for others: safe. A renewal under way is shielded for at most `GRACE` seconds.

        Source:
            S252, S253, S264; D15; faults 56-59.
        """
        if self._is_loaded and self._is_good(self.held, refused):
            return self.held
        if self._is_loaded and refused is None and self.held is None and not self._lock.locked():
            return None
        async with self._lock:
            if not self._is_loaded:
                await self._load()
            if self._is_good(self.held, refused):
                return self.held
            if refused is None and (self.held is None or self.held.tokens is None):
                return None
            return await finish_soon(lambda: self._renew_alone(refused))

    async def load(self) -> Credentials | None:
        """Read the store again and return what it holds. Cancellation: safe."""
        async with self._lock:
            await self._load()
            return self.held

    async def adopt(self, credentials: Credentials) -> str:
        """Store a new login and use it from now on; returns the kind of store.

        Cancellation:
            Shielded while it is written.
        """
        async with self._lock, self._alone():
            kind = await self._save(credentials)
            if self._locks is not None:
                with contextlib.suppress(OSError):  # others hear of it when they are asked to look again
                    await trio.to_thread.run_sync(write_private, self._locks / NEWS, b"")
            return kind

    async def newest(self) -> str | None:
        """What tells the login that is kept now from others; None: there is none, or it is the one that did not do.

        Cancellation:
            Safe.
        """
        held = await self.load()
        if held is None or held.tokens is None or held.tokens.access_token == self.missed:
            return None
        return hashlib.sha256(held.tokens.access_token.encode()).hexdigest()[:16]

    async def forget(self) -> Credentials | None:
        """Remove the login from the store; returns what it was. Cancellation: safe."""
        async with self._lock, self._alone():
            await self._load()
            before, self.held = self.held, None
            await self._store.erase(self._slot)
            return before

    def _is_good(self, credentials: Credentials | None, refused: str | None) -> bool:
        if credentials is None or credentials.tokens is None:
            return False
        tokens = credentials.tokens
        return tokens.access_token != refused and tokens.is_fresh(self._sources.now())

    async def _load(self) -> None:
        data = await self._store.load(self._slot)
        self.held = None if data is None else decode_credentials(data)
        self._is_loaded = True

    async def _save(self, credentials: Credentials) -> str:
        kind = await self._store.save(self._slot, encode_credentials(credentials))
        self.held, self._is_loaded = credentials, True
        self._failure, self._failures, self._not_before = None, 0, 0.0
        return kind

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Rule 1: no other process renews meanwhile."""
        async with contextlib.AsyncExitStack() as stack:
            if self._locks is not None and await self._store.is_shared():
                try:
                    await stack.enter_async_context(process_lock(self._locks / f"{self._slot}.lock"))
                except TimeoutError as exc:
                    raise ConnectFailed(reason="another process has been renewing this login for a minute") from exc
                except OSError as exc:  # a place where nothing can be written: better than no login at all
                    log.warning("Failed to lock a login against other processes: %s", exc.strerror)
            yield

    async def _renew_alone(self, refused: str | None) -> Credentials | None:
        async with self._alone():
            await self._load()
            held = self.held
            if self._is_good(held, refused):
                return held  # somebody else was quicker
            if held is None or held.tokens is None:
                return None
            is_alive = held.tokens.access_token != refused and held.tokens.is_alive(self._sources.now())
            if held.tokens.refresh_token is None:
                return held if is_alive else None
            error = self._failure
            if error is None or self._sources.now() >= self._not_before:
                try:
                    result = await drive(renew(held, self.presentation, self._sources), self._fetch)
                except McpActorsError as exc:
                    error = exc
                else:
                    if not isinstance(result, Refused):
                        await self._save(result)
                        return result
                    if result.is_grant_dead or result.is_client_unknown:
                        return await self._bury(held, result)
                    error = refusal_error(result, held.server)
                self._fail(error)
            if is_alive:
                log.warning("Failed to renew a login, which still serves: %s", error)
                return held
            raise evolve(error)  # a new one for each caller

    def _fail(self, error: McpActorsError) -> None:
        """Rule 3."""
        pause = min(FIRST_PAUSE * 2**self._failures, LAST_PAUSE)
        self._failure, self._failures = error, min(self._failures + 1, 10)
        self._not_before = self._sources.now() + pause

    async def _bury(self, held: Credentials, refused: Refused) -> Credentials | None:
        """The issuer says that the refresh token is dead: drop it, if it still is the stored one."""
        await self._load()
        newer = self.held
        if newer is not None and newer.tokens is not None and newer.tokens != held.tokens:
            return newer if newer.tokens.is_alive(self._sources.now()) else None
        identity = held.identity
        if refused.is_client_unknown and identity is not None and identity.kind == REGISTERED:
            identity = None
        log.info("Dropped a login: %s", refusal_error(refused, held.server))
        await self._save(evolve(held, tokens=None, identity=identity))
        return None
