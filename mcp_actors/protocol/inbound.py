"""Owns how arriving messages are read: ids, batches, params, answers and errors, and what a peer is blamed for.

What this is not: the state of the conversation, HTTP answers that are no message (`refusals`), or notifications.
Everything here is a function of its arguments.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RemoteProtocolError, RpcError
from mcp_actors.protocol.jsonrpc import (
    ABSENT,
    NULL,
    decode,
    decode_envelope,
    decode_object,
    peek_result_type,
    split_batch,
)
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.jsonrpc import Envelope

__all__ = [
    "Blame",
    "Fault",
    "our_id",
    "read_answer",
    "read_batch",
    "read_error",
    "read_params",
    "refuse_result",
    "shown_id",
]


class Fault(enum.StrEnum):
    """The kinds of `PeerFault`: what a peer can do wrong and go on."""

    MALFORMED = "malformed"  # no JSON-RPC message (S416)
    BATCH = "batch"  # an empty or oversized array (fault 77)
    VERSION = "version"  # `jsonrpc` is not "2.0"
    ID_TYPE = "id-type"  # the answer's id has another type than ours (fault 72)
    UNKNOWN_ID = "unknown-id"  # an answer that nobody waits for (fault 73, S415)
    UNBOUND_ERROR = "unbound-error"  # an error without id
    BAD_REQUEST = "bad-request"  # a request that cannot be answered, or twice the same id
    SERVER_REQUEST = "server-request"  # a request in the modern era, where servers make none
    UNKNOWN_NOTIFICATION = "unknown-notification"  # fault 74
    BAD_NOTIFICATION = "bad-notification"  # a known one with unreadable params (fault 74)
    STALE_PROGRESS = "stale-progress"  # for no request in flight, or not rising (B16)
    UNKNOWN_SUBSCRIPTION = "unknown-subscription"  # a notice for a listen request that is not open (F01)
    REFUSED = "refused"  # HTTP refused a notification or an answer of ours (fault 35)
    FLOOD = "flood"  # more than a bound allows


@frozen
class Blame:
    """What the peer did wrong, to be recorded; nothing else comes of it."""

    fault: Fault
    detail: str


# Results of a modern request; "task" belongs to the tasks extension (B06).
_RESULT_TYPES: Final = (ABSENT, "complete", "input_required", "task")
# Where servers put the id of an answer: near its beginning, or behind the result.
_SHOWN_BYTES: Final = 256
_SHOWN_ID: Final = rb'"id"\s*:\s*(\d{1,15})\s*[,}]'
_METHOD: Final = b'"method"'


def our_id(value: object) -> int | None:
    """Read an id that should be one of ours (integers) though its type is wrong: "7", 7.0, "7.0" are 7 (fault 72)."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def shown_id(raw: bytes) -> int:
    """The integer id that a message which cannot be read shows at its head or tail; -1 where it shows none.

    A broken answer is answered all the same: its caller need not wait for a clock (fault 72's kind).
    """
    for part in (raw[:_SHOWN_BYTES], raw[-_SHOWN_BYTES:]):
        found = re.search(_SHOWN_ID, part)
        if found is not None and _METHOD not in part:
            return int(found[1])
    return -1


def read_batch(raw: bytes, error: RemoteProtocolError, max_messages: int) -> list[Envelope | Blame]:
    """Read what is no single message (`error` says why): the elements of an array (fault 77).

    Good ones first: a bad one costs a request whose id the array shows, and that may be one that a good one answers.
    """
    try:
        elements = split_batch(raw)
    except RemoteProtocolError:
        elements = None
    if elements is None:
        return [Blame(Fault.MALFORMED, error.reason)]
    if not 0 < len(elements) <= max_messages:
        return [Blame(Fault.BATCH, f"an array of {len(elements)} messages")]
    return sorted(map(_read_element, elements), key=lambda element: isinstance(element, Blame))


def _read_element(element: bytes) -> Envelope | Blame:
    try:
        return decode_envelope(element)
    except RemoteProtocolError as exc:
        return Blame(Fault.MALFORMED, f"in an array: {exc.reason}")


def read_params(raw: bytes) -> JsonObject:
    """Decode `params`; absent and null are empty (fault 74).

    Raises:
        RemoteProtocolError: malformed, or no object.
    """
    return decode_object(raw) if raw and raw != NULL else {}


def read_error(raw: bytes, http_status: int | None = None) -> RpcError | RemoteProtocolError:
    """Read the `error` member of an answer, whatever its code (S412). A malformed one is an error of another class."""
    try:
        error = decode(raw)
    except RemoteProtocolError as exc:
        return exc
    if not isinstance(error, dict):
        return RemoteProtocolError(reason="the error of the answer is no object")
    code, message = error.get("code"), error.get("message")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool):
        return RemoteProtocolError(reason=f"the error of the answer has no code: {_excerpt(message)}")
    text = message if isinstance(message, str) else ""
    return RpcError(code=code, message=text, data=error.get("data"), http_status=http_status)


def read_answer(envelope: Envelope, *, is_modern: bool) -> bytes | McpActorsError:
    """Read an answer: its undecoded result, or the error it comes to.

    A member that is null counts as absent, since older peers send both.
    """
    result = bytes(envelope.result)
    if envelope.error:
        error = bytes(envelope.error)
        if error != NULL:
            both = bool(result) and result != NULL
            return RemoteProtocolError(reason="both a result and an error") if both else read_error(error)
    if not result:
        return RemoteProtocolError(reason="neither a result nor an error")
    return refuse_result(result, is_modern=is_modern) or result


def refuse_result(result: bytes, *, is_modern: bool) -> RemoteProtocolError | None:
    """Say what makes a result unusable, None when it can be handed on. It is not decoded here."""
    if result[:1] != b"{":
        return RemoteProtocolError(reason="the result is no object")
    if not is_modern:
        return None
    # "MUST: an unknown value makes the response invalid"; absent means complete (B06).
    try:
        result_type = peek_result_type(result)
    except RemoteProtocolError as exc:
        return exc
    if result_type in _RESULT_TYPES:
        return None
    return RemoteProtocolError(reason=f"unknown resultType {_excerpt(result_type)}")


def _excerpt(value: object) -> str:
    return repr(value)[:80]
