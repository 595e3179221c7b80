"""The catalog in the shapes of model interfaces."""

from __future__ import annotations

import json

import pytest

from mcp_actors.tools.catalog import Tool
from mcp_actors.tools.formats import FORMATS, gemini_schema, gemini_tools
from mcp_actors.tools.view import ToolView, view_of

STRING = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"who": STRING}, "required": ["who"]}


def view(**keys: object) -> ToolView:
    return view_of(Tool("mcp__s__t", "s", "t", json.dumps({"name": "t", **keys}).encode()))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anthropic", {"name": "mcp__s__t", "description": "Greets.", "input_schema": SCHEMA}),
        (
            "openai",
            {"type": "function", "function": {"name": "mcp__s__t", "description": "Greets.", "parameters": SCHEMA}},
        ),
        (
            "openai-responses",
            {
                "type": "function",
                "name": "mcp__s__t",
                "description": "Greets.",
                "parameters": SCHEMA,
                "strict": False,
            },
        ),
        (
            "gemini",
            {"functionDeclarations": [{"name": "mcp__s__t", "description": "Greets.", "parameters": SCHEMA}]},
        ),
    ],
)
def test_each_format(name: str, expected: object) -> None:
    """A tool stands in each format under its callable name, with what a model may see."""
    assert FORMATS[name]([view(description="Greets.", inputSchema=SCHEMA)]) == [expected]


@pytest.mark.parametrize("name", FORMATS)
def test_no_tools(name: str) -> None:
    """No tools give an empty list."""
    assert FORMATS[name]([]) == []


@pytest.mark.parametrize("name", FORMATS)
def test_icons_are_left_out(name: str) -> None:
    """A model is given no icon of a tool, and nobody fetches one (E11)."""
    made = view(icons=[{"src": "https://evil.example.com/x.png"}], inputSchema=SCHEMA)

    assert "evil" not in json.dumps(FORMATS[name]([made]))


def test_gemini_takes_no_empty_parameters() -> None:
    """A tool without parameters is declared without any."""
    assert gemini_tools([view()]) == [{"functionDeclarations": [{"name": "mcp__s__t", "description": ""}]}]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "$comment": "x", "additionalProperties": False}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": STRING}}, {"type": "array", "items": STRING}),
        ({"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
        (
            {"type": "object", "properties": {"a": True}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
        ),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, {"type": "string", "minLength": 1}),
    ],
)
def test_the_subset_of_gemini(schema: dict[str, object], expected: object) -> None:
    """What the subset cannot say is left out, references are written out, null becomes a flag."""
    assert gemini_schema(schema) == expected


def test_a_schema_that_names_itself_ends() -> None:
    """Written out, a recursive schema ends in an object of any shape, however it branches."""
    properties = {name: {"$ref": "#"} for name in "abcdefgh"}

    written = json.dumps(gemini_schema({"type": "object", "properties": properties}))

    assert "$ref" not in written
    assert len(written) < 1_000_000
