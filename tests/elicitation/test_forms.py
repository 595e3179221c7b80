"""Flat schemas, read into fields."""

from __future__ import annotations

import pytest

from mcp_actors.elicitation.fields import Choice, FieldType, Form
from mcp_actors.elicitation.forms import MAX_CHOICES, MAX_FIELDS, RefusedForm, read_form
from mcp_actors.tools.sanitise import clean_text


def read(properties, required=()):
    return read_form({"type": "object", "properties": properties, "required": list(required)}, clean_text)


def field_of(schema):
    form = read({"f": schema})
    assert isinstance(form, Form), form
    [item] = form.fields
    return item


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, FieldType.STRING),
        ({"type": "number"}, FieldType.NUMBER),
        ({"type": "integer"}, FieldType.INTEGER),
        ({"type": "boolean"}, FieldType.BOOLEAN),
        ({"type": ["string", "null"]}, FieldType.STRING),
        ({"type": "string", "enum": ["a"]}, FieldType.CHOICE),
        ({"enum": ["a"]}, FieldType.CHOICE),
    ],
)
def test_the_primitive_types(schema, kind):
    """Every primitive of the specification is a field (S283)."""
    assert field_of(schema).type is kind


AB = (Choice("a", "First"), Choice("b", "Second"))
PLAIN = (Choice("a", "a"), Choice("b", "b"))


@pytest.mark.parametrize(
    ("schema", "kind", "choices"),
    [
        ({"type": "string", "enum": ["a", "b"]}, FieldType.CHOICE, PLAIN),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]}, FieldType.CHOICE, AB),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["First"]}, FieldType.CHOICE, PLAIN),
        (
            {"type": "string", "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]},
            FieldType.CHOICE,
            AB,
        ),
        ({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}, FieldType.CHOICE, PLAIN),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, FieldType.CHOICES, PLAIN),
        (
            {
                "type": "array",
                "items": {"anyOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]},
            },
            FieldType.CHOICES,
            AB,
        ),
        (
            {
                "type": "array",
                "items": {"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]},
            },
            FieldType.CHOICES,
            AB,
        ),
    ],
)
def test_all_shapes_of_an_enum(schema, kind, choices):
    """Plain, titled, legacy-named and multiple choices are read alike (F09)."""
    item = field_of(schema)

    assert (item.type, item.choices) == (kind, choices)


def test_bounds_are_read():
    """Limits of length, number, count, and the format come along."""
    text = field_of({"type": "string", "minLength": 2, "maxLength": 9, "format": "email", "pattern": "^a"})
    number = field_of({"type": "integer", "minimum": -1, "maximum": 2.5})
    several = field_of({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b"]}})

    assert (text.min_count, text.max_count, text.format, text.pattern) == (2, 9, "email", "^a")
    assert (number.minimum, number.maximum) == (-1, 2.5)
    assert (several.min_count, several.max_count) == (1, 2)


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "default": 3}, None),
        ({"type": "string", "maxLength": 1, "default": "xx"}, None),
        ({"type": "boolean", "default": False}, False),
        ({"type": "integer", "default": 0}, 0),
        ({"type": "integer", "default": True}, None),
        ({"type": "string", "enum": ["a"], "default": "b"}, None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}, ["b"]),
    ],
)
def test_a_default_that_does_not_fit_is_none(schema, default):
    """A default is kept only when its own field takes it (F09)."""
    assert default == field_of(schema).default


def test_texts_are_cleaned_and_names_stay_raw():
    """Titles are for people, names and values for the wire (rule 2)."""
    form = read(
        {"na\u200bme": {"type": "string", "enum": ["v\u202e1"], "title": "Ti\u202etle", "description": "d\u0007"}}
    )

    [item] = form.fields
    assert (item.name, item.title, item.description) == ("na\u200bme", "Title", "d")
    assert item.choices == (Choice("v\u202e1", "v1"),)


def test_a_field_without_title_shows_its_name():
    """Its cleaned name stands for a missing title, and a mark for a name that is invisible."""
    form = read({"user_id": {"type": "string"}, "\u200b": {"type": "string"}}, required=["user_id"])

    assert [(item.title, item.is_required) for item in form.fields] == [("user_id", True), ("?", False)]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "array"},
        {"properties": []},
        {"properties": {"a": True}},
        {"properties": {"a": {"type": "object", "properties": {}}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": {"type": "array"}}},
        {"properties": {"a": {}}},
        {"properties": {"a": {"type": "null"}}},
        {"properties": {"a": {"type": ["string", "integer"]}}},
        {"properties": {"a": {"$ref": "https://evil.example/schema"}}},
        {"properties": {"a": {"enum": []}}},
        {"properties": {"a": {"enum": [{}]}}},
        {"properties": {"a": {"enum": [None]}}},
        {"properties": {"a": {"oneOf": [{"title": "no const"}]}}},
        {"properties": {"a": {"enum": [str(n) for n in range(MAX_CHOICES + 1)]}}},
        {"properties": {str(n): {"type": "string"} for n in range(MAX_FIELDS + 1)}},
        {"properties": {}, "required": ["a"]},
        {"properties": {}, "required": [[1]]},
        {"properties": {}, "required": "a"},
    ],
)
def test_what_is_no_flat_form_is_refused(schema):
    """Only a flat object of primitives can be filled in (rule 1); nothing is fetched."""
    assert isinstance(read_form(schema, clean_text), RefusedForm)


def test_a_form_without_fields_is_one():
    """A plain confirmation asks for nothing but yes or no."""
    assert read_form({"type": "object"}, clean_text) == Form()


@pytest.mark.parametrize(
    ("name", "schema", "is_secret"),
    [
        ("password", {}, True),
        ("userPassword", {}, True),
        ("db_passwd", {}, True),
        ("apiKey", {}, True),
        ("API_KEY", {}, True),
        ("x", {"title": "Your GitHub token"}, True),
        ("accessToken", {}, True),
        ("x", {"format": "password"}, True),
        ("client_secret", {}, True),
        ("cardNumber", {}, True),
        ("pin", {}, True),
        ("max_tokens", {}, False),
        ("tokenCount", {}, False),
        ("keyboard", {}, False),
        ("key", {}, False),
        ("secretary", {}, False),
        ("pinned", {}, False),
        ("session", {}, False),
        ("password", {"type": "boolean"}, False),
        ("password", {"enum": ["keep", "reset"]}, False),
    ],
)
def test_fields_that_ask_for_secrets_are_known(name, schema, is_secret):
    """Free texts named like secrets are marked; numbers of tokens and choices are not (spec_client 12)."""
    [item] = read({name: {"type": "string", **schema}}).fields

    assert item.asks_secret is is_secret
