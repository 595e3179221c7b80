"""Owns cleaning: what a server wrote, without the characters that a reader cannot see but a model obeys.

What this is not: the wire. Cleaned text is shown to a model or a person; raw names, URIs and keys go to the server as
it wrote them (invariant 9), so every function gives a new value; `schemas` turns the keys of arguments back.

Rule 1: text is composed (NFC), stripped, and again until nothing changes (S189). Not NFKC: that alters what is visible.
Rule 2: every string counts, keys included (S187, S192). Two keys that become one are a collision, never a guess.
Rule 3: what was removed is counted by the path of its field, never quoted (S195, E10).

Removing such characters matters because a system prompt that holds them makes a model act on text nobody saw, and some
model interfaces refuse the request as a whole (S196).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeGuard

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import Json

__all__ = [
    "MAX_DEPTH",
    "MAX_DESCRIPTION_CHARS",
    "TRUNCATED",
    "Cleaned",
    "cap_text",
    "clean_json",
    "clean_text",
    "is_clean_json",
    "is_list",
    "is_removed",
]

# A schema or result that nests deeper is nobody's; below Python's own recursion limit with room for the caller.
MAX_DEPTH: Final = 128
MAX_ROUNDS: Final = 10
# S157: tool descriptions and server instructions, in code points.
MAX_DESCRIPTION_CHARS: Final = 2_048
TRUNCATED: Final = "… [truncated]"
# Longest run of combining marks that is composed: the bound of Unicode's stream-safe text (UAX #15). Composing takes
# quadratic time in the length of a run, one second for 32,000 marks.
MAX_MARKS: Final = 30

# More different characters than any text needs; looking one up again takes a microsecond.
MAX_REMEMBERED: Final = 16_384

# Categories that go: format, private use, surrogate, unassigned, control (S188).
_REMOVED_CATEGORIES: Final = frozenset({"Cf", "Co", "Cs", "Cn", "Cc"})
_KEPT_CONTROLS: Final = frozenset(map(ord, "\t\n\r"))
_LINE_ENDS: Final = frozenset({0x2028, 0x2029})
# Ranges that go whatever category they have: fillers and selectors that are letters or marks by category.
_REMOVED_RANGES: Final = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F)),
    *((0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0)),
    *((0xE0000, 0xE007F), (0xE0100, 0xE01EF)),
)
_JOINER: Final = 0x200D
_EMOJI_STYLE: Final = 0xFE0F

# Everything outside these common ranges is looked at character by character. A test proves that none of them goes.
_COMMON: Final = (
    "\t\n\r\x20-\x7e\u00a0-\u00ac\u00ae-\u034e\u0400-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u23ff"
    "\u2500-\u27bf\u3000-\u303f\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f"
)
# In JSON text in ASCII only an escape, or DEL itself, can be something that goes; `\n`, `\r` and `\t` cannot.
_ESCAPE_SUSPECTS: Final = (b"\\u", b"\\b", b"\\f")
_MAYBE_MARKS: Final = f"[^\x00-\u02ff]{{{MAX_MARKS + 1},}}"

# What a joiner may stand between. The standard library does not know the Emoji property; these blocks hold all of it.
_PICTURE: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2934\u2935"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_SKIN: Final = "[\U0001f3fb-\U0001f3ff]?"


@cache  # compiling it takes 3 ms, and many fleets write ASCII alone
def _uncommon() -> re.Pattern[str]:
    return re.compile(f"[^{_COMMON}]")


@cache
def _sequence() -> re.Pattern[str]:
    joined = f"\u200d{_PICTURE}\ufe0f?{_SKIN}"
    return re.compile(f"({_PICTURE}\ufe0f?{_SKIN}(?:{joined})*|[0-9#*]\ufe0f\u20e3)|[\u200d\ufe0f]")


def is_removed(code_point: int) -> bool:
    """Whether cleaning takes this code point away (S188). U+2028 and U+2029 are not: they become line ends."""
    if code_point in _KEPT_CONTROLS:
        return False
    if any(first <= code_point <= last for first, last in _REMOVED_RANGES):
        return True
    return unicodedata.category(chr(code_point)) in _REMOVED_CATEGORIES


class _Removal(dict[int, int | None]):
    """A table for `str.translate` that fills itself with what texts hold, and never with all of Unicode."""

    def __init__(self, kept: frozenset[int]) -> None:
        super().__init__()
        self._kept = kept

    def __missing__(self, code_point: int) -> int | None:
        if len(self) >= MAX_REMEMBERED:
            self.clear()
        if code_point in _LINE_ENDS:
            self[code_point] = 0x0A
        else:
            self[code_point] = None if code_point not in self._kept and is_removed(code_point) else code_point
        return self[code_point]


_REMOVE_ALL: Final = _Removal(frozenset())
_REMOVE_BUT_JOINERS: Final = _Removal(frozenset({_JOINER, _EMOJI_STYLE}))


def _cut_marks(text: str) -> str:
    """Cut each run of combining marks at the bound."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def _compose(text: str) -> tuple[str, int]:
    if unicodedata.is_normalized("NFC", text):
        return text, 0
    cut = _cut_marks(text) if re.search(_MAYBE_MARKS, text) else text
    return unicodedata.normalize("NFC", cut), len(text) - len(cut)


