"""Which one of the errors that end a life together is the cause."""

from __future__ import annotations

import itertools

import pytest
import trio

from mcp_actors.actors.exits import cause_of
from mcp_actors.errors import AuthRequired, McpActorsError, TransportBroken, TransportClosed

CLOSED = TransportClosed()
BUG, BROKEN, SLOW, FULL = KeyError("x"), TransportBroken(reason="reset"), trio.TooSlowError(), OSError(28, "full")
LOGIN = AuthRequired(reason="HTTP 401")


@pytest.mark.parametrize(
    ("errors", "cause"),
    [
        ([CLOSED], CLOSED),
        ([CLOSED, SLOW], SLOW),
        ([CLOSED, FULL], FULL),
        ([CLOSED, BROKEN, SLOW], BROKEN),
        ([CLOSED, BROKEN, LOGIN], LOGIN),
        ([CLOSED, BROKEN, LOGIN, BUG], BUG),
    ],
)
def test_the_most_telling_error_is_the_cause(errors: list[Exception], cause: McpActorsError) -> None:
    """In any order and nesting; that we closed the wire is told where nothing else was (S419)."""
    for order in itertools.permutations(errors):
        assert cause_of(ExceptionGroup("life", list(order))) is cause
        assert cause_of(ExceptionGroup("life", [order[0], ExceptionGroup("in", list(order))])) is cause
