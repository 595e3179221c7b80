"""Owns our requests in flight: their ids, who waits for each, and the ids whose answers come too late.

What this is not: messages. `session` reads and writes those.

Rule 1: ids are integers from one counter, so none is ever used twice (A14).
Rule 2: an id is matched with its type intact first; only what matches nothing is read leniently (fault 72).
Rule 3: a request that we gave up on leaves a tombstone, so that its late answer is no fault of the peer (B18).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from attrs import field

from mcp_actors.protocol.inbound import our_id
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = ["Calls"]

W = TypeVar("W")

_NOBODY: Final = object()


@define(eq=False)
class _Extra:
    """What is known of a request besides who waits; most requests have none."""

    # The highest progress so far; infinite where nobody wants to hear of it.
    progress: float = math.inf
    # It is the second try of its caller; there is no third.
    is_resend: bool = False
    # It stays open for notifications (F01).
    is_listening: bool = False


@define(eq=False)
class Calls(Generic[W]):
    """The table of requests in flight."""

    # Late answers are recognised for so many ids.
    max_tombstones: int
    # The id of the next request.
    next_id: int = field(default=1, init=False)
    # Maps id -> who waits, oldest first.
    waiting: dict[int, W] = field(factory=dict, init=False)
    # Maps id -> what else is known, for requests in flight that are not ordinary.
    _extras: dict[int, _Extra] = field(factory=dict, init=False)
    # Ids that we gave up on, oldest first.
    _tombstones: dict[int, None] = field(factory=dict, init=False)

    def add(self, waiter: W, *, wants_progress: bool, is_resend: bool = False, is_listening: bool = False) -> None:
        """Register the request that went out under `next_id`."""
        request_id = self.next_id
        self.next_id = request_id + 1
        self.waiting[request_id] = waiter
        if wants_progress or is_resend or is_listening:
            progress = -math.inf if wants_progress else math.inf
            self._extras[request_id] = _Extra(progress, is_resend, is_listening)

    def take_id(self) -> int:
        """Use up an id for a request that nobody waits for: the handshake's."""
        self.next_id += 1
        return self.next_id - 1

    def settle(self, request_id: int) -> W:
        """Take out the waiter of a request that is in the table."""
        if self._extras:
            self._extras.pop(request_id, None)
        return self.waiting.pop(request_id)

    def forget(self, request_id: object) -> bool:
        """Give up on a request; False when it is not in the table."""
        if type(request_id) is not int or self.waiting.pop(request_id, _NOBODY) is _NOBODY:
            return False
        self._extras.pop(request_id, None)
        self.bury(request_id)
        return True

    def bury(self, request_id: int) -> None:
        """Remember that an answer to this id is late by our doing."""
        self._tombstones[request_id] = None
        if len(self._tombstones) > self.max_tombstones:
            del self._tombstones[next(iter(self._tombstones))]

    def is_buried(self, request_id: object) -> bool:
        """Whether this id is one that we gave up on."""
        return type(request_id) is int and request_id in self._tombstones

    def unearth(self, request_id: int) -> bool:
        """Take a late answer: True once for each tombstone."""
        return self._tombstones.pop(request_id, _NOBODY) is not _NOBODY

    def risen(self, token: Json, progress: float) -> int | None:
        """Note progress; give the id it is for, None when nobody wants it or it has not risen (S203, B16)."""
        request_id = token if type(token) is int else our_id(token)
        extra = None if request_id is None else self._extras.get(request_id)
        if extra is None or progress <= extra.progress:
            return None
        extra.progress = progress
        return request_id

    def is_resend(self, request_id: int) -> bool:
        """Whether this request in flight is a second try."""
        extra = self._extras.get(request_id)
        return extra is not None and extra.is_resend

    def listener(self, request_id: object) -> W | None:
        """Find who listens by this very id, type and all (F01); None when nobody does."""
        extra = self._extras.get(request_id) if type(request_id) is int else None
        return None if extra is None or not extra.is_listening else self.waiting.get(cast("int", request_id))

    def clear(self) -> list[W]:
        """Empty the table; give everybody who waited, oldest first."""
        waiters = list(self.waiting.values())
        self.waiting.clear()
        self._extras.clear()
        self._tombstones.clear()
        return waiters
