"""Owns asking the person at a terminal to sign in: a browser, a listener on this machine, a URL pasted back, a secret.

What this is not: the sign-in (`auth.flow`), nor the listener (`auth.loopback`).
"""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from mcp_actors.auth.browser import open_browser
from mcp_actors.auth.loopback import open_landing
from mcp_actors.cli import output
from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_actors.auth.driving import Reception
    from mcp_actors.auth.grants import DeviceCode
    from mcp_actors.auth.loopback import Landing

__all__ = ["TerminalPrompter", "ask_secret"]

MAX_LINE_BYTES = 64 * 1024


@frozen
class TerminalPrompter:
    """Asks at standard error, listens on this machine and on standard input."""

    # False: the person opens the page elsewhere.
    uses_browser: bool = True

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
        await _take_pasted(landing)


async def _take_pasted(landing: Landing) -> None:
    """Read lines until one belongs to the visit. Runs until cancelled, or until standard input ends."""
    if sys.stdin is None or os.name != "posix":
        return
    rest = b""
    while True:
        try:
            await trio.lowlevel.wait_readable(0)
        except PermissionError:  # a file or /dev/null, which nobody can wait for and which never makes anybody wait
            await trio.lowlevel.checkpoint()
        chunk = os.read(0, 4096)
        if not chunk or len(rest) > MAX_LINE_BYTES:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if text and not landing.arrive(text):
                output.note("that address does not belong to this sign-in: paste the whole of it", prefix="")


def ask_secret(variable: str) -> str:
    """The secret that ``--client-secret`` asks for: what the environment has, else typed at the terminal without echo.

    Args:
        variable: of the environment; never an argument, which other users of the machine can see.

    Raises:
        UsageError: there is neither, or nothing was typed.

    Source:
        S261, S361.
    """
    secret = os.environ.get(variable)
    if secret:
        return secret
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"--client-secret asks at a terminal; without one set {variable}")
    from getpass import getpass

    secret = getpass("client secret: ", stream=sys.stderr)
    if not secret:
        raise UsageError("no secret was given")
    return secret
