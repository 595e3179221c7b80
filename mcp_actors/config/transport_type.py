"""Owns which transport an entry means: by its type, in any spelling, or by what it holds.

What this is not: whether its command or address can be used (`validate`, `checks`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_actors.config.specs import TransportName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.notes import EntryFindings
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["is_guessed", "read_transport"]

# Spelling without case and separators -> transport (S005, fault 20).
SPELLINGS: Final[Mapping[str, TransportName]] = {
    "stdio": TransportName.STDIO,
    "http": TransportName.HTTP,
    "streamablehttp": TransportName.HTTP,
    "sse": TransportName.SSE,
    "ws": TransportName.WS,
    "websocket": TransportName.WS,
}
# Not for files: they belong to IDE extensions and to programs that embed us (S007).
INTERNAL_SPELLINGS: Final = frozenset({"sseide", "wside", "sdk", "claudeaiproxy"})
ACCEPTED: Final = "stdio, http (or streamable-http), sse, ws (or websocket)"
SHOWABLE: Final = r"[\w .+-]{1,32}"


def is_guessed(raw: JsonObject) -> bool:
    """Whether an entry says nothing of its type."""
    return raw.get("type") is None and raw.get("transport") is None


def read_transport(raw: JsonObject, told: EntryFindings) -> TransportName | None:
    """Read which transport an entry means; None when it cannot be known, and then a problem says why.

    Source:
        S005-S007, fault 20.
    """
    has_command, has_url = (raw.get(key) is not None for key in ("command", "url"))
    if is_guessed(raw):
        if has_url and has_command:
            told.problem((), "has both command and url", f"say which with type: {ACCEPTED}")
            return None
        if has_url:
            return _guess(raw["url"], told)
        if not has_command:
            told.problem((), "has neither command nor url", "name a program to start or an address to talk to")
            return None
        return TransportName.STDIO
    key = "type" if raw.get("type") is not None else "transport"
    transport = _spelled(key, raw[key], told)
    if transport is None:
        return None
    wanted, other = ("command", "url") if transport is TransportName.STDIO else ("url", "command")
    if raw.get(wanted) is None:
        told.problem((), f"is of type {transport} and has no {wanted}", f"add {wanted}")
        return None
    if raw.get(other) is not None:
        told.note((other,), "ignored-field", f"is not used: the type is {transport}")
    return transport


def _spelled(key: str, written: Json, told: EntryFindings) -> TransportName | None:
    if not isinstance(written, str):
        told.problem((key,), "must be a text", f"accepted: {ACCEPTED}", "unknown_type")
        return None
    spelling = re.sub(r"[\W_]", "", written).lower()
    if spelling in INTERNAL_SPELLINGS:
        told.problem((key,), "is an internal type that no file may use", f"accepted: {ACCEPTED}")
        return None
    transport = SPELLINGS.get(spelling)
    if transport is None:
        shown = f" {written!r}" if re.fullmatch(SHOWABLE, written) else ""
        told.problem((key,), f"unknown transport type{shown}", f"accepted: {ACCEPTED}", "unknown_type")
    return transport


def _guess(url: Json, told: EntryFindings) -> TransportName:
    is_socket = isinstance(url, str) and url.strip().lower().startswith(("ws:", "wss:"))
    text = "no type is given: taken as " + ("websocket" if is_socket else "streamable HTTP")
    told.note((), "url-without-type", text, is_warning=False)
    return TransportName.WS if is_socket else TransportName.HTTP
