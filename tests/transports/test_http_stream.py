"""The pace of the GET stream, as a pure rule and against a peer that closes at once."""

from __future__ import annotations

import itertools

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.testing.contracts import RecordingSink
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.http_stream import PushStream, Reopening
from tests.transports.http_peer import HOLD, event, open_peer, sse_reply


def waits(*ends, spread=0.0):
    pace = Reopening()
    return [pace.wait_after(lived, has_delivered=sent, retry=retry, spread=spread) for lived, sent, retry in ends]


FAIL, BRIEF, LONG, USEFUL = (0.0, False, None), (0.1, False, None), (60.0, False, None), (0.1, True, None)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([FAIL] * 7, [1, 2, 4, 8, 16, 30, 30]),
        ([BRIEF] * 7, [1, 2, 4, 8, 16, 30, 30]),  # an open alone proves nothing (fault 43)
        ([FAIL, FAIL, LONG, FAIL], [1, 2, 1, 2]),
        ([FAIL, FAIL, USEFUL, BRIEF], [1, 2, 1, 2]),
        ([USEFUL] * 3, [1, 1, 1]),
        ([(9.0, True, 3.0)], [3.0]),  # the server's wish, exactly (fault 44)
        ([(9.0, True, 0.1)] * 3, [0.1] * 3),
        ([(0.0, False, 3.0)] * 4, [3, 3, 4, 8]),  # but no faster than the backoff while it proves nothing
        ([(0.0, False, 0.1)] * 3, [1, 2, 4]),
    ],
)
def test_wait_after(ends, expected):
    """The wait doubles to 30 s and starts anew only after it proved itself; retry is clamped (faults 43-44)."""
    assert expected == waits(*ends)


def test_wait_after_polling():
    """A server that gives an id and a pause closes its streams on purpose: its pause is waited for exactly (C07)."""
    pace = Reopening()
    ends = [pace.wait_after(0.0, has_delivered=False, has_moved=True, retry=1.5, spread=0.9) for _ in range(9)]

    assert ends == [1.5] * 9


def test_wait_after_hasty_polling():
    """A wish for haste is granted three times in a row; from then on a stream with nothing to say comes ever later."""
    pace = Reopening()
    ends = [pace.wait_after(0.0, has_delivered=False, has_moved=True, retry=0.1, spread=0.0) for _ in range(6)]
    again = pace.wait_after(0.0, has_delivered=True, has_moved=True, retry=0.1, spread=0.0)

    assert (ends, again) == ([0.1, 0.1, 0.1, 8, 16, 30], 0.1)


@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.booleans(), st.none() | st.floats(0.1, 300)), max_size=30),
    st.floats(0, 0.99),
)
def test_wait_after_bounded(ends, spread):
    """Whatever a server does, the wait is at least a tenth of a second and at most the longest wish."""
    assert all(0.1 <= wait <= 300 for wait in waits(*ends, spread=spread))


async def test_closing_server_is_not_hammered():
    """A server that accepts and closes the stream for ever is asked at a slowing pace (fault 43)."""
    asked = []
    notes = []

    def script(_request):
        asked.append(trio.current_time())
        if len(asked) == 6:
            enough.cancel()
        return sse_reply(b": hello\n\n")

    async with open_peer(script) as peer:
        client = HttpClient(peer.url)
        stream = PushStream(client, list, notes.append, 1000, Reopening(first=0.01, longest=0.16))
        with trio.fail_after(30), trio.CancelScope() as enough:
            await stream.run(RecordingSink())
        await client.aclose()

    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert all(gap >= due for gap, due in zip(gaps, [0.01, 0.02, 0.04, 0.08, 0.16], strict=True))
    assert notes[0] == "GET stream ended: closed by the server"


async def test_cursor_and_retry():
    """Ids and pauses are kept from blocks without data too; an empty id resets the cursor (fault 41)."""
    chunks = [b"id: a\nretry: 250\n\n", b"retry: abc\n\n", event(b"{}"), b"id: b\ndata: {}\n\n", HOLD]
    sink = RecordingSink()
    async with open_peer(lambda asked: sse_reply(*chunks)) as peer, trio.open_nursery() as nursery:
        client = HttpClient(peer.url)
        stream = PushStream(client, list, print, 1000)
        nursery.start_soon(stream.run, sink)
        await sink.until(lambda sink: len(sink.delivered) == 2)
        assert (stream.cursor.event_id, stream.cursor.wish) == ("b", 0.25)
        nursery.cancel_scope.cancel()
    await client.aclose()


async def test_event_too_long():
    """An event over the bound ends the stream, which is opened again later; nothing grows (E09)."""
    notes = []
    async with (
        open_peer(lambda asked: sse_reply(b"data: " + b"x" * 5000, HOLD)) as peer,
        trio.open_nursery() as nursery,
    ):
        client = HttpClient(peer.url)
        stream = PushStream(client, list, notes.append, 1000)
        nursery.start_soon(stream.run, RecordingSink())
        await peer.until(lambda peer: peer.hung_up == 1)
        nursery.cancel_scope.cancel()
    await client.aclose()

    assert "more than 1000 bytes" in notes[0]
