"""Owns asking the person at a terminal to sign in: what is said of a page to visit, a URL pasted back.

What this is not: the sign-in (`auth.flow`), browser and listener (`auth.prompters`), nor what servers ask (`prompter`).
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.auth.prompters import BrowserSignInPrompter
from mcp_actors.cli import output
from mcp_actors.cli.stdin_lines import StdinLines

if TYPE_CHECKING:
    from mcp_actors.auth.prompters import SignInPage

__all__ = ["terminal_sign_in"]


def terminal_sign_in(*, uses_browser: bool, lines: StdinLines | None = None) -> BrowserSignInPrompter:
    """Asks at standard error, listens on this machine and on standard input.

    Args:
        uses_browser: False: the person opens the page elsewhere.
        lines: what the person types or pastes; kept between the visits of one sign-in. None: standard input.
    """
    return BrowserSignInPrompter(partial(_tell, lines or StdinLines()), uses_browser)


async def _tell(lines: StdinLines, page: SignInPage) -> None:
    if page.code is not None:
        output.note(f"open {page.url} and type in: {page.code}", prefix="")
        if page.complete_url is not None:
            output.note(f"or open this, which has the code in it: {page.complete_url}", prefix="")
        return
    if page.is_open:
        output.note("a browser should have opened; if it has not, open this page:", prefix="")
    else:
        output.note("open this page, in any browser:", prefix="")
    output.note(f"\n    {page.url}\n", prefix="")
    if sys.stdin is None:
        return
    if not page.is_open:
        output.note(
            "where the browser ends up at an address that cannot be reached, paste that whole address here:", prefix=""
        )
    # Until the visit is over, or standard input.
    while (line := await lines.read_line()) is not None:
        if line.strip() and not page.arrive(line.strip()):
            output.note("that address does not belong to this sign-in: paste the whole of it", prefix="")
