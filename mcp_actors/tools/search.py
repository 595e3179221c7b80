"""Owns the search for tools: BM25 over names, titles and descriptions, so that a host may defer schemas.

What this is not: a language model's notion of meaning; words are compared as they are, but for case, joined words and a
plural's end.

Rule 1: each server's words are indexed when its shelf changes; a search adds up what the shelves know, so that one
server's change costs work for that server alone.
Rule 2: the same tools and query give the same order; equal scores stand in the order of the catalog.

Source:
    S170. Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with a field's weight
    as a count of its words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.tools.listing import Listing, Shelf
    from mcp_actors.tools.view import ToolView

__all__ = ["DEFAULT_LIMIT", "SearchIndex", "ToolMatch", "words_of"]

DEFAULT_LIMIT: Final = 5
# The usual constants of BM25: how fast repetition saturates, and how much length counts.
SATURATION: Final = 1.2
LENGTH: Final = 0.75
NAME_WEIGHT: Final = 4
TITLE_WEIGHT: Final = 2
SERVER_WEIGHT: Final = 1
MAX_QUERY_CHARS: Final = 1_000
MAX_QUERY_WORDS: Final = 50
# A word of the query also means words that begin with it, from this length on, for less.
MIN_PREFIX: Final = 3
PREFIX_WORTH: Final = 0.5

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")
# Scripts that write no spaces: two neighbours make a word.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def words_of(text: str) -> list[str]:
    """Split a text into its words in lower case: ``getHTTPServers`` gives get, http, server."""
    words: list[str] = []
    for found in _WORD.findall(text):
        word = found.lower()
        if _UNSPACED.match(word) and len(word) > 1:
            words += [word[index : index + 2] for index in range(len(word) - 1)]
        else:
            words.append(word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word)
    return words


class ToolMatch(NamedTuple):
    """A tool that was found, and how well it fits: larger is better."""

    view: ToolView
    score: float


@frozen(eq=False)
class _Indexed:
    """The words of one shelf."""

    shelf: Shelf

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        return self._read[0]

    @cached_property
    def postings(self) -> dict[str, dict[int, int]]:
        """Maps word -> position on the shelf -> weighted count."""
        return self._read[1]

    @cached_property
    def total(self) -> int:
        return sum(self.lengths)

    @cached_property
    def _read(self) -> tuple[tuple[int, ...], dict[str, dict[int, int]]]:
        lengths: list[int] = []
        postings: dict[str, dict[int, int]] = {}
        server = words_of(self.shelf.server)
        for position, view in enumerate(self.shelf.shown):
            counts = Counter(words_of(view.description))
            for words, weight in (
                (words_of(view.tool.name), NAME_WEIGHT),
                (words_of(view.title or ""), TITLE_WEIGHT),
                (server, SERVER_WEIGHT),
            ):
                for word in words:
                    counts[word] += weight
            lengths.append(counts.total())
            for word, count in counts.items():
                postings.setdefault(word, {})[position] = count
        return tuple(lengths), postings


@frozen(eq=False)
class SearchIndex:
    """Finds tools by words. A value: `replace` gives a new one that shares what has not changed."""

    _shelves: tuple[_Indexed, ...] = field(default=(), repr=False, alias="shelves")

    def replace(self, listing: Listing) -> SearchIndex:
        """Give the index of this listing; shelves that are the same are taken over. Indexing waits for a search."""
        old = {id(indexed.shelf): indexed for indexed in self._shelves}
        return SearchIndex(tuple(old.get(id(shelf)) or _Indexed(shelf) for shelf in listing.shelves))

    def search(self, query: str, limit: int = DEFAULT_LIMIT) -> tuple[ToolMatch, ...]:
        """Find the tools that fit a query, best first.

        Args:
            query: words in any order; a callable name, or a tool's raw name, finds that tool first.
            limit: at most so many matches.
        """
        query = query[:MAX_QUERY_CHARS].strip()
        words = list(dict.fromkeys(words_of(query)))[:MAX_QUERY_WORDS]
        count = sum(len(indexed.lengths) for indexed in self._shelves)
        if not count or limit <= 0:
            return ()
        mean = sum(indexed.total for indexed in self._shelves) / count or 1.0
        scores: dict[tuple[int, int], float] = {}
        for word in words:
            for meant, worth in self._expand(word):
                self._add(meant, worth, count, mean, scores)
        for place in self._exact(query):
            scores[place] = math.inf
        ranked = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
        return tuple(
            ToolMatch(self._shelves[shelf].shelf.shown[position], scores[shelf, position]) for shelf, position in ranked
        )

    def _expand(self, word: str) -> list[tuple[str, float]]:
        """The words of the index that a word of the query means, and how much each is worth."""
        meant = [(word, 1.0)]
        if len(word) >= MIN_PREFIX:
            longer = {
                known
                for indexed in self._shelves
                for known in indexed.postings
                if known.startswith(word) and known != word
            }
            meant += [(known, PREFIX_WORTH) for known in sorted(longer)[:20]]
        return meant

    def _add(self, word: str, worth: float, count: int, mean: float, scores: dict[tuple[int, int], float]) -> None:
        found = [
            (place, indexed, indexed.postings[word])
            for place, indexed in enumerate(self._shelves)
            if word in indexed.postings
        ]
        holding = sum(len(positions) for _, _, positions in found)
        if not holding:
            return
        rarity = worth * math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        for place, indexed, positions in found:
            for position, times in positions.items():
                norm = SATURATION * (1 - LENGTH + LENGTH * indexed.lengths[position] / mean)
                key = (place, position)
                scores[key] = scores.get(key, 0.0) + rarity * times * (SATURATION + 1) / (times + norm)

    def _exact(self, query: str) -> list[tuple[int, int]]:
        return [
            (place, position)
            for place, indexed in enumerate(self._shelves)
            for position, view in enumerate(indexed.shelf.shown)
            if query in (view.name, view.tool.name)
        ]
