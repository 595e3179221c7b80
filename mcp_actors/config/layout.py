"""Owns the layout of a JSON text as its writer has it: line ends, indentation, margins, and how a new value is drawn.

What this is not: where members stand (`spans`), nor what is changed (`editing`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = ["draw", "indent_of", "line_end", "line_margin", "margin_before", "newline_of"]

INDENT = "  "


def newline_of(text: str) -> str:
    """The line end that the text has."""
    return "\r\n" if "\r\n" in text else "\n"


def margin_before(text: str, at: int) -> str | None:
    """The blanks before `at` when nothing else stands before it on its line, else None."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip() else None


def indent_of(text: str) -> str:
    """One level of indentation, as the file has it."""
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return found[1] if found else INDENT


def draw(value: Json, text: str, margin: str | None) -> str:
    """`value` as JSON in the layout of `text`; on one line when `margin` is None."""
    if margin is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=indent_of(text)).split("\n")
    return (newline_of(text) + margin).join(lines)


def line_margin(text: str, at: int) -> str:
    """The blanks at the beginning of the line that holds `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def line_end(text: str, bare: str, at: int) -> int:
    """Where the line of `at` ends, when only remarks follow and the line's end is not inside of one; else `at`."""
    end = bare.find("\n", at)
    if end < 0 or bare[at:end].strip():
        return at
    end -= text[end - 1] == "\r" and end > at
    inside = re.compile(r"/\*(?:(?!\*/).)*\Z", re.DOTALL)
    is_line_remark = "//" in text[at:end] and "/*" not in text[at:end].split("//", 1)[0]
    return at if not is_line_remark and inside.search(text[at:end]) else end
