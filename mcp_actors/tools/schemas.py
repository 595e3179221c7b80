"""Owns which input schemas a model interface takes, and how one that it would refuse is made acceptable.

What this is not: validation of values (`validation`); arguments pass through unvalidated (S162).

Rule 1: a tool whose schema cannot be made acceptable is left out alone, with its name and the reason (fault 83).
Rule 2: no reference leaves its document and nothing is ever fetched; references inside it are kept (S163).
Rule 3: a combinator at the root is flattened: properties are merged, `allOf` keeps every `required`, the groups of
`anyOf` and `oneOf` become a sentence before the description (S163).
Rule 4: what the server sent is not changed. A schema that is fine is handed on as the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from attrs import define, field, frozen

from mcp_actors.tools.sanitise import is_list
from mcp_actors.tools.schema_walk import REFERENCE_KEYWORDS, References, is_local, subschemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["MAX_SCHEMA_DEPTH", "MAX_SCHEMA_NODES", "AcceptedSchema", "RefusedSchema", "accept_schema"]

MAX_SCHEMA_DEPTH: Final = 64
MAX_SCHEMA_NODES: Final = 10_000
# Combinators inside combinators at the root that are followed; also bounds chains of references.
MAX_FLATTENED: Final = 500

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_EMPTY: Final[JsonObject] = {"type": "object", "properties": {}}
_COMBINATORS: Final = ("allOf", "anyOf", "oneOf")
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


class _Refused(Exception):
    """Never leaves this file."""


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
        _check(schema)
        if "$ref" not in schema and not any(keyword in schema for keyword in _COMBINATORS):
            return AcceptedSchema(_as_object(schema))
        accepted = _flatten(schema)
        # A reference into what was flattened away points nowhere now.
        _check(accepted.shape)
    except _Refused as exc:
        return RefusedSchema(str(exc))
    return accepted


def _is_plain(schema: JsonObject) -> bool:
    """Recognise the shape that nearly all tools have, fast: an object of simple parameters."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or not schema.keys() <= _ROOT_HARMLESS:
        return False
    if "required" in schema and not _are_names(schema["required"]):
        return False
    if not isinstance(schema.get("additionalProperties", True), bool) or len(properties) > MAX_PLAIN:
        return False
    is_harmless = _HARMLESS.issuperset
    try:
        for inner in cast("Iterable[JsonObject]", properties.values()):
            # Nine parameters of ten are of one known type and hold harmless keywords only; what is no object raises.
            if not (is_harmless(inner) and inner["type"] in _TYPES) and not _is_plain_parameter(inner):
                return False
    except (TypeError, KeyError):
        return all(map(_is_plain_parameter, properties.values()))
    return True


