"""Owns the opening of a page that a server asked for, once the person has consented.

What this is not: whether it may be opened (`elicitation.urls`), nor which program opens it (`auth.browser`).
"""

from __future__ import annotations

import os
from typing import Final

import trio

from mcp_actors.auth.browser import start_browser

__all__ = ["BROWSER_TIMEOUT", "open_in_browser"]

# A starter that is still there after so long is the browser itself.
BROWSER_TIMEOUT: Final = 3.0


async def open_in_browser(url: str) -> bool:
    """Open a page that was judged (`elicitation.urls`) and consented to.

    Returns:
        False when no browser could be started.

    Cancellation:
        Safe. The browser stays.
    """
    starter = start_browser(url, os.environ)
    if starter is None:
        return False
    with trio.move_on_after(BROWSER_TIMEOUT):
        return await trio.to_thread.run_sync(starter.wait, abandon_on_cancel=True) == 0
    return True
