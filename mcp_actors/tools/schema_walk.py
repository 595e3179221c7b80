"""Owns where schemas stand inside a schema, and what a reference inside one document points to.

What this is not: a judge of schemas (`schemas`) or of values (`validation`). Nothing here fetches anything.

Source:
    JSON Schema 2020-12, core, sections 8.2 and 10; the older spellings `definitions` and array `items` are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from mcp_actors.tools.sanitise import is_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "LIST_KEYWORDS",
    "MAP_KEYWORDS",
    "REFERENCE_KEYWORDS",
    "SCHEMA_KEYWORDS",
    "References",
    "is_local",
    "subschemas",
]

# Keywords whose value maps name -> schema.
MAP_KEYWORDS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
# Keywords whose value is an array of schemas.
LIST_KEYWORDS: Final = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})
# Keywords whose value is one schema.
SCHEMA_KEYWORDS: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"}
)
# Keywords whose value is a reference to a schema.
REFERENCE_KEYWORDS: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_HOLDERS: Final = MAP_KEYWORDS | LIST_KEYWORDS | SCHEMA_KEYWORDS


def subschemas(schema: JsonObject) -> Iterator[tuple[str, Json]]:
    """Give each place directly inside `schema` where a schema must stand, as (path, what stands there).

    A holder of the wrong shape is given itself, so that whoever judges finds no schema in that place.
    """
    for keyword in schema.keys() & _HOLDERS if len(schema) > len(_HOLDERS) else schema:
        if keyword not in _HOLDERS:
            continue
        value = schema[keyword]
        if keyword in MAP_KEYWORDS:
            if isinstance(value, Mapping):
                for name, inner in value.items():
                    yield f"{keyword}/{name}", inner
                continue
        elif keyword in LIST_KEYWORDS or keyword == "items":
            if is_list(value):
                for index, inner in enumerate(value):
                    yield f"{keyword}/{index}", inner
                continue
            if keyword == "items":
                yield keyword, value
                continue
        else:
            yield keyword, value
            continue
        yield keyword, None


def is_local(reference: str) -> bool:
    """Whether a reference stays inside its document."""
    return reference.startswith("#")


class References:
    """Follows the references of one document; what was found is remembered."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        # Maps reference -> what it points to.
        self._known: dict[str, Json] = {}

    def resolve(self, reference: str) -> Json:
        """Follow a reference: a JSON pointer, or the name of an anchor.

        Raises:
            LookupError: it points nowhere, or out of the document.
        """
        if reference not in self._known:
            self._known[reference] = self._find(reference)
        return self._known[reference]

    def _find(self, reference: str) -> Json:
        if not is_local(reference):
            raise LookupError(reference)
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchors[fragment]
        found: Json = self._root
        for token in fragment.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found[key]
            elif is_list(found) and key.isascii() and key.isdecimal() and len(key) < 10:
                found = found[int(key)]
            else:
                raise LookupError(reference)
        return found

    @cached_property
    def _anchors(self) -> dict[str, Json]:
        anchors: dict[str, Json] = {}
        waiting: list[JsonObject] = [self._root]
        while waiting:
            schema = waiting.pop()
            for keyword in ("$anchor", "$dynamicAnchor"):
                name = schema.get(keyword)
                if isinstance(name, str):
                    anchors.setdefault(name, schema)
            waiting.extend(inner for _, inner in subschemas(schema) if isinstance(inner, Mapping))
        return anchors
