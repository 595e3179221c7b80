"""The layout of a JSON text as its writer has it."""

from __future__ import annotations

import pytest

from mcp_actors.config.jsonc import blank_comments
from mcp_actors.config.layout import draw, indent_of, line_end, line_margin, margin_before, newline_of


@pytest.mark.parametrize(
    ("text", "newline", "indent"),
    [("{}", "\n", "  "), ('{\n\t"a": 1\n}', "\n", "\t"), ('{\r\n    "a": 1\r\n}', "\r\n", "    ")],
)
def test_new_values_are_drawn_as_the_file_is(text: str, newline: str, indent: str) -> None:
    """Line ends and indentation are the file's own; without a margin a value stays on its line (fault 23)."""
    assert (newline_of(text), indent_of(text)) == (newline, indent)
    assert draw({"k": "é"}, text, "  ") == f'{{{newline}  {indent}"k": "é"{newline}  }}'
    assert draw({"k": [1]}, text, None) == '{"k": [1]}'


def test_margins_are_the_blanks_of_a_line() -> None:
    """A margin is what stands before something alone on its line; else the line has one, and it has none."""
    text = '{\n  "a": {"b": 1}\n}'

    assert margin_before(text, text.index('"a"')) == "  "
    assert margin_before(text, text.index('"b"')) is None
    assert line_margin(text, text.index('"b"')) == "  "


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"a": 1, // why\n"b": 2}', " // why"),
        ('{"a": 1, /* why */\r\n"b": 2}', " /* why */"),
        ('{"a": 1, /* one\n two */ "b": 2}', ""),
        ('{"a": 1, "b": 2}', ""),
    ],
)
def test_a_remark_belongs_to_its_line(text: str, rest: str) -> None:
    """A line ends behind the remarks that follow on it, unless a remark or a value goes on beyond it."""
    at = text.index(",") + 1

    assert text[at : line_end(text, blank_comments(text, "f"), at)] == rest
