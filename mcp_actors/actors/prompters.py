"""Owns the programmatic prompter: a function of the host that answers questions.

What this is not: a terminal's (`cli.prompter`) or a page's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_actors.elicitation.requests import DECLINED, Action, Answer
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import JsonObject

__all__ = ["CallablePrompter", "Callback"]

# Gives an answer; or just the values of an accepted form; or None, which declines.
Callback: TypeAlias = "Callable[[InputRequest], Awaitable[Answer | JsonObject | None]]"


@frozen
class CallablePrompter:
    """Asks a coroutine function. What it raises is an error for the server (fault 76)."""

    callback: Callback

    async def ask(self, request: InputRequest) -> Answer:
        """Ask it. Cancellation: as safe as the function is."""
        given = await self.callback(request)
        if given is None:
            return DECLINED
        return given if isinstance(given, Answer) else Answer(Action.ACCEPT, given)
