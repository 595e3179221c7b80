"""Owns the rounds of one request: what a server asks before it answers is answered, and the request sent again.

What this is not: the judging of rounds (`protocol.mrtr`, `elicitation.requests`), nor the handlers (`answering`).

Runs in the caller's own task. Each round is a request with clocks of its own, but for the wall's: that is the budget of
the whole call, which stands still while a person is asked (S202; spec_client 9.2.7).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from attrs import evolve

from mcp_actors.actors.slots import Request
from mcp_actors.errors import RemoteProtocolError, RpcError
from mcp_actors.groups import bare_errors
from mcp_actors.protocol.features import ASKS_A_PERSON, ELICITATION
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS
from mcp_actors.protocol.mrtr import Complete, RoundTrip

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from mcp_actors.actors.answering import Answering
    from mcp_actors.actors.connection import Connection
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.budget import Budget
    from mcp_actors.protocol.mrtr import RoundTripStep
    from mcp_actors.protocol.questions import InputRequest

__all__ = ["answers_to", "ask_in_rounds", "ask_one_round", "ask_with_pages", "visit_and_repeat"]

P = TypeVar("P")

# How often the pages of one request are gone through before its error stands (S207).
MAX_ROUNDS: Final = 3


async def ask_in_rounds(connection: Connection, trip: RoundTrip, request: Request) -> Complete:
    """Send a request and answer what the server wants to know first, until it answers.

    Args:
        trip: the rounds; made of the same request, and of the capabilities that are declared on it.

    Raises:
        RemoteProtocolError: a round broke the rules, asked what cannot be answered, or there were too many.
        RpcError: a question was refused that has no shape for a refusal.
        trio.TooSlowError: the budget is spent.
        Whatever `Connection.exchange` raises.

    Source:
        B06-B08.
    """
    while True:
        step = trip.feed(await connection.exchange(request))
        if isinstance(step, Complete):
            return step
        with connection.resting(request.budget):
            await trio.sleep(step.pause)
        answers = await answers_to(connection, request.budget, step.questions)
        request = evolve(request, params=step.retry(answers))


async def ask_one_round(
    connection: Connection, method: str, params: JsonObject | None, timeout: float | None
) -> RoundTripStep:
    """Send one round of a request and hand over what came, for whoever goes on by hand (B08).

    Raises:
        As `Connection.request`.

    Cancellation:
        Safe, as `Connection.request`.
    """
    request = Request(method, params, connection.budget(timeout), connection.timeouts)
    trip = RoundTrip(method, params or {}, connection.answering.capabilities)
    with connection.users:
        try:
            step = trip.feed(await connection.exchange(request))
        except RemoteProtocolError as error:
            error.server = connection.spec.name
            raise
    connection.served += 1
    return step


async def answers_to(
    connection: Connection, budget: Budget, questions: Sequence[InputRequest]
) -> dict[str, JsonObject]:
    """Answer all questions of a round, at once. Maps key -> bare result, in the order of the questions.

    Raises:
        RemoteProtocolError: one is malformed in the eyes of who answers; a legacy server would be told so (F08).
        RpcError: one was refused, or its handler failed.
        trio.TooSlowError: the budget is spent, which it is by no person.
    """
    answers: dict[str, JsonObject] = {}

    async def answer(question: InputRequest) -> None:
        try:
            answers[question.key] = await connection.answering.result(question.method, question.params)
        except RpcError as error:
            if error.code != INVALID_PARAMS:
                raise
            reason = f"the input request {question.key[:40]!r} cannot be put: {error.message}"
            raise RemoteProtocolError(server=error.server, reason=reason) from error

    is_person = any(question.method in ASKS_A_PERSON for question in questions)
    with _standing_still(budget) if is_person else connection.resting(budget), bare_errors():
        async with trio.open_nursery() as nursery:
            for question in questions:
                nursery.start_soon(answer, question)
    return {question.key: answers[question.key] for question in questions}


@contextmanager
def _standing_still(budget: Budget) -> Iterator[None]:
    """Count nothing while the block runs: a person is asked (S202)."""
    budget.pause(trio.current_time())
    try:
        yield
    finally:
        budget.resume(trio.current_time())


async def ask_with_pages(connection: Connection, request: Request) -> bytes:
    """Send a legacy request; where it wants pages to be visited first, have them visited and send it again (S207).

    Raises:
        RpcError: a page was not visited, or the server never has enough.
        Whatever `Connection.exchange` raises.

    Source:
        S207, F10.
    """
    answering, budget = connection.answering, request.budget
    if answering.with_pages is not None:

        async def attempt() -> bytes:
            budget.resume(trio.current_time())
            try:
                return await connection.exchange(request)
            finally:
                budget.pause(trio.current_time())

        with _standing_still(budget):  # but for the attempts: between them a person visits pages
            return await answering.with_pages(attempt)

    async def visit(page: JsonObject, error: RpcError) -> None:
        with _standing_still(budget):
            answer = await answering.result(ELICITATION, page)
        if answer.get("action") != "accept":
            raise error

    return await visit_and_repeat(partial(connection.exchange, request), partial(_pages_of, answering), visit)


def _pages_of(answering: Answering, error: RpcError) -> Sequence[JsonObject] | None:
    from mcp_actors.elicitation.requests import Kind, url_entries  # few servers ever ask for this
    from mcp_actors.protocol.question_rules import has_mode

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
