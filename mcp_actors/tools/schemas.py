"""Owns which input schemas a model interface takes, and how one that it would refuse is made acceptable.

What this is not: what no schema may be (`schema_check`), how a root is flattened (`schema_flattening`), or the
validation of values (`validation`); arguments pass through unvalidated (S162).

Rule 1: a tool whose schema cannot be made acceptable is left out alone, with its name and the reason (fault 83).
Rule 2: no reference leaves its document and nothing is ever fetched; references inside it are kept (S163).
Rule 3: what the server sent is not changed. A schema that is fine is handed on as the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from attrs import field

from mcp_actors.tools.schema_check import TYPES, SchemaRefused, are_names, check_schema, is_object_like
from mcp_actors.tools.schema_flattening import COMBINATORS, flatten_root
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["AcceptedSchema", "RefusedSchema", "accept_schema"]

_EMPTY: Final[JsonObject] = {"type": "object", "properties": {}}
# Keywords that can be wrong in no way that matters here; a property that has no others needs no closer look.
_HARMLESS: Final = frozenset(
    {"type", "description", "title", "default", "format", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "pattern"}
    | {"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
)
_PARAMETER: Final = _HARMLESS | {"enum", "items"}
_ROOT_HARMLESS: Final = frozenset(
    {"type", "properties", "required", "title", "description", "$schema", "additionalProperties"}
)
MAX_PLAIN: Final = 1_000


@frozen
class AcceptedSchema:
    """A schema that a model interface takes."""

    # An object schema without combinators at its root.
    shape: JsonObject = field(repr=False)
    # Sentence about groups of parameters, to be put before the tool's description; mostly empty.
    preface: str = ""


@frozen
class RefusedSchema:
    """A schema that cannot be made acceptable, and why, in words for a person."""

    reason: str


def accept_schema(schema: Json) -> AcceptedSchema | RefusedSchema:
    """Judge an input schema, cleaned before, and flatten its root where needed.

    Args:
        schema: value of ``inputSchema``; None where the server left it out.

    Returns:
        The schema to show to a model, or the reason why there is none.

    Source:
        S163, fault 83.
    """
    if schema is None:
        return AcceptedSchema(_EMPTY)
    if not isinstance(schema, Mapping):
        return RefusedSchema("inputSchema is not an object")
    if _is_plain(schema):
        return AcceptedSchema(schema)
    try:
        check_schema(schema)
        if "$ref" not in schema and not any(keyword in schema for keyword in COMBINATORS):
            return AcceptedSchema(_as_object(schema))
        shape, preface = flatten_root(schema)
        # A reference into what was flattened away points nowhere now.
        check_schema(shape)
    except SchemaRefused as exc:
        return RefusedSchema(str(exc))
    return AcceptedSchema(shape, preface)


def _is_plain(schema: JsonObject) -> bool:
    """Recognise the shape that nearly all tools have, fast: an object of simple parameters."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or not schema.keys() <= _ROOT_HARMLESS:
        return False
    if "required" in schema and not are_names(schema["required"]):
        return False
    if not isinstance(schema.get("additionalProperties", True), bool) or len(properties) > MAX_PLAIN:
        return False
    is_harmless = _HARMLESS.issuperset
    try:
        for inner in cast("Iterable[JsonObject]", properties.values()):
            # Nine parameters of ten are of one known type and hold harmless keywords only; what is no object raises.
            if not (is_harmless(inner) and inner["type"] in TYPES) and not _is_plain_parameter(inner):
                return False
    except (TypeError, KeyError):
        return all(map(_is_plain_parameter, properties.values()))
    return True


def _is_plain_parameter(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", "string")
    if not isinstance(kind, str) or kind not in TYPES:
        return False
    if _HARMLESS.issuperset(schema):
        return True
    if not isinstance(schema.get("enum", []), list):
        return False
    items = schema.get("items")
    # An array of simple values; what nests deeper is looked at properly.
    return schema.keys() <= _PARAMETER and (items is None or (isinstance(items, dict) and _is_plain_item(items)))


def _is_plain_item(items: dict[str, Json]) -> bool:
    return items.keys() <= _HARMLESS and _is_plain_parameter(items)


def _as_object(schema: JsonObject) -> JsonObject:
    """Make the root say that it is an object with properties; interfaces insist on both."""
    if not is_object_like(schema):
        raise SchemaRefused(f"inputSchema has the type {ascii(schema['type'])[:40]} instead of object")
    if schema.get("type") == "object" and "properties" in schema:
        return schema
    return {**schema, "type": "object", "properties": schema.get("properties", {})}
