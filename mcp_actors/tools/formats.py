"""Owns the shapes in which model interfaces take tools: Anthropic, OpenAI (two of them), Gemini.

What this is not: calling those interfaces. The names they answer with are callable names, which the catalog resolves.

Source:
    The public references of the Messages API, the Chat Completions and Responses APIs, and the Gemini API
    (FunctionDeclaration, an OpenAPI 3.0 subset), as of 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.tools.sanitise import is_list
from mcp_actors.tools.schema_walk import References

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.resource_tools import HostTool
    from mcp_actors.tools.view import ToolView

__all__ = [
    "FORMATS",
    "Offered",
    "anthropic_tools",
    "gemini_schema",
    "gemini_tools",
    "openai_response_tools",
    "openai_tools",
]

# Keywords of a schema that Gemini knows; it refuses a declaration with any other.
_GEMINI: Final = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "properties",
        "required",
        "items",
        "anyOf",
        "default",
    }
    | {"minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength"}
    | {"pattern", "example", "propertyOrdering"}
)
# Formats that it knows, by type; another one is dropped, as it refuses those too.
_GEMINI_FORMATS: Final = frozenset(
    {("string", "enum"), ("string", "date-time"), ("number", "float"), ("number", "double")}
    | {("integer", "int32"), ("integer", "int64")}
)
# References are written out, as it knows none; a tree that names itself ends here in an object of any shape.
MAX_INLINED_DEPTH: Final = 8
MAX_INLINED_NODES: Final = 2_000


# What is offered to a model; no shape tells them apart (S166).
Offered: TypeAlias = "ToolView | HostTool"


def anthropic_tools(views: Iterable[Offered]) -> list[JsonObject]:
    """Give the ``tools`` of a request to the Messages API."""
    return [{"name": view.name, "description": view.description, "input_schema": view.input_schema} for view in views]


def _function(view: Offered) -> dict[str, Json]:
    return {"name": view.name, "description": view.description, "parameters": view.input_schema}


def openai_tools(views: Iterable[Offered]) -> list[JsonObject]:
    """Give the ``tools`` of a request to the Chat Completions API."""
    return [{"type": "function", "function": _function(view)} for view in views]


def openai_response_tools(views: Iterable[Offered]) -> list[JsonObject]:
    """Give the ``tools`` of a request to the Responses API.

    Strict mode would demand that every property is required, which a server never promised: it is off.
    """
    return [{"type": "function", **_function(view), "strict": False} for view in views]


def gemini_tools(views: Iterable[Offered]) -> list[JsonObject]:
    """Give the ``tools`` of a request to the Gemini API: one tool with all declarations; empty without tools."""
    declarations: list[Json] = []
    for view in views:
        declaration: dict[str, Json] = {"name": view.name, "description": view.description}
        if view.input_schema.get("properties"):  # an object without properties is refused
            declaration["parameters"] = gemini_schema(view.input_schema)
        declarations.append(declaration)
    return [{"functionDeclarations": declarations}] if declarations else []


# Maps name of a format -> what makes it.
FORMATS: Final[Mapping[str, Callable[[Iterable[Offered]], list[JsonObject]]]] = {
    "anthropic": anthropic_tools,
    "openai": openai_tools,
    "openai-responses": openai_response_tools,
    "gemini": gemini_tools,
}


def gemini_schema(schema: JsonObject) -> JsonObject:
    """Write an accepted schema in the subset that Gemini knows. What it cannot say it leaves out: it allows more."""
    return _Gemini(schema).schema(schema, 0)


class _Gemini:
    def __init__(self, root: JsonObject) -> None:
        self._references = References(root)
        self._nodes = 0

    def schema(self, schema: Json, depth: int) -> dict[str, Json]:
        self._nodes += 1
        if not isinstance(schema, Mapping):
            return {"type": "string"} if schema is True else {}
        if depth > MAX_INLINED_DEPTH or self._nodes > MAX_INLINED_NODES:
            return {"type": "object"}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referred(schema, reference, depth)
        written: dict[str, Json] = {key: value for key, value in schema.items() if key in _GEMINI}
        self._write_type(schema, written)
        constant = schema.get("const")
        if isinstance(constant, str):
            written["type"], written["enum"] = "string", [constant]
        self._write_parts(schema, written, depth)
        return written

    def _referred(self, schema: JsonObject, reference: str, depth: int) -> dict[str, Json]:
        try:
            target = self._references.resolve(reference)
        except LookupError:
            return {"type": "object"}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return self.schema({**target, **beside} if isinstance(target, Mapping) else target, depth + 1)

    @staticmethod
    def _write_type(schema: JsonObject, written: dict[str, Json]) -> None:
        """Write one type; several become alternatives, and null becomes a flag."""
        kinds = schema.get("type")
        if is_list(kinds):
            named = [kind for kind in kinds if kind != "null"]
            written.pop("type", None)
            if len(named) != len(kinds):
                written["nullable"] = True
            if len(named) == 1:
                written["type"] = named[0]
            elif named:
                written["anyOf"] = [{"type": kind} for kind in named]
        if (written.get("type"), written.get("format")) not in _GEMINI_FORMATS:
            written.pop("format", None)
        if "enum" in written:
            choices = schema.get("enum")
            texts = [choice for choice in (choices if is_list(choices) else ()) if isinstance(choice, str) and choice]
            # Only texts can be choices there.
            if texts and written.get("type", "string") == "string":
                written["type"], written["enum"] = "string", texts
            else:
                del written["enum"]

    def _write_parts(self, schema: JsonObject, written: dict[str, Json], depth: int) -> None:
        properties = written.get("properties")
        if isinstance(properties, Mapping):
            written["properties"] = {name: self.schema(inner, depth + 1) for name, inner in properties.items()}
            required = written.get("required")
            if is_list(required):
                written["required"] = [name for name in required if name in properties]
        else:
            written.pop("required", None)
        for keyword in ("anyOf", "oneOf"):
            options = schema.get(keyword)
            if is_list(options):
                written["anyOf"] = [self.schema(option, depth + 1) for option in options]
        parts = schema.get("allOf")
        for part in parts if is_list(parts) else ():
            for key, value in self.schema(part, depth + 1).items():
                written.setdefault(key, value)
        items = schema.get("items")
        if isinstance(items, Mapping):
            written["items"] = self.schema(items, depth + 1)
        elif written.get("type") == "array":
            written["items"] = {"type": "string"}
        else:
            written.pop("items", None)
