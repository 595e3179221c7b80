"""Owns multi-round-trip requests: a modern result that asks something, and the same request again with the answers.

What this is not: the asking (handlers), the questions and answers (`questions`), nor the sending: each round is a new
request with a new id.

Rules (MCP 2026-07-28, "Multi Round-Trip Requests"; B06-B08).
Rule 1: only tools/call, prompts/get and resources/read may be answered with questions. Anything else is an invalid
answer.
Rule 2: rounds are bounded. A round without questions, by which a server sheds load, waits a little, longer each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.features import METHODS, TASKS_EXTENSION, is_offered
from mcp_actors.protocol.jsonrpc import ABSENT, NULL, peek_result_type, raw_members
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.questions import InputRequired

__all__ = ["Complete", "RoundTrip", "RoundTripStep"]

MAX_ROUNDS: Final = 10
# Pauses before the rounds that have no questions, in seconds.
FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 0.25

_OWN_PARAMS: Final = frozenset({"inputResponses", "requestState"})


@frozen
class Complete:
    """The answer: undecoded, of `result_type` "complete" or "task" (for `tasks`)."""

    result: bytes = field(repr=lambda result: f"<{len(result)} bytes>")
    result_type: str = "complete"


RoundTripStep: TypeAlias = "Complete | InputRequired"


@define(eq=False)
class RoundTrip:
    """The rounds of one request. Send `params`, `feed` each result, send what `InputRequired.retry` makes of it."""

    method: str
    params: JsonObject
    # Ours, as declared on this very request.
    capabilities: JsonObject
    max_rounds: int = MAX_ROUNDS
    # How often the server wanted input.
    rounds: int = field(default=0, init=False)
    # How often in a row without a question.
    _idle_rounds: int = field(default=0, init=False)

    def feed(self, result: bytes) -> RoundTripStep:
        """Judge the result of a round.

        Raises:
            RemoteProtocolError: it is no valid answer, or the server never has enough.
        """
        kind = peek_result_type(result)
        if kind is ABSENT or kind == "complete":
            return Complete(result)
        # "MUST NOT return one" to whoever did not declare the extension (G01).
        if kind == "task" and self.method == "tools/call" and is_offered(self.capabilities, TASKS_EXTENSION):
            return Complete(result, "task")
        row = METHODS.get(self.method)
        if kind != "input_required" or row is None or not row.may_ask:
            raise RemoteProtocolError(reason=f"the result of {self.method} has the type {repr(kind)[:40]}")
        self.rounds += 1
        if self.rounds > self.max_rounds:
            raise RemoteProtocolError(reason=f"the server still wants input after {self.max_rounds} rounds")
        from mcp_actors.protocol.questions import InputRequired, read_questions  # few servers ever ask

        members = raw_members(result)
        state = members.get("requestState", NULL)
        if state != NULL and state[:1] != b'"':
            raise RemoteProtocolError(reason="the requestState is no text")
        questions = read_questions(members.get("inputRequests", NULL), self.capabilities)
        if not questions and state == NULL:
            raise RemoteProtocolError(reason="input is required, but none is asked for")
        self._idle_rounds = 0 if questions else self._idle_rounds + 1
        pause = min(MAX_PAUSE, FIRST_PAUSE * 2 ** (self._idle_rounds - 1)) if self._idle_rounds else 0.0
        params = {key: value for key, value in self.params.items() if key not in _OWN_PARAMS}
        return InputRequired(self.method, params, questions, None if state == NULL else state, pause)
