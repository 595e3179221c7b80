"""What a model sees of one tool."""

from __future__ import annotations

import json

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.catalog import Tool, tools_from_items
from mcp_actors.tools.sanitise import TRUNCATED
from mcp_actors.tools.view import ToolView, restore_arguments, view_of

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")


def tool(**keys: object) -> Tool:
    raw = json.dumps({"name": "t", **keys}, ensure_ascii=False).encode()
    return Tool("mcp__s__t", "s", "t", raw)


def view(**keys: object) -> ToolView:
    return view_of(tool(**keys))


def test_a_plain_tool_is_shown_as_it_is() -> None:
    """Nothing is copied or changed where nothing has to be; server and raw name stay at hand (S158, S159)."""
    plain = tool(description="Says hello.", inputSchema={"type": "object", "properties": {"who": {"type": "string"}}})

    shown = view_of(plain)

    assert (shown.name, shown.server, shown.description) == ("mcp__s__t", "s", "Says hello.")
    assert (shown.tool.server, shown.tool.name) == ("s", "t")
    assert (shown.is_read_only, shown.is_concurrency_safe, shown.is_destructive) == (False, False, False)
    assert shown.input_schema is plain.input_schema
    assert (shown.removed, shown.problem) == ({}, None)


@pytest.mark.parametrize(
    ("length", "expected"), [(0, 0), (2_047, 2_047), (2_048, 2_048), (2_049, 2_048), (50_000, 2_048)]
)
def test_descriptions_are_capped(length: int, expected: int) -> None:
    """A description has at most 2,048 code points, and a cut is marked (S157)."""
    description = view(description="\U0001f680" * length).description

    assert len(description) == expected
    assert description.endswith(TRUNCATED) is (length > 2_048)


def test_cleaning_comes_before_capping() -> None:
    """Hidden characters do not eat the limit (S191)."""
    assert view(description=TAGS * 1_000 + "visible").description == "visible"


def test_hidden_text_is_removed_everywhere_and_counted() -> None:
    """Every field is cleaned, keys included, and the raw definition stays what it was (S187, S195, fault 103)."""
    dirty = tool(
        description=f"a{TAGS}",
        title=f"T{TAGS}",
        inputSchema={"type": "object", "properties": {f"p{TAGS}": {"type": "string", "description": "\u202ex"}}},
        annotations={"title": "\u200b"},
    )
    before = dirty.definition_bytes

    shown = view_of(dirty)

    assert (shown.description, shown.title) == ("a", "T")
    assert shown.input_schema["properties"] == {"p": {"type": "string", "description": "x"}}
    assert shown.removed == {
        "description": 4,
        "title": 4,
        "inputSchema.properties.<key>": 4,
        "inputSchema.properties.p.description": 1,
        "annotations.title": 1,
    }
    assert dirty.definition_bytes is before
    assert dirty.description == f"a{TAGS}"
    assert "obey" not in repr(shown)


def test_groups_stand_before_the_description() -> None:
    """What the schema's root asked for in groups is said first (S163)."""
    schema = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}

    assert view(description="Does it.", inputSchema=schema).description == (
        "Requires exactly one of these groups of parameters: a; or b.\n\nDoes it."
    )


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"inputSchema": {"type": "string"}}, "has the type 'string' instead of object"),
        ({"inputSchema": {"properties": {"a": {}, "a\u200b": {}}}}, "one name"),
        (
            {"inputSchema": {"properties": {"x": {"properties": {"a": {}}}, "y": {"properties": {"a\u200b": {}}}}}},
            "one name",
        ),
    ],
)
def test_a_tool_that_cannot_be_shown_says_why(keys: dict[str, object], reason: str) -> None:
    """A schema that is unacceptable or ambiguous is a problem of this tool alone (S192, fault 83)."""
    shown = view(**keys)

    assert shown.problem is not None
    assert reason in shown.problem
    with pytest.raises(RemoteProtocolError, match="mcp__s__t cannot be used"):
        _ = shown.input_schema


