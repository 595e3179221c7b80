"""Input schemas: which are taken, which are flattened, which are refused and why."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.schemas import MAX_SCHEMA_NODES, AcceptedSchema, RefusedSchema, accept_schema

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def deep(levels: int) -> dict[str, object]:
    schema: dict[str, object] = STRING
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": STRING}},
        {"type": "object", "properties": {"a": {"$ref": "#/definitions/A~1b"}}, "definitions": {"A/b": STRING}},
        {"type": "object", "properties": {"a": {"$ref": "#there"}}, "$defs": {"A": {"$anchor": "there"}}},
        {"type": "object", "properties": {"tree": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"anyOf": [STRING, INTEGER]}, "b": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": True, "b": {"pattern": "^(a+)+$"}}},
        {"type": "object", "properties": {"$ref": STRING, "type": STRING, "required": STRING}},
    ],
)
def test_a_good_schema_is_handed_on(schema: dict[str, object]) -> None:
    """A schema that is fine is the very object that came; references below the root survive (S163)."""
    accepted = accept_schema(schema)

    assert isinstance(accepted, AcceptedSchema)
    assert accepted.shape is schema
    assert accepted.preface == ""


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
    ],
)
def test_a_schema_that_says_too_little_is_completed(schema: object, expected: object) -> None:
    """Missing or null means an object without parameters (fault 83)."""
    assert accept_schema(schema) == AcceptedSchema(expected)


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


WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "$defs",
        "items",
        "enum",
        "a",
        "#",
        "#/$defs/a",
    ]
)
ANY = st.recursive(
    st.none() | st.booleans() | WORDS | st.sampled_from(["object", "string"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=25,
)


@given(ANY)
def test_whatever_comes_is_judged(schema: object) -> None:
    """Any JSON is accepted or refused; what is accepted is an object schema without root combinators, and stays so."""
    judged = accept_schema(schema)

    if isinstance(judged, AcceptedSchema):
        assert judged.shape["type"] == "object"
        assert not judged.shape.keys() & {"allOf", "anyOf", "oneOf", "$ref"}
        assert accept_schema(judged.shape) == AcceptedSchema(judged.shape)
    else:
        assert judged.reason
