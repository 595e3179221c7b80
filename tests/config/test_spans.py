"""Where the members and strings of a JSON text stand."""

from __future__ import annotations

import json

import pytest

from mcp_actors.config.spans import root_object, strings_in


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", []),
        ('{"a": 1}', [("a", "1", False)]),
        (' {"a": {"b": [1, 2]}, "c": "}",} ', [("a", '{"b": [1, 2]}', True), ("c", '"}"', True)]),
        ('{"a": [], "a": null}', [("a", "[]", True), ("a", "null", False)]),
    ],
)
def test_members_stand_where_they_were_written(text: str, members: list[tuple[str, str, bool]]) -> None:
    """Key, value and comma of each member are found, in file order, doubled keys and trailing commas included."""
    held = root_object(text)

    assert (text[held.open], text[held.close]) == ("{", "}")
    assert [(each.key, text[each.value : each.end], each.comma >= 0) for each in held.members] == members
    assert all(text[each.start] == '"' for each in held.members)
    assert all(text[each.comma] == "," for each in held.members if each.comma >= 0)


def test_the_last_of_a_doubled_key_counts() -> None:
    """As for a reader of the file, the later member is the one that is found."""
    text = '{"a": 1, "b": 2, "a": 3}'
    found = root_object(text).find("a")

    assert found is not None
    assert text[found.value : found.end] == "3"
    assert root_object(text).find("c") is None


def test_every_string_value_has_its_path() -> None:
    """Keys are no values; indices and keys lead from the root to each string."""
    text = '{"a": ["x", {"b": "y"}], "c": {"d": []}, "e": "z", "f": 1}'

    found = [(json.loads(text[start:end]), path) for start, end, path in strings_in(text)]

    assert found == [("x", ("a", 0)), ("y", ("a", 1, "b")), ("z", ("e",))]
