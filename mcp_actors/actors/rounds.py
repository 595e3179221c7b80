"""Owns the rounds of one request: what a server asks before it answers is answered, and the request sent again.

What this is not: the judging of rounds (`protocol.mrtr`, `elicitation.requests`), nor the asking of people (`hosting`).

Runs in the caller's own task. Each round is a request with clocks of its own, so that the time that a person takes
counts for none of them (S202; spec_client 9.2.7).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from mcp_actors.errors import RpcError
from mcp_actors.groups import bare_errors
from mcp_actors.protocol.mrtr import Complete
from mcp_actors.protocol.server_asks import ELICITATION, has_mode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_actors.actors.hosting import Answering
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.mrtr import InputRequest, RoundTrip

__all__ = ["answers_to", "ask_in_rounds", "ask_with_pages", "visit_and_repeat"]

P = TypeVar("P")

# How often the pages of one request are gone through before its error stands (S207).
MAX_ROUNDS: Final = 3


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

    with bare_errors():
        async with trio.open_nursery() as nursery:
            for question in questions:
                nursery.start_soon(answer, question)
    return {question.key: answers[question.key] for question in questions}


async def ask_with_pages(answering: Answering, ask: Callable[[], Awaitable[bytes]]) -> bytes:
    """Send a legacy request; where it wants pages to be visited first, have them visited and send it again (S207).

    Raises:
        RpcError: a page was not visited, or the server never has enough.
        Whatever `ask` raises.

    Source:
        S207, F10.
    """
    if answering.with_pages is not None:
        return await answering.with_pages(ask)

    async def visit(page: JsonObject, error: RpcError) -> None:
        answer = await answering.result(ELICITATION, page)
        if answer.get("action") != "accept":
            raise error

    return await visit_and_repeat(ask, partial(_pages_of, answering), visit)


def _pages_of(answering: Answering, error: RpcError) -> Sequence[JsonObject] | None:
    from mcp_actors.elicitation.requests import Kind, url_entries  # few servers ever ask for this

    return url_entries(error, kinds={Kind.URL} if has_mode(answering.capabilities, "url") else set())


async def visit_and_repeat(
    ask: Callable[[], Awaitable[bytes]],
    pages_of: Callable[[RpcError], Sequence[P] | None],
    visit: Callable[[P, RpcError], Awaitable[None]],
) -> bytes:
    """Send a request; where its error is that pages must be visited first, visit them and send it again.

    Args:
        ask: sends it, once for each round.
        pages_of: reads the pages of an error; None: it is a plain one.
        visit: sees one page through; raises where that is refused.

    Raises:
        RpcError: the request's error, also when it wants pages again after the last round.
        Whatever `ask` and `visit` raise.
    """
    for _ in range(MAX_ROUNDS):
        try:
            return await ask()
        except RpcError as error:
            pages, wanted = pages_of(error), error
            if pages is None:
                raise
        for page in pages:
            await visit(page, wanted)
    return await ask()
