"""Input schemas: which are taken, which are flattened, which are refused and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.schemas import AcceptedSchema, accept_schema

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


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
