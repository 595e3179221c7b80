"""Owns the way back: arguments as a model wrote them, with the property names that the server uses.

What this is not: validation. Arguments pass through as they are (S162); only names that cleaning had changed are put
back, and so are the choices of an ``enum`` that it had changed.

Source:
    S192, S193.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.errors import LocalProtocolError
from mcp_actors.tools.sanitise import MAX_DEPTH, clean_text, is_list
from mcp_actors.tools.schema_walk import subschemas
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["AMBIGUOUS", "ArgumentMap", "map_arguments"]

AMBIGUOUS = "two of its parameters have one name when invisible characters are removed"


@frozen
class ArgumentMap:
    """Turns what a model saw into what the server wrote; empty for nearly all tools."""

    # Maps cleaned property name -> raw property name, only where they differ.
    keys: Mapping[str, str] = field(factory=dict)
    # Maps (cleaned property name, cleaned choice) -> raw choice, only where they differ.
    choices: Mapping[tuple[str, str], str] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys or self.choices)

    def restore(self, arguments: JsonObject) -> JsonObject:
        """Give the arguments for the wire; the same object when nothing has to change.

        Raises:
            LocalProtocolError: they nest deeper than `MAX_DEPTH`.
        """
        return self._object(arguments, 0) if self else arguments

    def _object(self, value: JsonObject, depth: int) -> dict[str, Json]:
        return {self.keys.get(key, key): self._value(inner, key, depth + 1) for key, inner in value.items()}

    def _value(self, value: Json, key: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise LocalProtocolError(reason=f"arguments nest deeper than {MAX_DEPTH}")
        if isinstance(value, str):
            return self.choices.get((key, value), value)
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if is_list(value):
            return [self._value(item, key, depth + 1) for item in value]
        return value


def map_arguments(raw_schema: Json) -> ArgumentMap | None:
    """Compare a raw input schema with its cleaned form.

    Returns:
        The map; None when it would be ambiguous: one cleaned name stands for two raw ones (S192).
    """
    names: dict[str, str] = {}
    choices: dict[tuple[str, str], str] = {}
    waiting: list[tuple[str, Json]] = [("", raw_schema)]
    while waiting:
        key, schema = waiting.pop()
        if not isinstance(schema, Mapping):
            continue
        for choice in _choices(schema):
            if choices.setdefault((key, clean_text(choice)), choice) != choice:
                return None
        for path, inner in subschemas(schema):
            holder, _, name = path.partition("/")
            if holder == "properties":
                cleaned = clean_text(name)
                if names.setdefault(cleaned, name) != name:
                    return None
                waiting.append((cleaned, inner))
            else:
                waiting.append((key, inner))
    return ArgumentMap(
        {cleaned: raw for cleaned, raw in names.items() if cleaned != raw},
        {place: raw for place, raw in choices.items() if place[1] != raw},
    )


def _choices(schema: JsonObject) -> list[str]:
    listed = schema.get("enum")
    texts = [*(listed if is_list(listed) else ()), schema.get("const")]
    return [text for text in texts if isinstance(text, str)]
