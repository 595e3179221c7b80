"""The place in an event stream: ids, pauses and their bounds."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.sse import SseParser
from mcp_actors.transports.cursor import Cursor

CASES = {
    "nothing": (b"data: x\n\n", None, None, 1),
    "id": (b"id: 7\ndata: x\n\n", "7", None, 1),
    "id-alone": (b"id: 7\n\n", "7", None, 1),
    "priming": (b"id: 7\ndata:\n\n", "7", None, 1),
    "last-id": (b"id: 7\ndata: x\n\nid: 8\ndata: y\n\ndata: z\n\n", "8", None, 3),
    "reset": (b"id: 7\n\nid\n\n", None, None, 2),
    "control": (b"id: a\x01b\n\n", None, None, 1),
    "space-before": (b"id:  7\n\n", None, None, 1),
    "space-after": (b"id: 7 \n\n", None, None, 1),
    "space-inside": (b"id: 7 8\n\n", "7 8", None, 1),
    "endless": (b"id: " + b"x" * 5000 + b"\n\n", None, None, 1),
    "comment": (b": ping\n\n", None, None, 0),
    "retry": (b"retry: 3000\n\n", None, 3.0, 0),
    "retry-odd": (b"retry: abc\n\n", None, None, 0),
    "retry-negative": (b"retry: -5\n\n", None, None, 0),
    "retry-zero": (b"retry: 0\n\n", None, 0.1, 0),
    "retry-huge": (b"retry: 999999999\n\n", None, 300.0, 0),
    "retry-endless": (b"retry: " + b"9" * 400 + b"\n\n", None, 300.0, 0),
    "both": (b"id: e\nretry: 500\ndata:\n\n", "e", 0.5, 1),
}


@pytest.mark.parametrize(("stream", "event_id", "wish", "steps"), CASES.values(), ids=CASES)
def test_cursor(stream, event_id, wish, steps):
    """Ids and pauses are taken from any block, and kept within bounds (C02, C07, faults 41, 44)."""
    cursor = Cursor()
    for event in SseParser(10_000).feed(stream):
        cursor.take(event)

    assert (cursor.event_id, cursor.wish, cursor.steps) == (event_id, wish, steps)
    assert cursor.header() == ([(b"Last-Event-ID", event_id.encode())] if event_id else [])
