"""Owns what asks a person a server's questions, as a protocol, and the one that is ready-made: a function that answers.

What this is not: a terminal's (`cli.prompter`) or a page's, nor what asks a person to sign in (`auth.driving`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from mcp_actors.elicitation.requests import DECLINED, Action, Answer
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import JsonObject

__all__ = ["CallableQuestionPrompter", "Callback", "QuestionPrompter"]


class QuestionPrompter(Protocol):
    """What a program or a door supplies so that a person can answer what servers ask."""

    async def ask(self, request: InputRequest) -> Answer:
        """Show one question and wait for its answer. Never entered twice at once.

        `request.problems` tells what was wrong with the answer before. In the stage of completion the person was sent
        to `request.url` before: accept means that it is done there.

        Cancellation:
            Closes the dialog at once: the question is answered, or nobody wants to know any more.
        """
        ...


# Gives an answer; or just the values of an accepted form; or None, which declines.
Callback: TypeAlias = "Callable[[InputRequest], Awaitable[Answer | JsonObject | None]]"


@frozen
class CallableQuestionPrompter:
    """Asks a coroutine function. What it raises is an error for the server (fault 76)."""

    callback: Callback

    async def ask(self, request: InputRequest) -> Answer:
        """Ask it. Cancellation: as safe as the function is."""
        given = await self.callback(request)
        if given is None:
            return DECLINED
        return given if isinstance(given, Answer) else Answer(Action.ACCEPT, given)