def _is_plain_parameter(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", "string")
    if not isinstance(kind, str) or kind not in _TYPES:
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


def _are_names(value: Json) -> bool:
    return is_list(value) and all(isinstance(name, str) for name in value)


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check(root: JsonObject) -> None:
    """Refuse a schema that is malformed, too large, or points out of itself or nowhere."""
    waiting: list[tuple[str, Json, int]] = [("", root, 0)]
    seen = 0
    references = References(root)
    while waiting:
        path, schema, depth = waiting.pop()
        seen += 1
        if seen > MAX_SCHEMA_NODES:
            raise _Refused(f"inputSchema holds more than {MAX_SCHEMA_NODES} schemas")
        if depth > MAX_SCHEMA_DEPTH:
            raise _Refused(f"inputSchema nests deeper than {MAX_SCHEMA_DEPTH}")
        if isinstance(schema, bool):
            continue
        place = f"inputSchema at {path[1:]}" if path else "inputSchema"
        if not isinstance(schema, Mapping):
            raise _Refused(f"{place} is not a schema")
        _check_words(schema, place)
        _check_references(references, schema, place)
        waiting.extend((f"{path}/{where}", inner, depth + 1) for where, inner in subschemas(schema))


def _check_words(schema: JsonObject, place: str) -> None:
    kinds = schema.get("type")
    for kind in kinds if is_list(kinds) else () if "type" not in schema else (kinds,):
        if not isinstance(kind, str) or kind not in _TYPES:
            raise _Refused(f"{place} has the type {ascii(kind)[:40]}")
    if "required" in schema and not _are_names(schema["required"]):
        raise _Refused(f"{place} has a 'required' that is not a list of names")
    if "enum" in schema and not is_list(schema["enum"]):
        raise _Refused(f"{place} has an 'enum' that is not a list")


def _check_references(references: References, schema: JsonObject, place: str) -> None:
    """Refuse a reference that leaves the document or points nowhere."""
    for keyword in REFERENCE_KEYWORDS:
        if keyword not in schema:
            continue
        reference = schema[keyword]
        if not isinstance(reference, str) or not is_local(reference):
            raise _Refused(f"{place} refers to another document, which is never fetched")
        try:
            target = references.resolve(reference)
        except LookupError:
            raise _Refused(f"{place} refers to {ascii(reference)[:80]}, which does not exist") from None
        if not isinstance(target, Mapping | bool):
            raise _Refused(f"{place} refers to {ascii(reference)[:80]}, which is not a schema")


def _is_object_like(schema: JsonObject) -> bool:
    kind = schema.get("type")
    return "type" not in schema or kind == "object" or (is_list(kind) and "object" in kind)


def _as_object(schema: JsonObject) -> JsonObject:
    """Make the root say that it is an object with properties; interfaces insist on both."""
    if not _is_object_like(schema):
        raise _Refused(f"inputSchema has the type {ascii(schema['type'])[:40]} instead of object")
    if schema.get("type") == "object" and "properties" in schema:
        return schema
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


# ── flattening ───────────────────────────────────────────────────────────────────────────────────────────────────────


@define
class _Parts:
    """What the root asks for, gathered from all branches."""

    properties: dict[str, Json] = field(factory=dict)
    # Names in the order found; a dict, as a set has no order (invariant 10).
    required: dict[str, None] = field(factory=dict)
    sentences: list[str] = field(factory=list)

    def add(self, name: str, schema: Json, keyword: str) -> None:
        """Add a property; two different schemas of one name are combined below the root, where that is allowed."""
        known = self.properties.get(name)
        if known is None or known == schema:
            self.properties[name] = schema
            return
        # Both sides may have been combined here before: {"anyOf": [a, b]} and c give {"anyOf": [a, b, c]}.
        options: list[Json] = []
        for side in (known, schema):
            inner = side.get(keyword) if isinstance(side, Mapping) and len(side) == 1 else None
            options += [option for option in (inner if is_list(inner) else (side,)) if option not in options]
        self.properties[name] = {keyword: options}

    def absorb(self, other: _Parts, keyword: str) -> None:
        for name, schema in other.properties.items():
            self.add(name, schema, keyword)


def _flatten(root: JsonObject) -> AcceptedSchema:
    budget = [MAX_FLATTENED]
    parts = _gather(References(root), root, budget, is_root=True)
    dropped = {"$ref", *_COMBINATORS}
    shape: dict[str, Json] = {key: value for key, value in root.items() if key not in dropped}
    shape["type"] = "object"
    shape["properties"] = parts.properties
    if parts.required:
        shape["required"] = list(parts.required)
    return AcceptedSchema(shape, " ".join(parts.sentences))


def _gather(references: References, schema: JsonObject, budget: list[int], *, is_root: bool = False) -> _Parts:
    budget[0] -= 1
    if budget[0] < 0:
        raise _Refused("inputSchema has too many combinators at its root, or refers to itself")
    if not _is_object_like(schema):
        where = "inputSchema" if is_root else "a branch of inputSchema"
        raise _Refused(f"{where} has the type {ascii(schema['type'])[:40]} instead of object")
    parts = _Parts()
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        parts.properties.update(properties)
    required = schema.get("required")
    parts.required.update((name, None) for name in (required if is_list(required) else ()) if isinstance(name, str))

    for branch in (*_referred(references, schema), *_branches(schema, "allOf")):
        inner = _gather(references, branch, budget)
        parts.absorb(inner, "allOf")
        parts.required.update(inner.required)
        parts.sentences += inner.sentences
    for keyword in ("anyOf", "oneOf"):
        branches = [branch for branch in _branches(schema, keyword) if _is_object_like(branch)]
        if keyword in schema and not branches:
            raise _Refused(f"no branch of 'inputSchema/{keyword}' is an object")
        options = [_gather(references, branch, budget) for branch in branches]
        union = _Parts()
        for option in options:
            union.absorb(option, "anyOf")
        parts.absorb(union, "allOf")
        sentence = _sentence(keyword, options, parts.required)
        if sentence:
            parts.sentences.append(sentence)
    return parts


def _referred(references: References, schema: JsonObject) -> tuple[JsonObject, ...]:
    reference = schema.get("$ref")
    target = references.resolve(reference) if isinstance(reference, str) else None
    return (target,) if isinstance(target, Mapping) else ()


def _branches(schema: JsonObject, keyword: str) -> list[JsonObject]:
    """The branches that are objects; `true` asks for nothing and `false` is never met."""
    value = schema.get(keyword)
    branches: list[JsonObject] = []
    for branch in value if is_list(value) else ():
        if isinstance(branch, Mapping):
            branches.append(branch)
        elif branch is True:
            branches.append({})
    return branches


def _sentence(keyword: str, options: Sequence[_Parts], required: Mapping[str, None]) -> str:
    """Say which groups of parameters belong together; empty when a group asks for nothing, as then all goes."""
    groups: list[str] = []
    for option in options:
        words = [_wanted(name, option.properties.get(name)) for name in option.required if name not in required]
        if not words:
            return ""
        group = " and ".join(words)
        if group not in groups:
            groups.append(group)
    if not groups:
        return ""
    if len(groups) == 1:
        return f"Requires {groups[0]}."
    how_many = "exactly one" if keyword == "oneOf" else "at least one"
    return f"Requires {how_many} of these groups of parameters: {'; or '.join(groups)}."


def _wanted(name: str, schema: Json) -> str:
    constant = schema.get("const") if isinstance(schema, Mapping) else None
    if isinstance(constant, str | int | float) and len(str(constant)) <= 80:
        return f"{name}={constant}"
    return name
