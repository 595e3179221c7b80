"""Owns the place in one event stream: the id of its last event and the pause that its server asked for. Pure.

What this is not: reading the stream, or opening it again; `http_resume` and `http_stream` do.

Each stream has a cursor of its own: an id means nothing on another stream (C07).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.protocol.sse import SseEvent

__all__ = ["LONGEST_WISH", "SHORTEST_WISH", "Cursor"]

# Seconds that a server may ask for: nobody is hammered, and nobody is put off for days (fault 44).
SHORTEST_WISH: Final = 0.1
LONGEST_WISH: Final = 300.0
# A longer id is no header that a server would take.
MAX_ID_CHARS: Final = 4096


@define
class Cursor:
    """Where one stream stands."""

    # Id of the last event that had one; None: it cannot be resumed.
    event_id: str | None = None
    # The pause asked for by the last `retry` field, in seconds within the bounds; None: it asked for none.
    wish: float | None = None
    # How many events moved it or carried a message: the measure of progress.
    steps: int = 0

    def take(self, event: SseEvent) -> None:
        """Move to `event`. An empty id resets the cursor, as the rules of event streams have it (C02, fault 41)."""
        if event.id is not None or event.data:
            self.steps += 1
        if event.id is not None:
            # A header takes neither control characters nor spaces at its ends; such an id cannot be sent back.
            is_usable = event.id.isprintable() and event.id == event.id.strip() and len(event.id) <= MAX_ID_CHARS
            self.event_id = event.id if event.id and is_usable else None
        if event.retry is not None:
            self.wish = min(max(event.retry / 1000, SHORTEST_WISH), LONGEST_WISH)

    def header(self) -> list[tuple[bytes, bytes]]:
        """The header that asks for what came after the last event; none when there is no id."""
        return [(b"Last-Event-ID", self.event_id.encode())] if self.event_id is not None else []
