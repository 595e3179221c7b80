"""Owns the ready-made sign-in prompter: the system's browser, a listener on this machine, a function that is told.

What this is not: a terminal's words (`cli.signing_in`), nor the listener (`loopback`). It prints and reads nothing.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from attrs import field

from mcp_actors.auth.browser import open_browser
from mcp_actors.auth.loopback import Landing, open_landing
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_actors.auth.driving import Reception
    from mcp_actors.auth.grants import DeviceCode

__all__ = ["BrowserSignInPrompter", "SignInPage"]


@frozen(eq=False)
class SignInPage:
    """A page that a person is to visit now in order to sign in."""

    url: str = field(repr=False)
    # Whether a browser was started for it; where it was not, show the address.
    is_open: bool = False
    # What to type in there, on any device; None: nothing, the page leads back to this machine.
    code: str | None = field(default=None, repr=False)
    # The address with the code in it; None where the server gives none.
    complete_url: str | None = field(default=None, repr=False)
    _landing: Landing | None = field(default=None, repr=False, alias="landing")

    def arrive(self, url: str) -> bool:
        """Take the whole address where a browser on another machine ended up, and go on with it (S248).

        Returns:
            Whether it belongs to this sign-in.
        """
        return self._landing is not None and self._landing.arrive(url)


@frozen
class BrowserSignInPrompter:
    """Opens the page in the system's browser and awaits the redirect on this machine, for five minutes (S246).

    Where it comes back to is configured as ever: ``callbackPort`` of the entry, ``MCP_OAUTH_CALLBACK_PORT``, or any
    port that is free (S247, S361).

    Args:
        tell: told every page to visit, once the listener is there; it is cancelled when the sign-in is over, and what
            it raises ends the sign-in.
        uses_browser: False: no browser is started, the person comes by what `tell` does.
    """

    tell: Callable[[SignInPage], Awaitable[None]]
    uses_browser: bool = True

    @asynccontextmanager
    async def receive(self, *, fixed: str | None, preferred: str | None) -> AsyncIterator[Reception]:
        """Open the place to arrive at; see `SignInPrompter`. Cancellation: safe, the listener is closed."""
        async with open_landing(self._go, fixed=fixed, preferred=preferred) as landing:
            yield landing

    async def show_code(self, code: DeviceCode) -> None:
        """Tell what to type in, and where. Cancellation: as safe as `tell` is."""
        await self.tell(SignInPage(code.verification_uri, code=code.user_code, complete_url=code.complete_uri))

    async def _go(self, url: str, landing: Landing) -> None:
        is_open = self.uses_browser and await trio.to_thread.run_sync(open_browser, url)
        await self.tell(SignInPage(url, is_open, landing=landing))
