"""Owns how the words of a stranger look in a line of ours: nothing that a terminal obeys, nothing unseen, not too long.

What this is not: what a model reads, or a person who asked for a text (`tools.sanitise`, `tools.render`): there what is
visible stays exact, joined emoji too. Nor the tables and questions of a terminal (`cli.render`): there each character
that goes leaves a mark, since a name in which something is hidden is not the same name.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cut", "one_line", "strip_sequences", "visible"]

# Whole sequences, so that no "[31m" is left of a colour. An unfinished one ends with its line.
_SEQUENCE: Final = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)


def strip_sequences(text: str) -> str:
    """Take out what steers a terminal: colours, titles, movements."""
    return re.sub(_SEQUENCE, "", text)


def visible(text: str) -> str:
    """Take out what cannot be seen as well; every kind of blank, a line end too, becomes a blank."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " * char.isspace() for char in strip_sequences(text))


def cut(text: str, max_chars: int) -> str:
    """Cut a text, with a mark where it was cut."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def one_line(text: str, max_chars: int = 200) -> str:
    """Make one visible line of a text, without repeated blanks, cut."""
    return cut(" ".join(visible(text).split()), max_chars)
