"""Owns the conversation with a person about one question: asked again until the answer fits.

What this is not: whose turn it is (`elicitor`), the dialog (a prompter's), or the judging (`elicitation.policy`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.elicitation.hook_outcomes import prefill
from mcp_actors.elicitation.policy import judge_answer
from mcp_actors.elicitation.requests import Answer
from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR
from mcp_actors.protocol.question_rules import Refused

if TYPE_CHECKING:
    from mcp_actors.elicitation.requests import InputRequest, Outcome
    from mcp_actors.questions.open_question import OpenQuestion
    from mcp_actors.questions.prompters import QuestionPrompter

__all__ = ["converse"]

logger = logging.getLogger("mcp_actors.elicitor")


async def converse(prompter: QuestionPrompter, entry: OpenQuestion, max_attempts: int) -> Outcome | None:
    """Ask until an answer fits; each time the question shows what was answered, and what is wrong with it.

    Returns:
        The answer, or why there can be none; None after `max_attempts` that do not fit.

    Cancellation:
        As safe as the prompter is.

    Source:
        S292, fault 76.
    """
    for _ in range(max_attempts):
        answer = await _ask(prompter, entry.request)
        if not isinstance(answer, Answer):
            return answer
        judged = judge_answer(entry.request, answer)
        if isinstance(judged, Answer):
            return judged
        entry.request = evolve(prefill(entry.request, answer.content or {}), problems=judged)
    return None


async def _ask(prompter: QuestionPrompter, request: InputRequest) -> Outcome:
    try:
        answer = await prompter.ask(request)
        if not isinstance(answer, Answer | Refused):
            raise LocalProtocolError(reason=f"a prompter gives an Answer, not {type(answer).__name__}")
    except Exception:
        # The host's own code: whatever it does is an error for the server, not the end of all dialogs (fault 76).
        logger.exception("[MCP:%s] ! the prompter failed", request.server)
        return Refused(INTERNAL_ERROR, "the client failed to ask")
    return answer
