"""Owns the estimate of what a validation would cost, so that a hostile schema is turned away before it runs.

What this is not: validation. It knows where a schema applies its subschemas, and nothing of what they say.

Theory. A schema without references is a tree: each of its nodes meets each node of the value at most once, so the work
is at most the product of both sizes. References make it a graph, in which thirty lines that each name the next one
twice are a billion steps, and one that names itself without going down never ends. So the steps are counted as a
validator takes them, but each pair of schema node and value node is counted once and remembered; the numbers may be
astronomic, counting them is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcp_actors.tools.sanitise import MAX_DEPTH, is_list
from mcp_actors.tools.schema_walk import REFERENCE_KEYWORDS, References, is_local, subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Obstacle", "estimate_steps"]

# Pairs that are counted: each costs about two microseconds here.
MAX_PAIRS: Final = 100_000
MAXREFERENCE_KEYWORDS: Final = 500

# Subschemas that apply to the same value as the schema around them.
_SAME: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
# Found by name only; they apply nowhere by themselves.
_SHELVES: Final = frozenset({"$defs", "definitions", "contentSchema"})


class Obstacle(Exception):
    """Why something should not be validated at all, in words for a person."""


def estimate_steps(schema: JsonObject, value: Json, max_nodes: int) -> int:
    """Estimate, from above, the steps of checking `value` against `schema`.

    Raises:
        Obstacle: the schema is too large, refers to another document or to itself without an end, or what there is
            nests too deep or is too large to be estimated.
    """
    try:
        nodes, references = _survey(schema, max_nodes)
        size = _measure(value)
        return _Count(references).steps(schema, value) if references else nodes * size
    except RecursionError:
        raise Obstacle("the output schema or the value nests too deep to be checked") from None


def _survey(root: JsonObject, max_nodes: int) -> tuple[int, dict[str, JsonObject]]:
    """Count the nodes of a schema and resolve its references. Maps reference -> what it points to."""
    waiting: list[Json] = [root]
    references: dict[str, JsonObject] = {}
    known = References(root)
    nodes = 0
    while waiting:
        schema = waiting.pop()
        nodes += 1
        if nodes > max_nodes:
            raise Obstacle("the output schema is too large")
        if not isinstance(schema, Mapping):
            continue
        if "$id" in schema and schema is not root:
            raise Obstacle("the output schema holds another document, whose references mean something else")
        for keyword in REFERENCE_KEYWORDS:
            reference = schema.get(keyword)
            if reference is None or reference in references:
                continue
            if not isinstance(reference, str) or not is_local(reference):
                raise Obstacle("the output schema refers to another document, which is never fetched")
            if len(references) >= MAXREFERENCE_KEYWORDS:
                raise Obstacle("the output schema has too many references")
            try:
                target = known.resolve(reference)
            except LookupError:
                raise Obstacle(f"the output schema refers to {ascii(reference)[:80]}, which does not exist") from None
            references[reference] = target if isinstance(target, Mapping) else {}
        waiting.extend(inner for _, inner in subschemas(schema))
    return nodes, references


def _measure(value: Json) -> int:
    """Count the nodes of a value."""
    waiting: list[tuple[Json, int]] = [(value, 0)]
    size = 0
    while waiting:
        item, depth = waiting.pop()
        size += 1
        if depth > MAX_DEPTH:
            raise Obstacle(f"the value nests deeper than {MAX_DEPTH}")
        if isinstance(item, Mapping):
            waiting.extend((inner, depth + 1) for inner in item.values())
        elif is_list(item):
            waiting.extend((inner, depth + 1) for inner in item)
    return size


class _Count:
    def __init__(self, references: Mapping[str, JsonObject]) -> None:
        self._references = references
        # Maps (id of schema node, id of value node) -> steps; 0 while it is being counted. Both outlive this object.
        self._known: dict[tuple[int, int], int] = {}

    def steps(self, schema: Json, value: Json) -> int:
        if not isinstance(schema, Mapping):
            return 1
        pair = (id(schema), id(value))
        known = self._known.get(pair)
        if known is not None:
            if known == 0:
                raise Obstacle("the output schema refers to itself without an end")
            return known
        if len(self._known) >= MAX_PAIRS:
            raise Obstacle("it is too large to be checked")
        self._known[pair] = 0
        steps = 1
        for inner, item in self._applied(schema, value):
            steps += self.steps(inner, item)
        self._known[pair] = steps
        return steps

    def _applied(self, schema: JsonObject, value: Json) -> Iterator[tuple[Json, Json]]:
        """Where the subschemas apply: to the value itself, or to what is directly inside it."""
        for keyword in REFERENCE_KEYWORDS:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                yield self._references[reference], value
        for path, inner in subschemas(schema):
            keyword, _, name = path.partition("/")
            if keyword in _SAME:
                yield inner, value
            elif keyword in _SHELVES:
                continue
            elif isinstance(value, Mapping):
                if keyword == "properties":
                    if name in value:
                        yield inner, value[name]
                elif keyword in {"patternProperties", "additionalProperties", "unevaluatedProperties"}:
                    for item in value.values():
                        yield inner, item
                elif keyword == "propertyNames":
                    for key in value:
                        yield inner, key
            elif is_list(value) and keyword in {
                "items",
                "prefixItems",
                "contains",
                "unevaluatedItems",
                "additionalItems",
            }:
                for item in value:
                    yield inner, item
