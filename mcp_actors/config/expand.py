"""Owns the expansion of ``${VAR}`` and ``${VAR:-default}`` in one text.

What this is not: the list of fields that are expanded (`validate`), nor the forms of other programs (`dialects`).

Rules.
1. A name is a letter or underscore, then letters, digits, underscores; any other ``${...}`` stays as it is, unflagged.
2. The default counts when the variable is unset *or empty*; its braces balance and it may itself hold references.
3. What came out of a variable is never looked at again.
4. A reference without default to an unset variable stays as it is and is reported by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_NESTING", "Expansion", "expand"]

# Defaults within defaults. Three are seen in the field; the bound keeps a hostile file from exhausting the stack.
MAX_NESTING = 20

# A dotted name (`user_config.KEY`) is known only where a plugin's host provides it; otherwise it stays literal (S031).
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)?)(:-|\})")
BRACE = re.compile(r"[{}]")


@frozen
class Expansion:
    """A text with its variables filled in. `unset`: the names that had neither value nor default, first seen first."""

    text: str = field(repr=False)
    unset: tuple[str, ...] = ()


def expand(text: str, environ: Mapping[str, str], fixed: Mapping[str, str] | None = None) -> Expansion:
    """Fill in the variables of `text`, once.

    Args:
        text: as written in a file.
        environ: variable name -> value.
        fixed: names that we provide ourselves, before `environ` (``CLAUDE_PROJECT_DIR``, a plugin's own).

    Returns:
        The text and the names that were unset. Takes linear time.

    Source:
        S027-S031, faults 25 and 26, and the project decisions on S027 and S029.
    """
    if "${" not in text:
        return Expansion(text)
    walk = _Walk(text, environ, fixed or {}, _closing_braces(text))
    walk.span(0, len(text), 0)
    return Expansion("".join(walk.pieces), tuple(walk.unset))


@define
class _Walk:
    text: str = field(repr=False)
    environ: Mapping[str, str] = field(repr=False)
    fixed: Mapping[str, str]
    # Position of an opening brace -> position of the one that closes it.
    closing: Mapping[int, int]
    pieces: list[str] = field(factory=list)
    # Insertion-ordered set of names.
    unset: dict[str, None] = field(factory=dict)

    def span(self, start: int, end: int, depth: int) -> None:
        """Write out ``text[start:end]``."""
        while (match := REFERENCE.search(self.text, start, end)) is not None:
            name, ending = match.groups()
            self.pieces.append(self.text[start : match.start()])
            value = self.fixed.get(name, self.environ.get(name))
            start = match.end()
            if ending == "}":
                self.pieces.append(match.group() if value is None else value)
                if value is None and "." not in name:
                    self.unset[name] = None
                continue
            close = self.closing.get(match.start() + 1)
            if close is None or depth == MAX_NESTING:
                self.pieces.append(match.group())
                continue
            if value:
                self.pieces.append(value)
            else:
                self.span(start, close, depth + 1)
            start = close + 1
        self.pieces.append(self.text[start:end])


def _closing_braces(text: str) -> dict[int, int]:
    """Map each opening brace to its closing one, in one pass."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for brace in BRACE.finditer(text):
        if brace.group() == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()
    return closing
