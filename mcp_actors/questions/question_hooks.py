"""Owns the running of hooks for one question and its answer, and the one verdict that their outcomes make.

What this is not: the running of one hook (`hook_runners`), what an end means (`elicitation.hook_outcomes`), or the
question itself (`open_question`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.elicitation.hook_outcomes import combine, prefill, read_end, revise_answer, settle_question
from mcp_actors.elicitation.hooks import HookContext, HookEvent, Hooks, hook_input
from mcp_actors.elicitation.requests import Answer
from mcp_actors.questions.hook_runners import run_hooks
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.elicitation.hook_outcomes import Verdict
    from mcp_actors.elicitation.hooks import Handler
    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.questions.hook_runners import RunHook

__all__ = ["QuestionHooks"]


@frozen
class QuestionHooks:
    """The hooks of one elicitor."""

    _run: RunHook
    # Told of the server and of what went wrong.
    _warn: Callable[[str, str], None]
    _hooks: Hooks
    # What hooks are told of us.
    _context: HookContext

    def on_question(self, server: str) -> tuple[Handler, ...]:
        """Those that look at a question of this server."""
        return self._hooks.select(HookEvent.ELICITATION, server)

    def on_answer(self, server: str) -> tuple[Handler, ...]:
        """Those that look at an answer to it."""
        return self._hooks.select(HookEvent.ELICITATION_RESULT, server)

    async def answer(self, request: InputRequest, handlers: tuple[Handler, ...]) -> Answer | InputRequest:
        """Let hooks answer a question; the question, perhaps with values filled in, where they do not.

        Cancellation:
            Safe. The hooks end.
        """
        verdict = await self._verdict(HookEvent.ELICITATION, handlers, hook_input(self._context, request))
        settled = settle_question(request, verdict)
        if settled is None or isinstance(settled, Answer):
            return request if settled is None else settled
        self._warn(request.server, settled)
        return prefill(request, verdict.content or {})

    async def revise(self, request: InputRequest, answer: Answer, handlers: tuple[Handler, ...]) -> Answer:
        """Let hooks change an answer; it stays where what they give does not fit. Cancellation: as `answer`."""
        told = hook_input(self._context, request, answer)
        revised = revise_answer(request, answer, await self._verdict(HookEvent.ELICITATION_RESULT, handlers, told))
        if isinstance(revised, Answer):
            return revised
        self._warn(request.server, revised)
        return answer

    async def _verdict(self, event: HookEvent, handlers: tuple[Handler, ...], told: JsonObject) -> Verdict:
        verdicts = [read_end(event, end) for end in await run_hooks(handlers, told, self._run)]
        for verdict in verdicts:
            if verdict.warning is not None:
                self._warn(str(told["mcp_server_name"]), verdict.warning)
        return combine(verdicts)
