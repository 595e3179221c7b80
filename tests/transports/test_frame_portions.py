"""How much of a WebSocket's bytes is handed on at once."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.transports.frame_portions import MAX_FRAMES, Portions


def frame(size, *, is_masked=False):
    mask = 0x80 if is_masked else 0
    if size < 126:
        head = struct.pack("!BB", 0x81, mask | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x81, mask | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, mask | 127, size)
    return head + b"\0\0\0\0" * is_masked + b"\xff" * size


def pieces(chunks):
    """Hand on chunks as a stream does; returns what went out at once."""
    portions, out = Portions(), []
    for chunk in chunks:
        rest = chunk
        while rest:
            size = portions.measure(rest)
            out.append(rest[:size])
            rest = rest[size:]
    return out


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 200_000])
@pytest.mark.parametrize("is_masked", [False, True])
def test_few_frames_are_one_portion(size, is_masked):
    """A read that holds ordinary messages is handed on whole."""
    data = frame(size, is_masked=is_masked) * 3

    assert pieces([data]) == [data]


@pytest.mark.parametrize("size", [0, 1, 126])
def test_many_frames_are_cut_between_frames(size):
    """So many frames go on at once and no more (invariant 4)."""
    data = frame(size) * (3 * MAX_FRAMES + 1)

    assert pieces([data]) == [frame(size) * MAX_FRAMES] * 3 + [frame(size)]


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 125, 126, 300, 65536]), st.booleans()), max_size=8),
    st.data(),
)
def test_cuts_of_the_network_do_not_matter(shapes, data):
    """Whatever the reads, every byte goes on once, in order, and every portion but the last holds so many frames."""
    stream = b"".join(frame(size, is_masked=is_masked) for size, is_masked in shapes) + frame(0) * (MAX_FRAMES + 9)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    out = pieces(chunks)

    assert b"".join(out) == stream
    assert max(len(piece) for piece in out[-1:]) <= 2 * (MAX_FRAMES + 9)


@given(st.binary(max_size=3000))
def test_anything_is_handed_on(garbage):
    """What is no frame goes on as well; it never stands still."""
    assert b"".join(pieces([garbage])) == garbage
