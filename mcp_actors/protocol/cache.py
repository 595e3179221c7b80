"""Owns the cache of answers that say how long they live: what is kept, for whom, until when.

What this is not: the lists of a connection, which it keeps by itself; nor a fetcher. Time is an argument.

Rules (MCP 2026-07-28, "Caching"; F05, F06, E12).
Rule 1: only complete results of the methods that may be kept, and only as long as ``ttlMs`` says, at most a day.
Absent, negative or malformed is not at all.
Rule 2: the key is method and parameters and who asks. A ``private`` answer, or one that does not say, is for those
credentials alone; a ``public`` one is for everybody.
Rule 3: a round of a multi-round-trip request is never kept, nor answered from here.
Rule 4: what a notification or a refused cursor speaks of goes at once. Nothing is served after its time.
Rule 5: bounded by bytes and entries; what was used longest ago goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import McpActorsError
from mcp_actors.protocol.features import METHODS
from mcp_actors.protocol.jsonrpc import decode, encode, raw_members
from mcp_actors.protocol.listening import covers_uri
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Lifetime", "ResponseCache", "cache_key", "read_lifetime"]

MAX_TTL: Final = 24 * 60 * 60.0
# Keys of the parameters that are of a round, not of a request.
_OF_A_ROUND: Final = frozenset({"inputResponses", "requestState"})
# Kind of a list change -> the methods whose answers it makes stale.
_STALE_BY: Final = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    # What a template can make may have changed with the resources; that a resource is gone shows when it is read.
    "resources": ("resources/list", "resources/templates/list"),
}
READ: Final = "resources/read"


@frozen
class Lifetime:
    """How long an answer lives, in seconds, and whether others may have it too."""

    ttl: float
    is_public: bool


def read_lifetime(result: bytes) -> Lifetime:
    """Read the hints of an undecoded result; without good ones it does not live at all."""
    try:
        members = raw_members(result)
        result_type = decode(members.get("resultType", b'"complete"'))
        ttl = decode(members.get("ttlMs", b"null"))
        scope = decode(members.get("cacheScope", b"null"))
    except McpActorsError:
        return Lifetime(0.0, is_public=False)
    is_number = isinstance(ttl, int | float) and not isinstance(ttl, bool)
    if result_type != "complete" or not is_number or not isinstance(ttl, int | float) or not ttl > 0:
        return Lifetime(0.0, is_public=False)
    return Lifetime(min(float(ttl) / 1000, MAX_TTL) if ttl < 2**53 else MAX_TTL, is_public=scope == "public")


def cache_key(method: str, params: JsonObject | None) -> bytes | None:
    """Make the key of a request; None when its answer must not be kept (rules 1 and 3)."""
    row = METHODS.get(method)
    if row is None or not row.is_cacheable:
        return None
    own = {key: value for key, value in (params or {}).items() if key != "_meta"}
    if not _OF_A_ROUND.isdisjoint(own):
        return None
    return method.encode() + b" " + encode(_ordered(own))


def _ordered(value: Json) -> Json:
    """Sort the keys of objects, since their order means nothing."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list | tuple) else value


@frozen(eq=False)
class _Entry:
    result: bytes = field(repr=False)
    method: str
    # The resource that was read; None for lists.
    uri: str | None
    fresh_until: float


@define(eq=False)
class ResponseCache:
    """The kept answers of one server."""

    max_bytes: int = 16 * 1024 * 1024
    max_entries: int = 1000
    # Maps (key, credentials, or None for public) -> entry, the one used longest ago first.
    _entries: dict[tuple[bytes, str | None], _Entry] = field(factory=dict, init=False, repr=False)
    _bytes: int = field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, method: str, params: JsonObject | None, auth: str | None, result: bytes, now: float) -> bool:
        """Keep an answer, if it may be; True when it is.

        Args:
            auth: stands for the credentials that it was fetched with (never the credentials themselves); None for none.
            now: when the answer came.
        """
        key = cache_key(method, params)
        lifetime = read_lifetime(result) if key is not None else None
        if key is None or lifetime is None:
            return False
        # Whatever it says of itself, what is newer replaces what these credentials would be served.
        self._drop((key, auth or ""))
        self._drop((key, None))
        if lifetime.ttl <= 0 or len(result) > self.max_bytes:
            return False
        uri = params.get("uri") if params and method == READ else None
        entry = _Entry(result, method, uri if isinstance(uri, str) else None, now + lifetime.ttl)
        self._entries[key, None if lifetime.is_public else auth or ""] = entry
        self._bytes += len(result)
        while self._bytes > self.max_bytes or len(self._entries) > self.max_entries:
            self._drop(next(iter(self._entries)))
        return True

    def fresh(self, method: str, params: JsonObject | None, auth: str | None, now: float) -> bytes | None:
        """Find an answer that is fresh; None when the server must be asked."""
        entry = self._find(method, params, auth)
        return entry.result if entry is not None and now < entry.fresh_until else None

    def invalidate_list(self, kind: str) -> None:
        """Learn that the list of `kind` changed: all its pages go."""
        methods = _STALE_BY.get(kind, ())
        self._forget(lambda entry: entry.method in methods)

    def invalidate_resource(self, uri: str) -> None:
        """Learn that a resource changed: it goes, and so does what contains it (spec_client 7.8)."""
        self._forget(lambda entry: entry.uri is not None and covers_uri(entry.uri, uri))

    def forget_list(self, method: str) -> None:
        """Drop all pages: a cursor was refused, so they do not belong together (spec_client 7.5)."""
        self._forget(lambda entry: entry.method == method)

    def clear(self) -> None:
        """Drop everything: another connection, or other credentials."""
        self._entries.clear()
        self._bytes = 0

    def _find(self, method: str, params: JsonObject | None, auth: str | None) -> _Entry | None:
        key = cache_key(method, params) if self._entries else None
        if key is None:
            return None
        for place in ((key, auth or ""), (key, None)):
            entry = self._entries.pop(place, None)
            if entry is not None:
                self._entries[place] = entry  # used last
                return entry
        return None

    def _forget(self, concerns: Callable[[_Entry], bool]) -> None:
        for place in [place for place, entry in self._entries.items() if concerns(entry)]:
            self._drop(place)

    def _drop(self, place: tuple[bytes, str | None]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self._bytes -= len(entry.result)