@pytest.mark.parametrize("raw", [b"[]", b'{"name":"t"', b'{"name":"t","x\\u200b":' + b"[" * 200 + b"]" * 200 + b"}"])
def test_a_broken_definition_is_a_problem(raw: bytes) -> None:
    """A definition that cannot be read, or nests too deep, is told and raises nothing."""
    shown = view_of(Tool("mcp__s__t", "s", "t", raw))

    assert shown.problem is not None
    assert shown.problem.startswith("its definition cannot be read")
    assert shown.description == ""


FLAGS = ["is_read_only", "is_concurrency_safe", "is_destructive", "requires_user_interaction", "always_load"]


@pytest.mark.parametrize("value", [True, False, "true", 1, None, [], {}])
def test_only_a_literal_true_counts(value: object) -> None:
    """Flags are claims; whatever is not true is false, and raises nothing (S160, S161, S168)."""
    shown = view(
        annotations={"readOnlyHint": value, "destructiveHint": value},
        _meta={"anthropic/requiresUserInteraction": value, "anthropic/alwaysLoad": value},
    )

    assert [getattr(shown, flag) for flag in FLAGS] == [value is True] * 5


@pytest.mark.parametrize("keys", [{}, {"annotations": None, "_meta": 7}, {"annotations": [], "_meta": "x"}])
def test_flags_default_to_no(keys: dict[str, object]) -> None:
    """Absent or malformed hints claim nothing (S161)."""
    assert not any(getattr(view(**keys), flag) for flag in FLAGS)
    assert view(**keys).max_result_chars is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1), (200_000, 200_000), (900_000, 500_000), (0, None), (-1, None), (True, None), ("9", None), (1.5, None)],
)
def test_a_tool_may_ask_for_larger_results(value: object, expected: int | None) -> None:
    """The tool's own limit counts up to a ceiling (S168, S224)."""
    assert view(_meta={"anthropic/maxResultSizeChars": value}).max_result_chars == expected


@pytest.mark.parametrize(
    ("ui", "expected"),
    [
        ({"visibility": ["app"]}, True),
        ({"visibility": []}, True),
        ({"visibility": ["model", "app"]}, False),
        ({"visibility": "app"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_app_only_tools(ui: object, expected: bool) -> None:
    """A tool whose visibility leaves out the model is for the server's own interface (E15)."""
    assert view(_meta={"ui": ui}).is_app_only is expected


def test_arguments_go_back_in_the_servers_words() -> None:
    """Cleaned property names and choices become what the server wrote, at every depth (S192)."""
    dirty = tool(
        inputSchema={
            "properties": {
                "who\u200b": {"enum": ["a\ufe0f", "b"]},
                "list": {"items": {"properties": {"in\u00adner": {}}}},
                "free": {},
            }
        }
    )
    arguments = {"who": "a", "list": [{"inner": 1, "x": "a"}], "free": "a", "extra": None}

    assert restore_arguments(dirty, arguments) == {
        "who\u200b": "a\ufe0f",
        "list": [{"in\u00adner": 1, "x": "a"}],
        "free": "a",
        "extra": None,
    }


def test_arguments_of_a_plain_tool_are_not_touched() -> None:
    """Where nothing was cleaned the arguments are the caller's own object (S162)."""
    arguments = {"x": "\u200b"}

    assert restore_arguments(tool(inputSchema={"properties": {"x": {}}}), arguments) is arguments


def test_names_are_made_of_cleaned_names() -> None:
    """Hidden characters do not survive into callable names, and a name made of them alone is none (S191, S193)."""
    items = [json.dumps({"name": name}).encode() for name in ("de\u200blete", "\u200b\u202e", "e\u0301")]

    read = tools_from_items("s", items)

    assert [(found.callable_name, found.name) for found in read.tools] == [
        ("mcp__s__delete", "de\u200blete"),
        ("mcp__s___", "e\u0301"),
    ]
    assert read.warnings == ("tool 2 was skipped: it is made of invisible characters",)
