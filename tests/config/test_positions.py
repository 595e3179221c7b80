"""Tests of `config.positions`; that every path of any document is found is in `test_documents`."""

from __future__ import annotations

import pytest

from mcp_actors.config.positions import TOKEN, key_places, line_starts


def test_keys_and_items_have_offsets() -> None:
    """A key stands where its quotes begin, an item where its value does; what a text holds is no token."""
    text = '{"a": {"x,]": [1, {"y": 2}]}, "b": "{"}'

    assert {path: text[place:][:3] for path, place in key_places(text).items()} == {
        ("a",): '"a"',
        ("a", "x,]"): '"x,',
        ("a", "x,]", 0): "1, ",
        ("a", "x,]", 1): '{"y',
        ("a", "x,]", 1, "y"): '"y"',
        ("b",): '"b"',
    }


@pytest.mark.parametrize(("text", "starts"), [("", [0]), ("a", [0]), ("a\n", [0, 2]), ("\n\nb\r\nc", [0, 1, 2, 5])])
def test_each_line_has_a_start(text: str, starts: list[int]) -> None:
    """The first line begins at 0, each other one behind a line feed."""
    assert line_starts(text) == starts


def test_tokens_are_strings_marks_and_words() -> None:
    """Each token is in the group of its kind; a string that never ends is one all the same."""
    found = [match.groups() for match in TOKEN.finditer('[1.5, "a\\"]", NaN, "b')]

    assert [next(index for index, text in enumerate(groups) if text) for groups in found] == [1, 2, 1, 0, 1, 2, 1, 0]
