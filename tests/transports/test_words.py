"""`words`: the last lines of a child, bounded and clean."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.transports.words import MAX_LINE_CHARS, MAX_LINES, LastLines, LineLimit, clean_line

TEXT = "first € line\nsecond 😀\r\n\n\x1b[31mred\x1b[0m\nopen ü".encode()
LINES = ("first € line", "second 😀", "red", "open ü")


@given(st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_lines_do_not_depend_on_chunks(cuts) -> None:
    """Whatever the cuts, characters are whole and lines the same (fault 13)."""
    words = LastLines()
    edges = [0, *sorted(cuts), len(TEXT)]

    for start, end in itertools.pairwise(edges):
        words.feed(TEXT[start:end])

    assert words.tail() == LINES


def test_secrets_are_starred_before_a_line_is_cut() -> None:
    """Of what the child was given to be known by nothing is kept, no beginning of it either (S352, fault 102)."""
    words = LastLines(("s3cret-longer", "s3cret"))

    fresh = words.feed(b"bad s3cret-longer, s3cret\n" + b"x" * (MAX_LINE_CHARS - 5) + b" s3cret")
    words.add(b"s3cret")

    assert fresh == ["bad ***, ***"]
    assert not any("s3c" in line for line in words.tail())


def test_memory_is_bounded() -> None:
    """A line without end and lines without number keep a bounded tail (fault 7)."""
    words = LastLines()

    for _ in range(200):
        words.feed(b"x" * 65536)
    fresh = words.feed(b"\n" + b"y\n" * 100_000)

    assert len(fresh) == MAX_LINES
    assert len(words.tail()) == MAX_LINES
    assert len(words._open) == 0


def test_long_line_is_cut() -> None:
    """A line is cut with a mark, after decoding."""
    line = clean_line("é".encode() * 5000)

    assert len(line) == MAX_LINE_CHARS
    assert line.endswith("…")


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"a\x00b\x08c\x7f", "abc"),
        (b"a\tb", "a    b"),
        ("\u202eevil\u200b\u2066".encode(), "evil"),
        (b"\xff\xfe", "��"),
        (b"10%\r20%\r", "10% 20%"),
        ("\x9b31mx".encode(), "x"),
    ],
)
def test_nothing_moves_the_cursor(raw, clean) -> None:
    """Escapes, controls and direction marks are taken out (fault 8)."""
    assert clean_line(raw) == clean


def test_limit_counts_what_it_holds_back() -> None:
    """At most so many lines a second are shown; the first line afterwards names the gap (fault 8)."""
    limit = LineLimit(burst=2)

    shown = [limit.admit(list("abc"), 0.1), limit.admit(["d"], 0.9), limit.admit(["e"], 1.0), limit.admit([], 2.0)]

    assert shown == [["a", "b"], [], ["(2 lines not shown)", "e"], []]
