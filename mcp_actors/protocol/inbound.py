"""Owns how arriving pieces are read: ids, errors, HTTP refusals, and notifications that need no state.

What this is not: the state of the conversation. Everything here is a function of its arguments.
"""

from __future__ import annotations

import enum
import math
import re
from typing import TYPE_CHECKING, Final

from attrs import frozen

from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    CredentialsRefused,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
)
from mcp_actors.protocol.events import ElicitationCompleted, ListChanged, LogReceived, ResourceUpdated, TaskChanged
from mcp_actors.protocol.jsonrpc import (
    ABSENT,
    NULL,
    decode,
    decode_envelope,
    decode_object,
    peek_result_type,
    split_batch,
)
from mcp_actors.shown import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.events import Notice
    from mcp_actors.protocol.jsonrpc import Envelope
    from mcp_actors.protocol.types import Refusal

__all__ = [
    "IGNORED",
    "NOTIFICATIONS",
    "Blame",
    "Fault",
    "Progress",
    "is_outage",
    "is_shut_out",
    "our_id",
    "read_answer",
    "read_batch",
    "read_error",
    "read_params",
    "read_progress",
    "read_refusal",
    "refuse_result",
    "rpc_error_in",
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
_EXCERPT_CHARS: Final = 200
_SIGNS_OF_A_WRONG_URL: Final = frozenset({404, 405})


# Where servers put the id of an answer: near its beginning, or behind the result.
_SHOWN_BYTES: Final = 256
_SHOWN_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
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
        found = _SHOWN_ID.search(part)
        if found is not None and _METHOD not in part:
            return int(found[1])
    return -1


def read_batch(raw: bytes, error: RemoteProtocolError, max_messages: int) -> list[Envelope | Blame]:
    """Read what is no single message (`error` says why): the elements of an array, good and bad ones (fault 77)."""
    try:
        elements = split_batch(raw)
    except RemoteProtocolError:
        elements = None
    if elements is None:
        return [Blame(Fault.MALFORMED, error.reason)]
    if not 0 < len(elements) <= max_messages:
        return [Blame(Fault.BATCH, f"an array of {len(elements)} messages")]
    return [_read_element(element) for element in elements]


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


def read_refusal(refusal: Refusal, *, is_connecting: bool) -> McpActorsError:
    """Turn an HTTP answer that is no message into the error of its request.

    Source:
        C10, spec_client 3.5 and 5.1, faults 36, 37 and 46. 401 starts auth whatever its body says; so does 403, unless
        a running conversation gets a JSON-RPC error with it. What the server says is told (S409, S413, S414).
    """
    error = rpc_error_in(refusal)
    if refusal.status == 401 or (refusal.status == 403 and (is_connecting or refusal.challenge or error is None)):
        return AuthRequired(reason=_describe_denial(refusal, error), http_status=refusal.status)
    # An outage while connecting stays an outage, also when it is told in JSON-RPC.
    if error is not None and not (is_connecting and is_outage(refusal.status)):
        return error
    broken = ConnectFailed if is_connecting else TransportBroken
    return broken(
        reason=_describe(refusal, error),
        http_status=refusal.status,
        retry_after=refusal.retry_after,
        can_retry=is_outage(refusal.status),
    )


def is_outage(status: int) -> bool:
    """Whether this HTTP status tells of a passing condition, never of an era (spec_client 3.5, fault 34)."""
    return status >= 500 or status in (408, 425, 429)


def is_shut_out(error: McpActorsError, *, has_helper: bool) -> bool:
    """Whether the failure of one call means that the whole server is closed to us: it waits for a login (S091, S245).

    403 may be about this one request, unless its headers come from a helper, which was asked again by then.
    """
    return isinstance(error, AuthRequired | CredentialsRefused) and (error.http_status == 401 or has_helper)


def rpc_error_in(refusal: Refusal) -> RpcError | None:
    """Find the JSON-RPC error in the body of a refusal; its id may be missing or null, it is bound to this exchange."""
    if not refusal.body:
        return None
    try:
        envelope = decode_envelope(refusal.body)
    except RemoteProtocolError:
        return None
    error = read_error(bytes(envelope.error), refusal.status) if envelope.error else None
    return error if isinstance(error, RpcError) else None


def _describe(refusal: Refusal, error: RpcError | None) -> str:
    text = f"{refusal.url or 'the server'} answered {refusal.status}"
    if error is None and refusal.content_type:
        text += f" ({refusal.content_type})"
    # S408; what answers a message with a page, or takes no POST, is hardly an MCP server.
    if refusal.status in _SIGNS_OF_A_WRONG_URL or (refusal.status < 300 and refusal.content_type == "text/html"):
        text += ", so the url in its configuration may be wrong"
    said = _words_of(refusal, error)
    return f"{text}: {said}" if said else text


def _describe_denial(refusal: Refusal, error: RpcError | None) -> str:
    """Why it lets nobody in: 403 need not be about a login, so its words count (S245, S414)."""
    what = "the server asks for a login"
    if refusal.status == 403 and not refusal.challenge:
        what = "the server answered 403 (a login is missing, or a firewall refuses us)"
    said = _words_of(refusal, error)
    return f"{what}: {said}" if said else what


def _words_of(refusal: Refusal, error: RpcError | None) -> str:
    said = error.message if error is not None else refusal.body[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")
    return one_line(said, _EXCERPT_CHARS)


def _excerpt(value: object) -> str:
    return repr(value)[:80]


# ── notifications ───────────────────────────────────────────────────────────────────────────────────────────────────


def _read_updated(params: JsonObject) -> ResourceUpdated:
    return ResourceUpdated(uri=_text(params, "uri"))


def _read_log(params: JsonObject) -> LogReceived:
    logger = params.get("logger")
    return LogReceived(
        level=_text(params, "level"), logger=logger if isinstance(logger, str) else None, data=params.get("data")
    )


def _read_task(params: JsonObject) -> TaskChanged:
    return TaskChanged(task_id=_text(params, "taskId"), task=params)


def _text(params: JsonObject, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RemoteProtocolError(reason=f"{key!r} is no text")
    return value


# Maps method -> how its params become an event. A reader raises `RemoteProtocolError` for params it cannot use.
NOTIFICATIONS: Final[Mapping[str, Callable[[JsonObject], Notice]]] = {
    "notifications/tools/list_changed": lambda _: ListChanged("tools"),
    "notifications/prompts/list_changed": lambda _: ListChanged("prompts"),
    "notifications/resources/list_changed": lambda _: ListChanged("resources"),
    "notifications/resources/updated": _read_updated,
    "notifications/message": _read_log,
    # The name of 2025-11-25, and that of the extension.
    "notifications/tasks/status": _read_task,
    "notifications/tasks": _read_task,
    "notifications/elicitation/complete": lambda params: ElicitationCompleted(_text(params, "elicitationId")),
}
# Known, of no use to a client, and no fault of the peer.
IGNORED: Final = frozenset({"notifications/initialized"})


@frozen
class Progress:
    """One progress notification; `token` is as the peer sent it."""

    token: Json
    progress: float
    total: float | None
    message: str | None


def read_progress(params: JsonObject) -> Progress:
    """Read a progress notification.

    Raises:
        RemoteProtocolError: `progress` is no number.
    """
    progress = _number(params.get("progress"))
    if progress is None:
        raise RemoteProtocolError(reason="'progress' is no number")
    message = params.get("message")
    return Progress(
        token=params.get("progressToken"),
        progress=progress,
        total=_number(params.get("total")),
        message=message if isinstance(message, str) else None,
    )


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
