"""Owns the events of a `Session`: frozen data that tells what happened, past tense.

What this is not: messages. Nobody is asked for anything by an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.listening import ListenFilter
    from mcp_actors.protocol.types import RequestId, ServerInfo

__all__ = [
    "ElicitationCompleted",
    "ErrorReceived",
    "FellBack",
    "ListChanged",
    "ListenAcknowledged",
    "ListenEnded",
    "LogReceived",
    "Notice",
    "PeerFault",
    "ProgressReceived",
    "Resend",
    "ResourceUpdated",
    "ResponseReceived",
    "ServerRequestCancelled",
    "ServerRequestReceived",
    "SessionDoubted",
    "SessionExpired",
    "SessionFailed",
    "SessionReady",
]

W = TypeVar("W")


@frozen(eq=False)
class SessionReady:
    """The handshake, or a renewal, ended well: requests may be sent."""

    info: ServerInfo


@frozen(eq=False)
class SessionFailed:
    """The handshake ended badly; `error` says whether another try can help."""

    error: McpActorsError


@frozen(eq=False)
class FellBack:
    """The peer is legacy by evidence.

    With `needs_reopen` its transport died of the probe: open another one, pinned to legacy.
    """

    reason: str
    needs_reopen: bool = False


@frozen(eq=False)
class ResponseReceived(Generic[W]):
    """The answer to the request of `waiter`. `result` is undecoded JSON: an object."""

    waiter: W
    result: bytes = field(repr=lambda result: f"<{len(result)} bytes>")


@frozen(eq=False)
class ErrorReceived(Generic[W]):
    """The request of `waiter` failed: an `RpcError`, or another error where no answer can come any more."""

    waiter: W
    error: McpActorsError


@frozen(eq=False)
class SessionExpired(Generic[W]):
    """The wire session is gone and the request of `waiter` certainly did not run (S205, S405, fault 32).

    Its caller sends it once more, as a resend, when the session is READY again. With `needs_renewal` nobody has begun
    that yet: call `Session.renew`. A resend that meets the same end is an `ErrorReceived`.
    """

    waiter: W
    error: McpActorsError
    needs_renewal: bool


@frozen
class SessionDoubted:
    """The wire session may be gone, by evidence that does not suffice: any request finds out (S205)."""


@frozen(eq=False)
class Resend(Generic[W]):
    """The request of `waiter` certainly did not run and may do now: the session speaks `revision` as asked (A03).

    Its caller sends it once more at once, as a resend. A resend that meets the same end is an `ErrorReceived`.
    """

    waiter: W
    revision: str
    error: McpActorsError


@frozen(eq=False)
class ProgressReceived(Generic[W]):
    """Progress of a request in flight; `progress` has risen since the last one (S203, B16)."""

    waiter: W
    progress: float
    total: float | None = None
    message: str | None = None


@frozen(eq=False)
class ListChanged:
    """The server's list of `kind` changed: "tools", "prompts" or "resources"."""

    kind: str


@frozen(eq=False)
class ResourceUpdated:
    """A subscribed resource, or one below it, changed."""

    uri: str


@frozen(eq=False)
class ElicitationCompleted:
    """What a person was to do at a URL is done, says the server; the id may be one that nobody knows (F10)."""

    elicitation_id: str


@frozen(eq=False)
class ListenAcknowledged(Generic[W]):
    """The server listens for `waiter`: to `honoured`, which may be less than was asked for (F01)."""

    waiter: W
    honoured: ListenFilter


@frozen(eq=False)
class ListenEnded(Generic[W]):
    """The server ended the subscription of `waiter` in order (F02). A loss is an `ErrorReceived`."""

    waiter: W


@frozen(eq=False)
class LogReceived:
    """A log message of the server; untrusted text. `data` is any JSON."""

    level: str
    logger: str | None
    data: object


@frozen(eq=False)
class ServerRequestReceived:
    """The server asks something that a handler exists for; answer with `Session.answer` or `Session.answer_error`."""

    request_id: RequestId
    method: str
    params: JsonObject


@frozen(eq=False)
class ServerRequestCancelled:
    """The server no longer wants the answer to its request."""

    request_id: RequestId


@frozen(eq=False)
class PeerFault:
    """The peer broke a rule and the conversation goes on (S415, S416, faults 72-74).

    `kind` is one of a small fixed set, for counting; `detail` is short and holds no payload.
    """

    kind: str
    detail: str


# What a server tells unasked, to everybody or to one subscription.
Notice: TypeAlias = ListChanged | ResourceUpdated | LogReceived | ElicitationCompleted

# For type checkers alone: to make a union of so many, some of them generic, takes longer than two classes.
if TYPE_CHECKING:
    Event: TypeAlias = (
        SessionReady
        | SessionFailed
        | FellBack
        | ResponseReceived[W]
        | ErrorReceived[W]
        | SessionExpired[W]
        | SessionDoubted
        | Resend[W]
        | ProgressReceived[W]
        | ListenAcknowledged[W]
        | ListenEnded[W]
        | Notice
        | ServerRequestReceived
        | ServerRequestCancelled
        | PeerFault
    )
