"""Owns how an HTTP answer that is no message is read: which error it comes to, and what of its words is told.

What this is not: what becomes of a session then (`outcomes`, `recovery`, `handshake`), nor the reading of messages
(`inbound`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    CredentialsRefused,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
)
from mcp_actors.protocol.inbound import read_error
from mcp_actors.protocol.jsonrpc import decode_envelope
from mcp_actors.shown import one_line

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.protocol.types import Refusal

__all__ = ["is_outage", "is_shut_out", "read_refusal", "rpc_error_in"]

_EXCERPT_CHARS: Final = 200
_SIGNS_OF_A_WRONG_URL: Final = frozenset({404, 405})


def read_refusal(refusal: Refusal, *, is_connecting: bool) -> McpActorsError:
    """Turn an HTTP answer that is no message into the error of its request.

    Source:
        C10, spec_client 3.5 and 5.1, faults 36, 37 and 46. 401 starts auth whatever its body says; so does 403, unless
        a running conversation gets a JSON-RPC error with it. What the server says is told (S409, S413, S414).
    """
    error = rpc_error_in(refusal)
    if refusal.status == 401 or (refusal.status == 403 and (is_connecting or refusal.challenge or error is None)):
        said = _words_of(refusal, error)
        return AuthRequired(reason=_describe_denial(refusal), said=said, http_status=refusal.status)
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


def _describe_denial(refusal: Refusal) -> str:
    """Why it lets nobody in: 403 need not be about a login, so its words count (S245, S414)."""
    if refusal.status == 403 and not refusal.challenge:
        return "the server answered 403 (a login is missing, or a firewall refuses us)"
    return "the server asks for a login"


def _words_of(refusal: Refusal, error: RpcError | None) -> str:
    said = error.message if error is not None else refusal.body[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")
    return one_line(said, _EXCERPT_CHARS)
