"""Owns where the members of an object, and the strings of a whole text, stand in a JSON text: offsets, nothing else.

What this is not: changing the text (`editing`). It takes texts that were parsed before, with their comments blanked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from mcp_actors.config.positions import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["Member", "ObjectSpan", "object_at", "root_object", "strings_in"]


class Member(NamedTuple):
    """One member of an object: offsets of its key, its value, the end of that, and its comma; -1 where none follows."""

    key: str
    start: int
    value: int
    end: int
    comma: int


class ObjectSpan(NamedTuple):
    """An object: offsets of its braces, and its members in file order, doubled keys included."""

    open: int
    close: int
    members: tuple[Member, ...]

    def find(self, key: str) -> Member | None:
        """The last of that name: it is the one that counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def root_object(bare: str) -> ObjectSpan:
    """Look at the object that the whole text is."""
    return object_at(bare, bare.index("{"))


def object_at(bare: str, at: int) -> ObjectSpan:
    """Look at the object whose brace stands at `at`; there may be trailing commas."""
    members: list[Member] = []
    depth, key, start, value = 0, None, -1, -1
    for match in TOKEN.finditer(bare, at):
        lexeme = match.group()
        if lexeme in "}]":
            depth -= 1
            if depth == 0:
                return ObjectSpan(at, match.start(), tuple(members))
        if depth == 1 and lexeme == ",":
            members[-1] = members[-1]._replace(comma=match.start())
        elif depth == 1 and lexeme != ":":
            if key is None:
                key, start = str(json.loads(lexeme)), match.start()
            else:
                value = match.start() if lexeme not in "}]" else value
                if lexeme not in "{[":
                    members.append(Member(key, start, value, match.end(), -1))
                    key = None
        if lexeme in "{[":
            depth += 1
    raise AssertionError("the text was parsed before")


def strings_in(bare: str) -> Iterator[tuple[int, int, tuple[str | int, ...]]]:
    """Start, end and key path of every string value, in file order."""
    # Per level: True for an object; its path; the key or index in hand.
    levels: list[tuple[bool, tuple[str | int, ...]]] = []
    hands: list[str | int | None] = []
    for match in TOKEN.finditer(bare):
        lexeme = match.group()
        if lexeme in "}]":
            levels.pop()
            hands.pop()
        elif lexeme == ",":
            hand = hands[-1]
            hands[-1] = hand + 1 if isinstance(hand, int) else None
        elif lexeme == ":":
            continue
        elif levels and levels[-1][0] and hands[-1] is None:
            hands[-1] = str(json.loads(lexeme))
        else:
            hand = hands[-1] if hands else None
            path = () if not levels or hand is None else (*levels[-1][1], hand)
            if lexeme in "{[":
                levels.append((lexeme == "{", path))
                hands.append(None if lexeme == "{" else 0)
            elif lexeme.startswith('"'):
                yield match.start(), match.end(), path
