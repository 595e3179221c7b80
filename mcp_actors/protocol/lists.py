"""Owns the walk over the pages of one list: what to ask next, what was gathered, and when to stop.

What this is not: typed tools; items stay the bytes that the server sent (B12).

Rules. A cursor is opaque; only null or absent ends the list, an empty string does not. A cursor that repeats, too many
pages, items or bytes end the walk with a warning, and what was gathered is kept (S150, faults 70 and 71).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode_page, decode_texts
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject

__all__ = ["LIST_KEYS", "PageCollector"]

# Maps list method -> the key of its array.
LIST_KEYS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "skills/list": "skills",
}
# Maps key of the array -> the member that makes an item one of a kind.
_IDENTITY: Final = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "skills": "uri",
}
# A page may be bad from end to end; nobody reads more warnings than this.
_MAX_WARNINGS: Final = 20


@define(eq=False)
class PageCollector:
    """Gathers one list over its pages.

    Ask for `first()`, then feed each result until `feed` returns None.
    """

    method: str
    key: str
    max_pages: int = 1000
    max_items: int = 10_000
    # All pages together, as sent.
    max_bytes: int = 64 * 1024 * 1024
    # What was cut short, then what was left out, in words; at most a few.
    warnings: list[str] = field(factory=list, init=False)
    pages: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _cursors: set[str] = field(factory=set, init=False)
    # Maps identity -> undecoded item, in the server's order.
    _found: dict[str, bytes] = field(factory=dict, init=False)

    @property
    def items(self) -> list[bytes]:
        """Undecoded items in the server's order, without duplicates."""
        return list(self._found.values())

    def first(self) -> JsonObject:
        """Give the parameters of the first request."""
        return {}

    def feed(self, result: bytes) -> JsonObject | None:
        """Take the result of one page; return the parameters of the next request, None at the end.

        Raises:
            RemoteProtocolError: the page is no list result (S149). What was gathered before stays in `items`.
        """
        items, cursor = decode_page(result, self.key)
        self.pages += 1
        self._bytes += len(result)
        key = _IDENTITY.get(self.key, "name")
        for item, identity in zip(items, decode_texts(items, key), strict=True):
            if len(self._found) >= self.max_items:
                self._stop(f"stopped at {self.max_items} items")
                return None
            if isinstance(identity, RemoteProtocolError):  # costs only itself (S149)
                self._warn(f"an item without {key!r} was left out")
            elif self._found.setdefault(identity, item) is not item:
                self._warn(f"the duplicate {identity[:80]!r} was left out")
        return self._next(cursor)

    def _next(self, cursor: object) -> JsonObject | None:
        if cursor is None:
            return None
        if not isinstance(cursor, str):
            self._stop("stopped at a cursor that is no string")
        elif cursor in self._cursors:
            self._stop(f"stopped after {self.pages} pages: the cursor repeats")
        elif self.pages >= self.max_pages:
            self._stop(f"stopped at {self.max_pages} pages")
        elif self._bytes >= self.max_bytes:
            self._stop(f"stopped at {self.max_bytes} bytes")
        else:
            self._cursors.add(cursor)
            return {"cursor": cursor}
        return None

    def _stop(self, text: str) -> None:
        # First: who shows only some shows this one. What is not there matters more than what was there twice.
        self.warnings.insert(0, f"{self.method}: {text}")

    def _warn(self, text: str) -> None:
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(f"{self.method}: {text}")
