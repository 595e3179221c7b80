"""What no input schema may be."""

from __future__ import annotations

import pytest

from mcp_actors.tools.schema_check import MAX_SCHEMA_NODES
from mcp_actors.tools.schemas import RefusedSchema, accept_schema

STRING = {"type": "string"}


def deep(levels: int) -> dict[str, object]:
    schema: dict[str, object] = STRING
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "inputSchema is not an object"),
        ("object", "inputSchema is not an object"),
        (True, "inputSchema is not an object"),
        ({"type": "string"}, "inputSchema has the type 'string' instead of object"),
        ({"type": "object", "properties": {"a": {"type": "int"}}}, "inputSchema at properties/a has the type 'int'"),
        ({"type": None}, "inputSchema has the type None"),
        (
            {"type": "object", "properties": {"a": STRING, "required": ["a"]}},
            "inputSchema at properties/required is not a schema",
        ),
        ({"type": "object", "properties": []}, "inputSchema at properties is not a schema"),
        ({"type": "object", "required": "a"}, "inputSchema has a 'required' that is not a list of names"),
        ({"type": "object", "properties": {"a": {"enum": "x"}}}, "inputSchema at properties/a has an 'enum'"),
        ({"properties": {"a": {"$ref": "https://evil.example/s.json"}}}, "refers to another document"),
        ({"properties": {"a": {"$ref": "other.json#/A"}}}, "refers to another document"),
        (
            {"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"A": {}}},
            "refers to '#/$defs/B', which does not exist",
        ),
        ({"properties": {"a": {"$ref": "#/title"}}, "title": "T"}, "which is not a schema"),
        ({"$ref": "#"}, "refers to itself"),
        ({"allOf": [{"$ref": "#"}]}, "refers to itself"),
        ({"anyOf": [STRING, {"type": "array"}]}, "no branch of 'inputSchema/anyOf' is an object"),
        ({"allOf": [{"properties": {"a": STRING}}, STRING]}, "a branch of inputSchema has the type 'string'"),
        ({"properties": {"b": {"$ref": "#/anyOf/0/properties/a"}}, "anyOf": [{"properties": {"a": STRING}}]}, "exist"),
        ({"type": "object", "properties": {"a": {"anyOf": [{}] * (MAX_SCHEMA_NODES + 1)}}}, "holds more than"),
        (deep(70), "nests deeper than"),
    ],
)
def test_a_bad_schema_is_refused_with_its_reason(schema: object, reason: str) -> None:
    """What cannot be made acceptable says what is wrong and where (S163, fault 83)."""
    refused = accept_schema(schema)

    assert isinstance(refused, RefusedSchema)
    assert reason in refused.reason
