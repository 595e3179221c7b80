"""Owns the table of protocol revisions: which era each belongs to and what it brought.

What this is not: negotiation; that is `handshake`. A revision is a row here, never a subclass (law 7).

Source: S094 and its project decision: both eras are spoken from the start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_actors.protocol.types import Era
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "LATEST_LEGACY",
    "LATEST_MODERN",
    "LEGACY",
    "MODERN",
    "REVISIONS",
    "Revision",
    "era_of",
    "named_revisions",
    "newest_mutual",
]


@frozen
class Revision:
    """One dated protocol version and the features whose wire form depends on it."""

    name: str
    era: Era
    # `structuredContent`, `outputSchema`, resource links, titles.
    has_structured_content: bool = False
    # Tasks inside the core protocol (experimental; an extension in modern).
    has_core_tasks: bool = False

    @property
    def is_modern(self) -> bool:
        """Whether the revision is stateless."""
        return self.era is Era.MODERN


# Newest first. Source: spec_client section 2, "Feature arrival", and section 3.
_ROWS: Final = (
    Revision("2026-07-28", Era.MODERN, has_structured_content=True),
    Revision("2025-11-25", Era.LEGACY, has_structured_content=True, has_core_tasks=True),
    Revision("2025-06-18", Era.LEGACY, has_structured_content=True),
    Revision("2025-03-26", Era.LEGACY),
    Revision("2024-11-05", Era.LEGACY),
)

# Maps name -> row, newest first.
REVISIONS: Final = {row.name: row for row in _ROWS}
MODERN: Final = tuple(row.name for row in _ROWS if row.is_modern)
LEGACY: Final = tuple(row.name for row in _ROWS if not row.is_modern)
LATEST_MODERN: Final = MODERN[0]
LATEST_LEGACY: Final = LEGACY[0]

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def era_of(revision: str) -> Era | None:
    """Tell the era of a revision, also of one that we do not speak; None when it is no dated version at all.

    A date after the last legacy revision can only be modern: the legacy line has ended.
    """
    row = REVISIONS.get(revision)
    if row is not None:
        return row.era
    if _DATE.fullmatch(revision) is None:
        return None
    return Era.MODERN if revision > LATEST_LEGACY else Era.LEGACY


def named_revisions(value: object) -> tuple[str, ...]:
    """Read a list of revisions that a server wrote, in its order; bounded, and what is no text is left out."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item[:40] for item in value[:100] if isinstance(item, str))


def newest_mutual(ours: Iterable[str], theirs: Iterable[str]) -> str | None:
    """Pick the first of `ours` (newest first) that is among `theirs`."""
    named = frozenset(theirs)
    return next((revision for revision in ours if revision in named), None)
