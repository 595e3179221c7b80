"""Tests of newline framing: every chunking, every line end, every bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.framing import LineFramer, encode_line

STREAM = '{"a":1}\n\r\n{"b":"é🎉"}\r\n   \n\n{"c":3}\nrest'.encode()
LINES = [b'{"a":1}', '{"b":"é🎉"}'.encode(), b'{"c":3}']


def feed_all(framer: LineFramer, chunks) -> list[bytes]:
    return [line for chunk in chunks for line in framer.feed(chunk)]


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_lines_survive_a_cut_at_every_byte(cut):
    """Two reads give the same lines wherever the cut is, in the middle of a character too (faults 10, 13, 14)."""
    framer = LineFramer(1000)

    assert feed_all(framer, [STREAM[:cut], STREAM[cut:]]) == LINES
    assert len(framer._pending) == len(b"rest")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\r\n", b" \n"])
def test_blank_lines_end_what_is_pending_and_are_dropped(end):
    """However many there are and wherever they begin, blank lines do no more than one line end."""
    framer = LineFramer(1000)

    assert feed_all(framer, [b"a", end * 10_000 + b"b" + end * 3, b"c\r", end * 5]) == [
        b"a " if end == b" \n" else b"a",
        b"b " if end == b" \n" else b"b",
        b"c\r " if end == b" \n" else b"c\r" if end == b"\r\n" else b"c",
    ]
    assert len(framer._pending) == 0


def test_lines_survive_single_bytes():
    """A stream that comes byte by byte gives the same lines (fault 10)."""
    assert feed_all(LineFramer(1000), [bytes([byte]) for byte in STREAM]) == LINES


@given(st.lists(st.binary(max_size=20)), st.data())
def test_any_chunking_gives_the_same_lines(pieces, data):
    """The lines depend on the bytes alone, not on how they were read."""
    stream = b"\n".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    whole, cut = LineFramer(1000), LineFramer(1000)
    assert feed_all(cut, chunks) == feed_all(whole, [stream])
    assert len(cut._pending) == len(whole._pending)


@given(st.lists(st.binary(min_size=1, max_size=50).filter(lambda line: not set(line) & set(b"\r\n") and line.strip())))
def test_what_is_framed_comes_back(messages):
    """A message that was made a line is read as the same message."""
    assert feed_all(LineFramer(50), map(encode_line, messages)) == messages


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("is_split", [False, True])
def test_a_line_of_exactly_the_bound_passes(end, is_split):
    """The bound counts the line without its end."""
    stream = b"x" * 10 + end

    assert feed_all(LineFramer(10), [stream[:11], stream[11:]] if is_split else [stream]) == [b"x" * 10]


@pytest.mark.parametrize("chunks", [[b"x" * 11 + b"\n"], [b"x" * 12], [b"x"] * 12, [b"x" * 11, b"\n"]])
def test_a_line_over_the_bound_raises(chunks):
    """A line that is too long is refused, complete or not, and memory is given back (fault 12)."""
    framer = LineFramer(10)

    with pytest.raises(RemoteProtocolError, match="too large"):
        feed_all(framer, chunks)
    assert len(framer._pending) == 0


def test_lines_before_a_long_one_are_delivered_first():
    """What was complete before the overrun is returned; the next read raises."""
    framer = LineFramer(10)

    assert framer.feed(b"ok\n" + b"x" * 11 + b"\nlost\n") == [b"ok"]
    with pytest.raises(RemoteProtocolError):
        framer.feed(b"more\n")


def test_a_large_line_in_small_chunks_is_whole():
    """A line of 12 MiB arrives whole in chunks of 64 KiB (fault 11)."""
    line = b"x" * (12 * 1024 * 1024)
    size = 65536

    framer = LineFramer(16 * 1024 * 1024)
    lines = feed_all(framer, [line[start : start + size] for start in range(0, len(line), size)] + [b"\n"])

    assert lines == [line]


@pytest.mark.parametrize("data", [b"a\nb", b"a\n", b"a\rb", b"a\r\n"])
def test_a_message_with_a_line_break_is_refused(data):
    """MUST NOT contain embedded newlines: we never write one (fault 14)."""
    with pytest.raises(LocalProtocolError):
        encode_line(data)
