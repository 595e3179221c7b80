"""Owns where things stand in a JSON text: its tokens, its lines, and the offset of each key and list item.

What this is not: parsing. It takes texts that were parsed before, with their comments blanked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.config.notes import KeyPath

__all__ = ["STRING", "TOKEN", "key_places", "line_starts"]

# Possessive, and with an optional end: nothing is scanned twice, whatever the file holds.
STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
TOKEN = re.compile(rf'({STRING})|([{{}}\[\],:])|([^\s{{}}\[\],:"]+)')


@define
class _Level:
    is_object: bool
    path: KeyPath
    index: int = 0
    key: str | None = None


def key_places(text: str) -> dict[KeyPath, int]:
    """Map each key path of a valid document to the offset of its key, or of its list item."""
    places: dict[KeyPath, int] = {}
    levels: list[_Level] = []
    for match in TOKEN.finditer(text):
        lexeme, top = match.group(), levels[-1] if levels else None
        if lexeme in "}]":
            levels.pop()
            continue
        if lexeme == ",":
            if top is not None:
                top.key, top.index = None, top.index + 1
            continue
        if lexeme == ":":
            continue
        if top is None:
            path: KeyPath = ()
        elif not top.is_object:
            path = (*top.path, top.index)
            places[path] = match.start()
        elif top.key is None:
            key: str = json.loads(lexeme)
            top.key = key
            places[*top.path, key] = match.start()
            continue
        else:
            path = (*top.path, top.key)
        if lexeme in "{[":
            levels.append(_Level(lexeme == "{", path))
    return places


def line_starts(text: str) -> list[int]:
    """Offset of each line, the first one's included."""
    return [0, *(match.end() for match in re.finditer("\n", text))]
