"""Owns the questions of a round: reading them, and the params that their answers make.

What this is not: the rounds (`mrtr`), nor what a question and an answer may hold (`question_rules`).

Rules (MCP 2026-07-28, "Multi Round-Trip Requests"; B06-B08).
Rule 1: only questions of kinds that the request declared. Anything else is an invalid answer.
Rule 2: ``requestState`` goes back byte for byte, and not at all when there was none. Nobody looks inside.
Rule 3: a round carries the answers and the state of the round before and of no earlier one, next to the same params.
Rule 4: an elicitation can be declined, which is an answer; roots and sampling cannot: the call fails here (9.2.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from attrs import field

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.jsonrpc import NULL, decode_object, raw_json
from mcp_actors.protocol.question_rules import refuse_question
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["InputRequest", "InputRequired", "read_questions"]

# Questions of one round; a person gives up earlier.
MAX_QUESTIONS: Final = 100


@frozen
class InputRequest:
    """One question of a server; its answer goes back under `key`."""

    key: str
    method: str
    params: JsonObject


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
            answers: maps key -> bare result, one for each question; each was judged by `question_rules.refuse_answer`.

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