def _clean(text: str, *, keep_emoji: bool) -> tuple[str, int]:
    """Clean `text`; also the number of code points that went."""
    if text.isascii() and text.isprintable():
        return text, 0
    removed = 0
    for _ in range(MAX_ROUNDS):
        before = text
        text, cut = _compose(text)
        stripped = text
        if _uncommon().search(text):
            stripped = text.translate(_REMOVE_BUT_JOINERS if keep_emoji else _REMOVE_ALL)
            if keep_emoji:
                stripped = _sequence().sub(lambda match: match[1] or "", stripped)
        removed += cut + len(text) - len(stripped)
        text = stripped
        if text == before:
            return text, removed
    raise RemoteProtocolError(reason="text does not come to rest when it is cleaned")


def clean_text(text: str, *, keep_emoji: bool = False) -> str:
    """Clean one text (S188-S190).

    Args:
        text: as the server wrote it.
        keep_emoji: keep the joiners and style selectors that make one picture of several; for results, whose text is
            quoted, not for names and descriptions.
    """
    return _clean(text, keep_emoji=keep_emoji)[0]


def cap_text(text: str, max_chars: int = MAX_DESCRIPTION_CHARS) -> str:
    """Cut `text` to at most `max_chars` code points and mark the cut (S157). Clean it before (S191)."""
    if len(text) <= max_chars:
        return text
    return text[: max(0, max_chars - len(TRUNCATED))].rstrip() + TRUNCATED[:max_chars]


def is_clean_json(raw: bytes) -> bool:
    """Whether no string of this JSON text can need cleaning. False only says that one has to look."""
    # One byte is found much faster than two: most definitions hold no escape at all.
    if b"\x7f" in raw or (b"\\" in raw and any(suspect in raw for suspect in _ESCAPE_SUSPECTS)):
        return False
    if raw.isascii():
        return True
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return _uncommon().search(text) is None and unicodedata.is_normalized("NFC", text)


@frozen(eq=False)
class Cleaned:
    """A cleaned JSON value and what cleaning did."""

    value: Json = field(repr=False)
    # Maps path of a field -> number of code points that went; ``a.b[3]``, and ``a.<key>`` for a key itself.
    removed: Mapping[str, int] = field(factory=dict)
    # Paths of objects in which two keys became one; the first is kept.
    collisions: tuple[str, ...] = ()

    @property
    def total_removed(self) -> int:
        """Number of code points that went."""
        return sum(self.removed.values())


class _Walk:
    def __init__(self, *, keep_emoji: bool, raw_fields: frozenset[str]) -> None:
        self.keep_emoji = keep_emoji
        self.raw_fields = raw_fields
        self.removed: dict[str, int] = {}
        self.collisions: list[str] = []

    def text(self, text: str, path: str) -> str:
        cleaned, removed = _clean(text, keep_emoji=self.keep_emoji)
        if removed:
            self.removed[path] = self.removed.get(path, 0) + removed
        return cleaned

    def value(self, value: Json, path: str, depth: int) -> Json:
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, Mapping):
            return self._object(value, path, _deeper(depth))
        if is_list(value):
            deeper = _deeper(depth)
            return [self.value(item, f"{path}[{index}]", deeper) for index, item in enumerate(value)]
        return value

    def _object(self, value: Mapping[str, Json], path: str, depth: int) -> dict[str, Json]:
        cleaned: dict[str, Json] = {}
        head = f"{path}." if path else ""
        for key, item in value.items():
            name = self.text(key, f"{head}<key>")
            if name in cleaned:
                self.collisions.append(path)
                continue
            cleaned[name] = item if name in self.raw_fields else self.value(item, head + name, depth)
        return cleaned


def is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    """Whether a JSON value is an array; a text is a sequence too, but no array."""
    return isinstance(value, list | tuple)


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise RemoteProtocolError(reason=f"JSON nests deeper than {MAX_DEPTH}")
    return depth + 1


def clean_json(
    value: Json, *, keep_emoji: bool = False, raw_fields: frozenset[str] = frozenset(), path: str = ""
) -> Cleaned:
    """Clean every string of a JSON value, keys included.

    Args:
        value: decoded JSON; it is not changed.
        keep_emoji: as for `clean_text`.
        raw_fields: keys whose values are data and stay as they are: base64, URIs that go back to the server (S194).
        path: where the value stands, for `Cleaned.removed`.

    Raises:
        RemoteProtocolError: it nests deeper than `MAX_DEPTH`.

    Source:
        S187, S192, S195.
    """
    walk = _Walk(keep_emoji=keep_emoji, raw_fields=raw_fields)
    return Cleaned(walk.value(value, path, 0), walk.removed, tuple(walk.collisions))
