"""Owns how a bare value that a handler returns becomes a result object.

What this is not: the choice of the handler (`scripted`).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.testing.live_client import Call
    from mcp_actors.testing.words import Message

__all__ = ["WORK", "shape"]

# Method -> (parameter that names the target, what it is called).
WORK: Final = {
    "tools/call": ("name", "tool"),
    "resources/read": ("uri", "resource"),
    "prompts/get": ("name", "prompt"),
    "completion/complete": ("", "completion"),
}


def _as_content(value: Any) -> Message:
    return {"content": value if isinstance(value, list) else [{"type": "text", "text": str(value)}]}


def _as_contents(value: Any, call: Call) -> Message:
    if isinstance(value, bytes):
        return {"contents": [{"uri": call.params["uri"], "blob": base64.b64encode(value).decode()}]}
    return {"contents": value if isinstance(value, list) else [{"uri": call.params["uri"], "text": str(value)}]}


def _as_messages(value: Any) -> Message:
    text = {"role": "user", "content": {"type": "text", "text": str(value)}}
    return {"messages": value if isinstance(value, list) else [text]}


# Method -> how a bare value of a handler becomes a result.
_SHAPES: dict[str, Callable[[Any, Call], Message]] = {
    "tools/call": lambda value, _: _as_content(value),
    "resources/read": _as_contents,
    "prompts/get": lambda value, _: _as_messages(value),
    "completion/complete": lambda value, _: {"completion": {"values": value}},
}


def shape(method: str, value: Any, call: Call) -> Message:
    """The result object for a bare `value`: text, bytes or a list."""
    return _SHAPES[method](value, call)
