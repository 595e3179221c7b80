"""Owns tokens that we get without a person: minted when a server wants one, and anew when it ends. Kept in memory only.

What this is not: how they are minted (`upkeep`, `xaa`), nor logins that are kept (`refreshing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import field

from mcp_actors.auth.presentation import Bearer, make_presentation
from mcp_actors.auth.refreshing import finish_soon
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.messages import Sources
    from mcp_actors.auth.presentation import Presentation

__all__ = ["Minter"]


@define(eq=False)
class Minter:
    """Keeps one minted token for one server."""

    # Mints one: given what the server demanded last, and the token before.
    _make: Callable[[Demand | None, Credentials | None], Awaitable[Credentials]] = field(repr=False)
    _sources: Sources = field(repr=False)
    held: Credentials | None = field(default=None, init=False, repr=False)
    _demand: Demand | None = field(default=None, init=False)
    _presentation: Presentation = field(factory=Bearer, init=False, repr=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    @property
    def presentation(self) -> Presentation:
        """How the token is presented; remembers nonces."""
        return self._presentation

    async def usable(self, refused: str | None = None, demand: Demand | None = None) -> Credentials | None:
        """A token that may be sent now; None: the server never asked for one.

        Args:
            refused: a token that the server has just refused; empty: it wants one, and had none.
            demand: what it demanded with that.

        Raises:
            AuthFailed, AuthRequired, ConnectFailed: none could be minted.

        Cancellation:
            While waiting for others: safe. Minting is shielded for a few seconds.
        """
        held = self.held
        if held is not None and self._is_good(held, refused):
            return held
        if held is None and refused is None:
            return None
        async with self._lock:
            held = self.held
            if held is not None and self._is_good(held, refused):
                return held
            self._demand = demand or self._demand
            made = await finish_soon(lambda: self._make(self._demand, self.held))
            if self.held is None or self.held.dpop_key != made.dpop_key:
                self._presentation = make_presentation(made.dpop_key, self._sources)
            self.held = made
            return made

    def _is_good(self, credentials: Credentials, refused: str | None) -> bool:
        tokens = credentials.tokens
        if tokens is None or tokens.access_token == refused:
            return False
        return tokens.is_fresh(self._sources.now())
