"""The flattening of a schema's root."""

from __future__ import annotations

import copy

import pytest

from mcp_actors.tools.schemas import AcceptedSchema, accept_schema

STRING = {"type": "string"}


INTEGER = {"type": "integer"}


FLATTENED = [
    (
        {
            "allOf": [
                {"properties": {"a": STRING}, "required": ["a"]},
                {"properties": {"b": INTEGER}, "required": ["b"]},
            ]
        },
        {"a": STRING, "b": INTEGER},
        ["a", "b"],
        "",
    ),
    (
        {
            "type": "object",
            "properties": {"id": STRING, "name": STRING},
            "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
        },
        {"id": STRING, "name": STRING},
        None,
        "Requires at least one of these groups of parameters: id; or name.",
    ),
    (
        {
            "oneOf": [
                {"properties": {"kind": {"const": "circle"}, "r": INTEGER}, "required": ["kind", "r"]},
                {"properties": {"kind": {"const": "box"}, "w": INTEGER, "h": INTEGER}, "required": ["kind", "w", "h"]},
            ]
        },
        {"kind": {"anyOf": [{"const": "circle"}, {"const": "box"}]}, "r": INTEGER, "w": INTEGER, "h": INTEGER},
        None,
        "Requires exactly one of these groups of parameters: kind=circle and r; or kind=box and w and h.",
    ),
    (
        {"required": ["x"], "properties": {"x": STRING}, "anyOf": [{"required": ["x"]}, {"properties": {"y": STRING}}]},
        {"x": STRING, "y": STRING},
        ["x"],
        "",
    ),
    (
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": STRING}, "required": ["a"]}}},
        {"a": STRING},
        ["a"],
        "",
    ),
    (
        {"properties": {"a": STRING}, "allOf": [{"properties": {"a": {"minLength": 1}}}]},
        {"a": {"allOf": [STRING, {"minLength": 1}]}},
        None,
        "",
    ),
    (
        {"anyOf": [STRING, {"properties": {"a": STRING}, "required": ["a"]}, False]},
        {"a": STRING},
        None,
        "Requires a.",
    ),
    ({"anyOf": [True, {"required": ["a"]}], "properties": {"a": STRING}}, {"a": STRING}, None, ""),
]


@pytest.mark.parametrize(("schema", "properties", "required", "preface"), FLATTENED)
def test_combinators_at_the_root_are_flattened(
    schema: dict[str, object], properties: object, required: object, preface: str
) -> None:
    """Properties are merged, `allOf` keeps all required, groups become a sentence (S163)."""
    before = copy.deepcopy(schema)

    accepted = accept_schema(schema)

    assert isinstance(accepted, AcceptedSchema)
    assert accepted.shape["properties"] == properties
    assert accepted.shape.get("required") == required
    assert accepted.preface == preface
    assert accepted.shape["type"] == "object"
    assert not accepted.shape.keys() & {"allOf", "anyOf", "oneOf", "$ref"}
    assert schema == before
