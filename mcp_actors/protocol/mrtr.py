"""Owns multi-round-trip requests: a modern result that asks something, and the same request again with the answers.

What this is not: the asking (handlers), nor the sending: each round is a new request with a new id.

Rules (MCP 2026-07-28, "Multi Round-Trip Requests"; B06-B08).
Rule 1: only tools/call, prompts/get and resources/read may be answered with questions, and only with questions of kinds
that the request declared. Anything else is an invalid answer.
Rule 2: ``requestState`` goes back byte for byte, and not at all when there was none. Nobody looks inside.
Rule 3: a round carries the answers and the state of the round before and of no earlier one, next to the same params.
Rule 4: rounds are bounded. A round without questions, by which a server sheds load, waits a little, longer each time.
Rule 5: an elicitation can be declined, which is an answer; roots and sampling cannot: the call fails here (9.2.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from attrs import field

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.features import METHODS, TASKS_EXTENSION, is_offered
from mcp_actors.protocol.jsonrpc import ABSENT, NULL, decode_object, peek_result_type, raw_json, raw_members
from mcp_actors.protocol.server_asks import refuse_question
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Complete", "InputRequest", "InputRequired", "RoundTrip", "RoundTripStep", "read_questions"]

MAX_ROUNDS: Final = 10
# Questions of one round; a person gives up earlier.
MAX_QUESTIONS: Final = 100
# Pauses before the rounds that have no questions, in seconds.
FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 0.25

_OWN_PARAMS: Final = frozenset({"inputResponses", "requestState"})


@frozen
class InputRequest:
    """One question of a server; its answer goes back under `key`."""

    key: str
    method: str
    params: JsonObject


@frozen
class Complete:
    """The answer: undecoded, of `result_type` "complete" or "task" (for `tasks`)."""

    result: bytes = field(repr=lambda result: f"<{len(result)} bytes>")
    result_type: str = "complete"


@frozen
class InputRequired:
    """The server wants input first. `Server.request_once` gives it to a caller, as plain data that can be stored."""

    method: str
    # Of the first request, without answers and state.
    params: JsonObject
    # In the server's order; none when it only wants to be asked again.
    questions: tuple[InputRequest, ...]
    # The JSON text of ``requestState``, as sent; None when there was none. Not ours to read, nor to log.
    state: bytes | None = field(default=None, repr=False)
    # Seconds to wait before the retry.
    pause: float = 0.0

    def retry(self, answers: Mapping[str, JsonObject]) -> JsonObject:
        """Make the params of the next round.

        Args:
            answers: maps key -> bare result, one for each question; each was judged by `server_asks.refuse_answer`.

        Raises:
            LocalProtocolError: an answer is missing, or is for nothing.
        """
        if set(answers) != {question.key for question in self.questions}:
            raise LocalProtocolError(reason="the answers are not those to the questions")
        params: dict[str, Json] = dict(self.params)
        if answers:
            params["inputResponses"] = dict(answers)
        if self.state is not None:
            # The codec embeds it as it is.
            params["requestState"] = cast("Json", raw_json(self.state))
        return params

    def to_json(self) -> JsonObject:
        """Write it as JSON, to be stored."""
        return {
            "method": self.method,
            "params": self.params,
            "questions": [{"key": q.key, "method": q.method, "params": q.params} for q in self.questions],
            # Latin-1 maps each byte to one character and back, whatever the state holds.
            "state": None if self.state is None else self.state.decode("latin-1"),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> InputRequired:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it did not.
        """
        match value:
            case {"method": str(method), "params": Mapping() as params, "questions": [*items], "state": state}:
                questions = tuple(_stored(item) for item in items)
                raw = state.encode("latin-1") if isinstance(state, str) else None
                return cls(method, params, questions, raw)
        raise ValueError("no stored input request")


def _stored(item: Json) -> InputRequest:
    match item:
        case {"key": str(key), "method": str(method), "params": Mapping() as params}:
            return InputRequest(key, method, params)
    raise ValueError("no stored question")


RoundTripStep: TypeAlias = Complete | InputRequired


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


def read_questions(raw: bytes, capabilities: JsonObject) -> tuple[InputRequest, ...]:
    """Read ``inputRequests``, undecoded: only questions that may be put.

    Raises:
        RemoteProtocolError: no object, too many, malformed, or of a kind or mode that was not declared (F08).
    """
    if raw == NULL:
        return ()
    requests = decode_object(raw)
    if len(requests) > MAX_QUESTIONS:
        raise RemoteProtocolError(reason=f"{len(requests)} questions at once")
    return tuple(_question(key, value, capabilities) for key, value in requests.items())


def _question(key: str, value: Json, capabilities: JsonObject) -> InputRequest:
    method = value.get("method") if isinstance(value, Mapping) else None
    params = value.get("params") if isinstance(value, Mapping) else None
    if not isinstance(method, str) or not isinstance(params, Mapping | None):
        raise RemoteProtocolError(reason=f"the input request {key[:40]!r} is malformed")
    refused = refuse_question(method, params or {}, capabilities)
    if refused is not None:
        raise RemoteProtocolError(reason=f"the input request {key[:40]!r} cannot be put: {refused.reason}")
    return InputRequest(key, method, params or {})
