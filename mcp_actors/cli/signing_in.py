"""Owns asking the person at a terminal to sign in: a browser, a listener on this machine, a URL pasted back.

What this is not: the sign-in (`auth.flow`), the listener (`auth.loopback`), nor what servers ask (`prompter`).
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen

from mcp_actors.auth.browser import open_browser
from mcp_actors.auth.loopback import open_landing
from mcp_actors.cli import output
from mcp_actors.cli.stdin_lines import StdinLines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_actors.auth.driving import Reception
    from mcp_actors.auth.grants import DeviceCode
    from mcp_actors.auth.loopback import Landing

__all__ = ["SignInPrompter"]


@frozen
class SignInPrompter:
    """Asks at standard error, listens on this machine and on standard input."""

    # False: the person opens the page elsewhere.
    uses_browser: bool = True
    # What the person types or pastes; kept between the visits of one sign-in.
    _lines: StdinLines = field(factory=StdinLines, repr=False)

    @asynccontextmanager
    async def receive(self, *, fixed: str | None, preferred: str | None) -> AsyncIterator[Reception]:
        """Open the place to arrive at; see `auth.driving.Prompter`."""
        async with open_landing(self._go, fixed=fixed, preferred=preferred) as landing:
            yield landing

    async def show_code(self, code: DeviceCode) -> None:
        """Say what to type in, and where."""
        output.note(f"open {code.verification_uri} and type in: {code.user_code}", prefix="")
        if code.complete_uri is not None:
            output.note(f"or open this, which has the code in it: {code.complete_uri}", prefix="")

    async def _go(self, url: str, landing: Landing) -> None:
        is_open = self.uses_browser and await trio.to_thread.run_sync(open_browser, url)
        if is_open:
            output.note("a browser should have opened; if it has not, open this page:", prefix="")
        else:
            output.note("open this page, in any browser:", prefix="")
        output.note(f"\n    {url}\n", prefix="")
        if not is_open and sys.stdin is not None:
            output.note(
                "where the browser ends up at an address that cannot be reached, paste that whole address here:",
                prefix="",
            )
        await self._take_pasted(landing)

    async def _take_pasted(self, landing: Landing) -> None:
        """Read lines until one belongs to the visit. Runs until cancelled, or until standard input ends."""
        if sys.stdin is None:
            return
        while (line := await self._lines.read_line()) is not None:
            if line.strip() and not landing.arrive(line.strip()):
                output.note("that address does not belong to this sign-in: paste the whole of it", prefix="")
