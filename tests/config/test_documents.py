"""Tests of `config.documents`; where odd numbers come from is in `test_jsonc`."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.documents import Document, find_odd_number
from mcp_actors.config.jsonc import parse_json


def test_locate_finds_keys_and_items() -> None:
    """Every key path leads to its key, a list path to its item, an unknown one to the nearest parent."""
    document = parse_json('{\n "a": {"x,]": [1,\n  {"y": 2}]},\n // "b": 0\n "b": "{",\n}', "f")

    assert document.locate(("a",)) == (2, 2)
    assert document.locate(("a", "x,]")) == (2, 8)
    assert document.locate(("a", "x,]", 1)) == (3, 3)
    assert document.locate(("a", "x,]", 1, "y")) == (3, 4)
    assert document.locate(("b",)) == (5, 2)
    assert document.locate(("b", "missing", 3)) == (5, 2)
    assert document.locate(("missing",)) == (1, 1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_locate_answers_for_every_path(value: object) -> None:
    """Each path of a document leads to where its key's text stands."""
    text = json.dumps(value, indent=1)
    document, lines = parse_json(text, "f"), text.split("\n")

    def walk(item: object, path: tuple[str | int, ...]) -> None:
        if isinstance(item, dict):
            for key, inner in item.items():
                line, column = document.locate((*path, key)) or (0, 0)
                assert lines[line - 1][column - 1 :].startswith(json.dumps(key))
                walk(inner, (*path, key))
        elif isinstance(item, list):
            for index, inner in enumerate(item):
                walk(inner, (*path, index))

    walk(value, ())


def test_a_document_without_text_has_no_places() -> None:
    """What a program holds in its hands stands on no line."""
    assert Document({"a": 1}, "").locate(("a",)) is None


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (1.5, None),
        (math.inf, ()),
        ({"a": [1, {"b": math.nan}], "c": math.inf}, ("a", 1, "b")),
        (["inf", 10**400], None),
    ],
)
def test_the_first_odd_number_is_found(value: object, path: tuple[str | int, ...] | None) -> None:
    """It is infinite or none; whole numbers and texts are in order."""
    assert find_odd_number(value) == path
