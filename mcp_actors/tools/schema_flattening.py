"""Owns the flattening of a schema's root: what its references and combinators ask for, as properties and a sentence.

What this is not: judging schemas (`schema_check`), or what a tool without an acceptable one becomes (`schemas`).

Rule: properties are merged, `allOf` keeps every `required`, the groups of `anyOf` and `oneOf` become a sentence before
the description (S163).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.tools.sanitise import is_list
from mcp_actors.tools.schema_check import SchemaRefused, is_object_like
from mcp_actors.tools.schema_walk import References
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["COMBINATORS", "flatten_root"]

# Combinators inside combinators at the root that are followed; also bounds chains of references.
MAX_FLATTENED: Final = 500
COMBINATORS: Final = ("allOf", "anyOf", "oneOf")


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


def flatten_root(root: JsonObject) -> tuple[JsonObject, str]:
    """Give an object schema without combinators at its root, and a sentence about groups of parameters, mostly empty.

    Raises:
        SchemaRefused: the root asks for what is no object, or for too much.
    """
    budget = [MAX_FLATTENED]
    parts = _gather(References(root), root, budget, is_root=True)
    dropped = {"$ref", *COMBINATORS}
    shape: dict[str, Json] = {key: value for key, value in root.items() if key not in dropped}
    shape["type"] = "object"
    shape["properties"] = parts.properties
    if parts.required:
        shape["required"] = list(parts.required)
    return shape, " ".join(parts.sentences)


def _gather(references: References, schema: JsonObject, budget: list[int], *, is_root: bool = False) -> _Parts:
    budget[0] -= 1
    if budget[0] < 0:
        raise SchemaRefused("inputSchema has too many combinators at its root, or refers to itself")
    if not is_object_like(schema):
        where = "inputSchema" if is_root else "a branch of inputSchema"
        raise SchemaRefused(f"{where} has the type {ascii(schema['type'])[:40]} instead of object")
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
        branches = [branch for branch in _branches(schema, keyword) if is_object_like(branch)]
        if keyword in schema and not branches:
            raise SchemaRefused(f"no branch of 'inputSchema/{keyword}' is an object")
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
