"""Owns the words of the scripted server: revisions, tables of methods, and the actions that the rulebook answers with.

What this is not: the rules themselves (`rulebook`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CACHEABLE",
    "HTTP_STATUS",
    "LEGACY_REVISIONS",
    "LISTENABLE",
    "LISTS",
    "LOG_LEVELS",
    "META",
    "METHODS",
    "MODERN_REVISIONS",
    "Action",
    "Cancel",
    "Die",
    "Listen",
    "Message",
    "MessageId",
    "Resolve",
    "Run",
    "Say",
    "SayRaw",
    "error_answer",
]

# This judge has its own list and its own decoder: it must not share a mistake with those that it judges.
MODERN_REVISIONS: Final = ("2026-07-28",)
LEGACY_REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

META: Final = "io.modelcontextprotocol/"
LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

Message: TypeAlias = dict[str, Any]
MessageId: TypeAlias = int | str

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_REVISION: Final = -32022

# Modern HTTP status of an error, where it is not 200 (spec_client 5.2, 13.2).
HTTP_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}

# Method -> (capability that must have been declared, eras in which it exists).
_BOTH, _LEGACY, _MODERN = frozenset({"legacy", "modern"}), frozenset({"legacy"}), frozenset({"modern"})
METHODS: Final[Mapping[str, tuple[str | None, frozenset[str]]]] = {
    "initialize": (None, _LEGACY),
    "ping": (None, _LEGACY),
    "logging/setLevel": ("logging", _LEGACY),
    "resources/subscribe": ("resources", _LEGACY),
    "resources/unsubscribe": ("resources", _LEGACY),
    "server/discover": (None, _MODERN),
    "subscriptions/listen": (None, _MODERN),
    "tools/list": ("tools", _BOTH),
    "tools/call": ("tools", _BOTH),
    "resources/list": ("resources", _BOTH),
    "resources/templates/list": ("resources", _BOTH),
    "resources/read": ("resources", _BOTH),
    "prompts/list": ("prompts", _BOTH),
    "prompts/get": ("prompts", _BOTH),
    "completion/complete": ("completions", _BOTH),
}
CACHEABLE: Final = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
# Key of a subscription filter -> (capability, notification that it asks for) (spec_client 7.8).
LISTENABLE: Final = {
    "toolsListChanged": ("tools", "notifications/tools/list_changed"),
    "promptsListChanged": ("prompts", "notifications/prompts/list_changed"),
    "resourcesListChanged": ("resources", "notifications/resources/list_changed"),
    "resourceSubscriptions": ("resources", "notifications/resources/updated"),
}
# List method -> key of its items.
LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@frozen
class Say:
    """Write this message. `status` is the HTTP status that it goes with."""

    message: Message
    status: int = 200


@frozen
class SayRaw:
    """Write these bytes, right or wrong (scripted)."""

    data: bytes


@frozen
class Run:
    """Answer this request by running what the server declared for it."""

    request_id: MessageId
    method: str
    params: Message
    is_modern: bool


@frozen
class Listen:
    """Acknowledge this subscription and keep its stream open (modern)."""

    request_id: MessageId
    honoured: Message


@frozen
class Cancel:
    """Stop the request with this id, if it still runs."""

    request_id: MessageId


@frozen
class Resolve:
    """The client answered a request of ours."""

    request_id: MessageId
    answer: Message


@frozen
class Die:
    """End the wire here and now (scripted); a process exits with this status."""

    status: int = 1


Action: TypeAlias = Say | SayRaw | Run | Listen | Cancel | Resolve | Die


def error_answer(request_id: MessageId | None, code: int, text: str, data: object = None) -> Message:
    """A JSON-RPC error answer; without an id it answers what could not be read."""
    error: Message = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
