"""Tests of the event stream parser: WHATWG rules, every chunking, bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.sse import SseEvent, SseParser

STREAM = (
    "\ufeff: hello\n\n"
    'event: message\ndata: {"a":\ndata: "é🎉"}\nid: 1\n\n'
    ": ping\n"
    "id: 2\ndata:\n\n"
    "event: ping\ndata: {}\n\n"
    "retry: 3000\n\n"
    "data:x\n\n"
    "data: unfinished"
).encode()
EVENTS = [
    SseEvent("message", '{"a":\n"é🎉"}'.encode(), "1"),
    SseEvent("message", None, "2"),
    SseEvent("ping", b"{}"),
    SseEvent("message", None, retry=3000),
    SseEvent("message", b"x"),
]
LINES = STREAM.count(b"\n")
ENDS = {"LF": b"\n", "CR": b"\r", "CRLF": b"\r\n"}


def feed_all(parser: SseParser, chunks) -> list[SseEvent]:
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_events_survive_a_cut_at_every_byte(end):
    """All three line ends parse alike, wherever the reads are cut (faults 39-41, S082)."""
    stream = STREAM.replace(b"\n", end)

    for cut in range(len(stream) + 1):
        assert feed_all(SseParser(1000), [stream[:cut], stream[cut:]]) == EVENTS, cut


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_events_survive_single_bytes(end):
    """A stream that comes byte by byte gives the same events (S082)."""
    stream = STREAM.replace(b"\n", end)

    assert feed_all(SseParser(1000), [bytes([byte]) for byte in stream]) == EVENTS


@given(
    st.lists(st.sampled_from(list(ENDS.values())), min_size=STREAM.count(b"\n"), max_size=STREAM.count(b"\n")),
    st.data(),
)
def test_mixed_line_ends_in_any_chunking_parse_alike(ends, data):
    """Line ends may be mixed in one stream (fault 39); CR and LF of two lines are one end when they meet."""
    lines = STREAM.split(b"\n")
    stream = lines[0]
    for end, line in zip(ends, lines[1:], strict=True):
        # CR, then a blank line ended by LF, would be one CR LF: two ends are needed there.
        stream += (b"\n" if end == b"\n" and stream.endswith(b"\r") else b"") + end + line
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert feed_all(SseParser(1000), chunks) == EVENTS


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"data: x", [SseEvent("message", b"x")]),
        (b"data:  x", [SseEvent("message", b" x")]),
        (b"data", []),
        (b"data:\ndata:", [SseEvent("message", b"\n")]),
        (b"data: a: b", [SseEvent("message", b"a: b")]),
        (b"event: e\nevent: f\ndata: x", [SseEvent("f", b"x")]),
        (b"event: e", []),
        (b"Data: x", []),
        (b"other: x", []),
        (b": comment", []),
        (b":", []),
        (b"id: 7", [SseEvent("message", None, "7")]),
        (b"id", [SseEvent("message", None, "")]),
        (b"id: a\0b", []),
        (b"retry: 0", [SseEvent("message", None, retry=0)]),
        (b"retry: 999999999", [SseEvent("message", None, retry=999999999)]),
        (b"retry: " + b"9" * 5000, [SseEvent("message", None, retry=10**15)]),
        (b"retry: abc", []),
        (b"retry: -5", []),
        (b"retry: 1.5", []),
        (b"retry:", []),
        (b"data: \xff", [SseEvent("message", b"\xff")]),
        (b"id: \xff\ndata: x", [SseEvent("message", b"x", "�")]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_each_field_follows_the_standard(block, expected):
    """Fields mean what WHATWG says; blocks without data move the cursor only (faults 40, 41, 44)."""
    assert SseParser(10_000).feed(block + b"\n\n") == expected


def test_fields_do_not_leak_into_the_next_event():
    """Every block starts fresh: its id is its own or none."""
    parser = SseParser(1000)

    first, second = parser.feed(b"event: e\nid: 1\nretry: 5\ndata: a\n\ndata: b\n\n")

    assert first == SseEvent("e", b"a", "1", 5)
    assert second == SseEvent("message", b"b")


def test_a_bom_is_skipped_at_the_start_only():
    """A BOM in a later line is part of that line."""
    assert SseParser(1000).feed(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [SseEvent("message", b"a")]


@pytest.mark.parametrize(
    "chunks",
    [[b"data: " + b"x" * 11 + b"\n"], [b"data: " + b"x" * 20], [b"x"] * 20, [b"data: xxxxx\n"] * 3, [b":" + b"x" * 20]],
)
def test_an_event_over_the_bound_raises(chunks):
    """An event that is too large is refused, in one line, in many, or unfinished."""
    with pytest.raises(RemoteProtocolError, match="too large"):
        feed_all(SseParser(10), chunks)


def test_a_large_event_in_small_chunks_is_whole():
    """An event of 4 MiB arrives whole in chunks of 16 KiB."""
    data = b"x" * (4 * 1024 * 1024)
    stream = b"data: " + data + b"\n\n"

    events = feed_all(SseParser(len(data) + 6), [stream[i : i + 16384] for i in range(0, len(stream), 16384)])

    assert events == [SseEvent("message", data)]


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_parse(chunks):
    """No bytes make the parser raise below its bound, and it makes up none."""
    events = feed_all(SseParser(10_000), chunks)

    assert all(isinstance(event, SseEvent) for event in events)
    assert sum(len(event.data) for event in events) <= sum(map(len, chunks))
