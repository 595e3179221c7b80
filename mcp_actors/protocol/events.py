"""Owns the events of a `Session`: frozen data that tells what happened, past tense.

What this is not: messages. Nobody is asked for anything by an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from attrs import field, frozen

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import RequestId, ServerInfo

__all__ = [
    "ErrorReceived",
    "Event",
    "FellBack",
    "ListChanged",
    "LogReceived",
    "PeerFault",
    "ProgressReceived",
    "ResourceUpdated",
    "ResponseReceived",
    "ServerRequestCancelled",
    "ServerRequestReceived",
    "SessionFailed",
    "SessionReady",
]

W = TypeVar("W")


@frozen(eq=False)
class SessionReady:
    """The handshake ended well: requests may be sent."""

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


Event: TypeAlias = (
    SessionReady
    | SessionFailed
    | FellBack
    | ResponseReceived[W]
    | ErrorReceived[W]
    | ProgressReceived[W]
    | ListChanged
    | ResourceUpdated
    | LogReceived
    | ServerRequestReceived
    | ServerRequestCancelled
    | PeerFault
)
