"""Owns the questions asked of one text: can it reach a program or a server unchanged, does it look like an address.

What this is not: what to do about the answer (`validate`). An answer is a reason without the text itself (S030).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_actors.config.specs import TransportName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.notes import KeyPath
    from mcp_actors.jsontypes import JsonObject

__all__ = ["HEADER_NAME", "header_fault", "plain_fault", "url_fault", "watched_texts"]

# RFC 9110, 5.6.2: a token.
HEADER_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"

URL_SCHEMES: Mapping[TransportName, tuple[str, ...]] = {
    TransportName.HTTP: ("http", "https"),
    TransportName.SSE: ("http", "https"),
    TransportName.WS: ("ws", "wss"),
}


def watched_texts(raw: JsonObject) -> list[tuple[KeyPath, str]]:
    """The texts of the fields that S036 watches, with their paths."""
    found: list[tuple[KeyPath, str]] = [
        ((key,), value) for key in ("command", "url", "cwd") if isinstance(value := raw.get(key), str) and value.strip()
    ]
    args = raw.get("args")
    found += [(("args", i), v) for i, v in enumerate(args if isinstance(args, list) else ()) if isinstance(v, str)]
    for key in ("env", "headers"):
        values = raw.get(key)
        if isinstance(values, dict):
            found += [((key, name), value) for name, value in values.items() if isinstance(value, str)]
    return found


def plain_fault(text: str) -> str | None:
    """What keeps `text` from reaching a program unchanged."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a character (a lone surrogate)"
    return None


def header_fault(text: str) -> str | None:
    if any(character in text for character in "\r\n\0"):
        return "holds a line break or a NUL character"
    return plain_fault(text)


def url_fault(text: str, transport: TransportName) -> str | None:
    if not text.strip():
        return None
    if any(character < " " or character == "\x7f" for character in text.strip()):
        return "holds a control character"  # dropped by some parsers, so that two of them read two addresses
    schemes = URL_SCHEMES[transport]
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address that can be read"
    if parts.scheme.lower() not in schemes or not host:
        return f"must be an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"
    return None
