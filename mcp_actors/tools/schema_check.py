"""Owns what no input schema may be: malformed, too large, or pointing out of itself or nowhere.

What this is not: making one acceptable (`schemas`, `schema_flattening`), or the validation of values (`validation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcp_actors.tools.sanitise import is_list
from mcp_actors.tools.schema_walk import REFERENCE_KEYWORDS, References, is_local, subschemas

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "MAX_SCHEMA_DEPTH",
    "MAX_SCHEMA_NODES",
    "TYPES",
    "SchemaRefused",
    "are_names",
    "check_schema",
    "is_object_like",
]

MAX_SCHEMA_DEPTH: Final = 64
MAX_SCHEMA_NODES: Final = 10_000
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


class SchemaRefused(Exception):
    """Why a schema cannot be shown to a model; `schemas.accept_schema` makes a value of it."""


def are_names(value: Json) -> bool:
    """Whether a value is a list of texts, as `required` is."""
    return is_list(value) and all(isinstance(name, str) for name in value)


def check_schema(root: JsonObject) -> None:
    """Refuse a schema that is malformed, too large, or points out of itself or nowhere.

    Raises:
        SchemaRefused: it is; the text says what and where.
    """
    waiting: list[tuple[str, Json, int]] = [("", root, 0)]
    seen = 0
    references = References(root)
    while waiting:
        path, schema, depth = waiting.pop()
        seen += 1
        if seen > MAX_SCHEMA_NODES:
            raise SchemaRefused(f"inputSchema holds more than {MAX_SCHEMA_NODES} schemas")
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaRefused(f"inputSchema nests deeper than {MAX_SCHEMA_DEPTH}")
        if isinstance(schema, bool):
            continue
        place = f"inputSchema at {path[1:]}" if path else "inputSchema"
        if not isinstance(schema, Mapping):
            raise SchemaRefused(f"{place} is not a schema")
        _check_words(schema, place)
        _check_references(references, schema, place)
        waiting.extend((f"{path}/{where}", inner, depth + 1) for where, inner in subschemas(schema))


def _check_words(schema: JsonObject, place: str) -> None:
    kinds = schema.get("type")
    for kind in kinds if is_list(kinds) else () if "type" not in schema else (kinds,):
        if not isinstance(kind, str) or kind not in TYPES:
            raise SchemaRefused(f"{place} has the type {ascii(kind)[:40]}")
    if "required" in schema and not are_names(schema["required"]):
        raise SchemaRefused(f"{place} has a 'required' that is not a list of names")
    if "enum" in schema and not is_list(schema["enum"]):
        raise SchemaRefused(f"{place} has an 'enum' that is not a list")


def _check_references(references: References, schema: JsonObject, place: str) -> None:
    """Refuse a reference that leaves the document or points nowhere."""
    for keyword in REFERENCE_KEYWORDS:
        if keyword not in schema:
            continue
        reference = schema[keyword]
        if not isinstance(reference, str) or not is_local(reference):
            raise SchemaRefused(f"{place} refers to another document, which is never fetched")
        try:
            target = references.resolve(reference)
        except LookupError:
            raise SchemaRefused(f"{place} refers to {ascii(reference)[:80]}, which does not exist") from None
        if not isinstance(target, Mapping | bool):
            raise SchemaRefused(f"{place} refers to {ascii(reference)[:80]}, which is not a schema")


def is_object_like(schema: JsonObject) -> bool:
    """Whether a schema lets objects be: it says so, or says nothing of types."""
    kind = schema.get("type")
    return "type" not in schema or kind == "object" or (is_list(kind) and "object" in kind)
