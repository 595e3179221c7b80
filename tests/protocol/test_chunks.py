"""Tests of the buffer for an unfinished piece."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.protocol.chunks import ChunkBuffer


@given(st.lists(st.binary(max_size=10) | st.integers(4000, 5000).map(lambda size: b"x" * size)))
def test_what_goes_in_comes_out(chunks):
    """Chunks of any size come out joined, in order, and the buffer is empty again."""
    buffer = ChunkBuffer()
    for chunk in chunks:
        buffer.append(chunk)

    assert len(buffer) == sum(map(len, chunks))
    assert buffer.take() == b"".join(chunks)
    assert len(buffer) == 0
    assert buffer.take() == b""


def test_small_chunks_are_gathered():
    """Ten thousand single bytes are kept as one part, so that the memory stays near their size."""
    buffer = ChunkBuffer()

    for _ in range(10_000):
        buffer.append(b"x")

    assert len(buffer._parts) == 1


def test_chunks_of_the_caller_are_not_changed():
    """A mutable chunk that the caller goes on using is not the buffer's."""
    buffer = ChunkBuffer()
    large, small = bytearray(b"x" * 5000), bytearray(b"y")

    buffer.append(large)
    buffer.append(small)
    buffer.append(b"z")
    large[0] = small[0] = 0

    assert buffer.take() == b"x" * 5000 + b"yz"


def test_clear_forgets():
    """A cleared buffer is as good as new."""
    buffer = ChunkBuffer()
    buffer.append(b"abc")

    buffer.clear()

    assert len(buffer) == 0
    assert buffer.take() == b""
