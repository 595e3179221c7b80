"""Owns the rounds of one request: what a modern server asks before it answers is answered, and the request sent again.

What this is not: the judging of rounds (`protocol.mrtr`), nor the asking of people (`hosting`).

Runs in the caller's own task. Each round is a request with clocks of its own, so that the time that a person takes
counts for none of them (S202; spec_client 9.2.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.exits import lone_error
from mcp_actors.errors import RpcError
from mcp_actors.protocol.mrtr import Complete

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_actors.actors.hosting import Answering
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.mrtr import InputRequest, RoundTrip

__all__ = ["answers_to", "ask_in_rounds", "ask_with_pages"]

URL_ELICITATION_REQUIRED: Final = -32042
# A page that a person visited may lead to another one, but not for ever (S207).
MAX_PAGES: Final = 3


async def ask_in_rounds(
    answering: Answering, trip: RoundTrip, ask: Callable[[JsonObject], Awaitable[bytes]]
) -> Complete:
    """Send a request and answer what the server wants to know first, until it answers.

    Args:
        answering: gives the answers; its capabilities were declared on the request.
        trip: the rounds; holds method and params of the first.
        ask: sends one round and gives its result.

    Raises:
        RemoteProtocolError: a round broke the rules, or there were too many.
        RpcError: a question was refused that has no shape for a refusal.
        Whatever `ask` raises.

    Source:
        B06-B08.
    """
    params = trip.params
    while True:
        step = trip.feed(await ask(params))
        if isinstance(step, Complete):
            return step
        await trio.sleep(step.pause)
        params = step.retry(await answers_to(answering, step.questions))


async def answers_to(answering: Answering, questions: Sequence[InputRequest]) -> dict[str, JsonObject]:
    """Answer all questions of a round, at once. Maps key -> bare result, in the order of the questions."""
    answers: dict[str, JsonObject] = {}

    async def answer(question: InputRequest) -> None:
        answers[question.key] = await answering.result(question.method, question.params)

    try:
        async with trio.open_nursery() as nursery:
            for question in questions:
                nursery.start_soon(answer, question)
    except BaseExceptionGroup as group:
        raise lone_error(group) from None
    return {question.key: answers[question.key] for question in questions}


async def ask_with_pages(answering: Answering, ask: Callable[[], Awaitable[bytes]]) -> bytes:
    """Send a legacy request; where it wants a page to be visited first, have it visited and send it again (S207).

    Raises:
        RpcError: the page was not visited, or the server never has enough.
        Whatever `ask` raises.

    Source:
        S207, F10.
    """
    if answering.with_pages is not None:
        return await answering.with_pages(ask)
    for _ in range(MAX_PAGES):
        try:
            return await ask()
        except RpcError as error:
            pages = _pages(error)
            if not pages or "elicitation/create" not in answering.methods:
                raise
            for page in pages:
                answer = await answering.result("elicitation/create", page)
                if answer.get("action") != "accept":
                    raise
    return await ask()


def _pages(error: RpcError) -> list[JsonObject]:
    """The pages that an error wants to be visited; none where any of them is malformed."""
    data = error.data if error.code == URL_ELICITATION_REQUIRED else None
    listed = data.get("elicitations") if isinstance(data, dict) else None
    pages: list[JsonObject] = listed if isinstance(listed, list) else []
    is_sound = all(isinstance(page, dict) and page.get("mode") == "url" and page.get("elicitationId") for page in pages)
    return pages if is_sound else []
