"""Owns the check of the headers that a modern request mirrors from its body (B02, SEP-2243).

What this is not: the client's side, which writes them; the judge has its own reading of the rule.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from mcp_actors.testing.words import META

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_actors.testing.words import Message

__all__ = ["find_mismatch"]

# Method -> parameter that the header Mcp-Name repeats (spec_client 5.2).
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def find_mismatch(headers: Mapping[str, str], message: Message, tools: Sequence[Message]) -> str | None:
    """What is wrong with the mirrored headers of a modern request; None when nothing is.

    Args:
        headers: lower-case name -> value.
        message: the request; its `_meta` has been checked.
        tools: definitions, as listed.
    """
    params: dict[str, Any] = message.get("params", {})
    method = message["method"]
    expected: dict[str, Any] = {
        "mcp-protocol-version": params["_meta"][META + "protocolVersion"],
        "mcp-method": method,
    }
    if method in NAMED:
        expected["mcp-name"] = params.get(NAMED[method])
    if method == "tools/call":
        for tool in tools:
            if tool["name"] == params.get("name"):
                expected |= _marked(tool.get("inputSchema", {}), params.get("arguments", {}))
    for name, value in expected.items():
        sent = headers.get(name)
        if not _is_equal(None if sent is None else _plain(sent), value):
            return f"{name} is {sent!r}, the body says {value!r}"
    return None


def _marked(schema: Any, arguments: Any) -> dict[str, Any]:
    """Header -> value, None where there must be none, for every property that is marked ``x-mcp-header``."""
    return {f"mcp-param-{header.lower()}": value for header, value in _walk(schema, arguments)}


def _walk(schema: Any, value: Any) -> Iterator[tuple[str, Any]]:
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for key, inner in properties.items():
        here = value.get(key) if isinstance(value, dict) else None
        header = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(header, str):
            yield header, here
        yield from _walk(inner, here)


def _is_equal(sent: str | None, value: Any) -> bool:
    if sent is None or value is None:
        return sent is None and value is None
    if isinstance(value, bool):
        return sent == ("true" if value else "false")
    if isinstance(value, int):
        return sent.lstrip("-").isdecimal() and int(sent) == value
    return sent == str(value)


def _plain(value: str) -> str | None:
    """A header value without its base64 wrapping; None when that is broken."""
    if value.startswith("=?base64?") and value.endswith("?="):
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
    return value
