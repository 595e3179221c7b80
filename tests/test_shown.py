"""Tests of `shown`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import ConfigError
from mcp_actors.shown import cut, one_line, strip_sequences, visible

# What was said, what is left of it.
LINES = {
    "plain": "plain",
    "": "",
    " a\r\n\tb \u2028 c\x85d\u3000e ": "a b c d e",
    "\x1b[1;31mred\x1b[0m": "red",
    "\x9b31mred": "red",
    "\x1b]0;a title\x07text": "text",
    "\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1b]0;never ended\nnext line": "next line",
    "\x1bPdevice\x9cx\x1b(By\x1b": "xy",
    "a\x00b\x08c\x7fd": "abcd",
    "\u202eevil\u200b\u2066\ufeff": "evil",
    "\ud800half\ue000": "half",
    "é € 😀 ö": "é € 😀 ö",
    "x" * 201: "x" * 199 + "…",
}


@pytest.mark.parametrize(("said", "left"), LINES.items(), ids=map(ascii, LINES))
def test_a_strangers_words_are_one_harmless_line(said: str, left: str) -> None:
    """Sequences go whole, what cannot be seen goes, blanks are folded, and a cut is marked (invariant 9, fault 8)."""
    assert one_line(said) == left


@given(st.text() | st.text("\x1b[]0;m\x07\x9b\\ \nab"), st.integers(1, 20))
def test_whatever_is_said_is_printable_and_short(text: str, limit: int) -> None:
    """No text escapes, and a second look changes nothing."""
    line = one_line(text, limit)

    assert line.isprintable()
    assert len(line) <= limit
    assert one_line(line, limit) == line
    assert visible(text).isprintable()
    assert "\x1b" not in strip_sequences(text)
    assert cut(line, limit) == line


def test_a_hostile_name_breaks_no_line_of_an_error() -> None:
    """A file's names stand in errors; nothing in them begins another line or steers a terminal (S346)."""
    name = "a\x1b[31m\nmcp-actors: all is well"
    error = ConfigError(server=name, reason="bad", file="f", key=f"mcpServers.{name}")

    assert str(error).isprintable()
    assert error.server == name
