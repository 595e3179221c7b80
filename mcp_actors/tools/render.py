"""Owns how the text of a result looks to a person: the main text unwrapped, flat keys aligned, or as it is.

What this is not: what a model gets; that never changes with how it is drawn (S345). Nor colours or scrolling: a door's.

Rule 1: nothing that a terminal obeys, and nothing invisible, gets through, whichever way a text is drawn (S347).
Rule 2: the first tier that fits wins; whatever is not plainly simple is shown as it came (S340, S344).

Text is parsed with the standard library here, since repeated keys and the spelling of numbers matter for display.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from mcp_actors.shown import strip_sequences
from mcp_actors.tools.sanitise import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Rendered", "display_width", "render_result", "strip_controls", "wrap_line"]

MAX_PARSED_CHARS: Final = 200_000
# Tier 1: the main text is a string with a line end, or longer than this; the others are few and short (S341).
MIN_MAIN_CHARS: Final = 200
MAX_OTHERS: Final = 4
MAX_OTHER_CHARS: Final = 120
# Tier 2 (S343).
MAX_KEYS: Final = 12


class _Number(str):
    """A number as it was spelled."""

    __slots__ = ()


_Scalar: TypeAlias = str | bool | None
_Shown: TypeAlias = "_Scalar | list[_Shown] | dict[str, _Shown]"


class _NotSimple(ValueError):
    """The text is no JSON object that could be drawn in tiers 1 and 2."""


class Rendered(NamedTuple):
    """Lines for a person, and which tier made them: 1 main text, 2 flat keys, 3 as it came."""

    lines: tuple[str, ...]
    tier: int


def strip_controls(text: str) -> str:
    """Take away what a terminal would obey and what cannot be seen; tabs and line ends stay (S347)."""
    text = strip_sequences(text.replace("\r\n", "\n"))
    return clean_text(text, keep_emoji=True).replace("\r", "")


def display_width(text: str) -> int:
    """Count the columns of a terminal: two for wide characters, none for marks and joiners."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def wrap_line(line: str, width: int) -> list[str]:
    """Break one line into parts of at most `width` columns, at a blank where there is one; at least one part."""
    width = max(width, 2)
    if display_width(line) <= width:
        return [line]
    parts: list[str] = []
    # Pieces of the part that is being filled, and its columns.
    piece: list[str] = []
    columns = 0
    for number, word in enumerate(line.split(" ")):
        taken = display_width(word)
        if number and columns + 1 + taken > width:
            parts.append("".join(piece).rstrip(" "))
            piece, columns = [], 0
        elif number:
            piece.append(" ")
            columns += 1
        if columns + taken <= width:
            piece.append(word)
            columns += taken
            continue
        for character in word:  # wider than a whole part
            wide = _columns(character)
            if columns + wide > width:
                parts.append("".join(piece))
                piece, columns = [], 0
            piece.append(character)
            columns += wide
    return [*parts, "".join(piece)]


def _pairs(pairs: Sequence[tuple[str, _Shown]]) -> dict[str, _Shown]:
    if len(dict(pairs)) != len(pairs):
        raise _NotSimple("a key is there twice")
    return dict(pairs)


def _refuse(name: str) -> _Shown:
    raise _NotSimple(name)


def _parse(text: str) -> dict[str, _Shown] | None:
    """Read a JSON object strictly; None for anything else (S346)."""
    if len(text) > MAX_PARSED_CHARS or not text.lstrip().startswith("{"):
        return None
    try:
        value: _Shown = json.loads(
            text, object_pairs_hook=_pairs, parse_int=_Number, parse_float=_Number, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def render_result(text: str, width: int | None = None) -> Rendered:
    """Draw the text of a result.

    Args:
        text: one text block, or structured content as JSON.
        width: columns to wrap flat values at; None: no wrapping. Tiers 1 and 3 leave wrapping to the output.

    Source:
        S340-S347 (S342: why there are tiers at all).
    """
    found = _parse(text)
    if found:
        lines = _main_text(found) or _flat(found, width)
        if lines is not None:
            return lines
    return Rendered(tuple(strip_controls(text).split("\n")), 3)


def _is_scalar(value: _Shown) -> bool:
    return value is None or isinstance(value, str | bool)


def _word(value: _Shown) -> str:
    """Write a scalar; booleans and null as JSON writes them."""
    if isinstance(value, str):
        return strip_controls(value)
    return "null" if value is None else str(value).lower()


def _is_main(value: _Shown) -> bool:
    return isinstance(value, str) and not isinstance(value, _Number) and ("\n" in value or len(value) > MIN_MAIN_CHARS)


def _main_text(found: Mapping[str, _Shown]) -> Rendered | None:
    """Tier 1: one long text and little else."""
    mains = [key for key, value in found.items() if _is_main(value)]
    if len(mains) != 1 or len(found) > MAX_OTHERS + 1:
        return None
    others = {key: value for key, value in found.items() if key != mains[0]}
    if not all(_is_scalar(value) and len(_word(value)) <= MAX_OTHER_CHARS for value in others.values()):
        return None
    head = [f"{_label(key)}: {_word(value)}" for key, value in others.items()]
    return Rendered((*head, *([""] if head else []), *_word(found[mains[0]]).split("\n")), 1)


def _flat(found: Mapping[str, _Shown], width: int | None) -> Rendered | None:
    """Tier 2: few keys with simple values."""
    if len(found) > MAX_KEYS or not all(
        _is_scalar(value) and not (isinstance(value, str) and "\n" in value) for value in found.values()
    ):
        return None
    labels = {key: _label(key) for key in found}
    column = max(map(display_width, labels.values()))
    return Rendered(tuple(_aligned(labels, found, column, width)), 2)


def _aligned(labels: Mapping[str, str], found: Mapping[str, _Shown], column: int, width: int | None) -> Iterator[str]:
    for key, value in found.items():
        head = f"{labels[key]}:" + " " * (column - display_width(labels[key]) + 1)
        text = _word(value).replace("\n", " ")
        parts = [text] if width is None else wrap_line(text, max(width - column - 2, 10))
        yield (head + parts[0]).rstrip()
        yield from (" " * (column + 2) + part for part in parts[1:])


def _label(key: str) -> str:
    return " ".join(strip_controls(key).split())
