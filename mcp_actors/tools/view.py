"""Owns `ToolView`: one tool as a model or a person may see it, cleaned, capped and with an acceptable schema.

What this is not: the tool itself. `ToolView.tool` keeps what the server wrote, and that goes to the wire.

Rule 1: cleaning comes before capping (S156, S191), else hidden characters eat the limit.
Rule 2: annotations are claims of the server: only a literal true counts, and nothing is secured by them (S160, E05).
Rule 3: icons are left out, and nothing here or elsewhere fetches one (E11).
Rule 4: a tool that cannot be shown has a `problem`, in words for a person; its neighbours are shown (fault 83).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.arguments import AMBIGUOUS, ArgumentMap, map_arguments
from mcp_actors.tools.sanitise import MAX_DESCRIPTION_CHARS, cap_text, clean_json, is_clean_json, is_list
from mcp_actors.tools.schemas import AcceptedSchema, RefusedSchema, accept_schema
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.naming import ToolNames
    from mcp_actors.tools.sanitise import Cleaned

__all__ = [
    "MAX_RESULT_CHARS",
    "ToolView",
    "restore_arguments",
    "view_of",
]

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
# S224: ceiling of what a tool may claim for its results.
MAX_RESULT_CHARS: Final = 500_000


@frozen(eq=False, slots=False)  # as `Tool`
class ToolView:
    """What a model sees of one tool. Made by `view_of`; the schema is judged when first needed.

    Source:
        S158, S159: one shape for every tool, over what its server wrote (`tool`: server and raw name).
    """

    tool: Tool
    # The definition with every text cleaned, keys included.
    definition: JsonObject = field(repr=False)
    # Maps path of a field -> number of hidden code points taken from it (S195, fault 103).
    removed: Mapping[str, int] = field(factory=dict)
    max_description_chars: int = field(default=MAX_DESCRIPTION_CHARS, repr=False)
    # Why the definition cannot be used at all; see `problem`.
    _flaw: str | None = field(default=None, repr=False, alias="flaw")
    # The entry of its server has all its tools loaded at once.
    is_eager: bool = field(default=False, repr=False)

    # ── what a model reads ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """Callable name."""
        return self.tool.callable_name

    @property
    def names(self) -> ToolNames:
        """What rules may call it by."""
        return self.tool.names

    @property
    def server(self) -> str:
        """Name of the server."""
        return self.tool.server

    @property
    def title(self) -> str | None:
        """Display name, from the definition or its annotations; never used for permissions (S229)."""
        for value in (self.definition.get("title"), self.annotations.get("title")):
            if isinstance(value, str) and value.strip():
                return cap_text(value, 200)
        return None

    @cached_property
    def description(self) -> str:
        """What it does, capped; groups of parameters that stood at the schema's root come first (S157, S163)."""
        text = self.definition.get("description")
        description = text.strip() if isinstance(text, str) else ""
        if b'Of"' in self.tool.definition_bytes:  # only a combinator has something to say
            judged = self._judged
            if isinstance(judged, AcceptedSchema) and judged.preface:
                description = f"{judged.preface}\n\n{description}".rstrip()
        return cap_text(description, self.max_description_chars)

    @property
    def input_schema(self) -> JsonObject:
        """Schema of the arguments: an object schema without combinators at its root (S163).

        Raises:
            RemoteProtocolError: there is none; `problem` says why.
        """
        judged = self._judged
        if isinstance(judged, RefusedSchema):
            raise RemoteProtocolError(
                server=self.server, reason=f"the tool {self.name} cannot be used: {judged.reason}"
            )
        return judged.shape

    @property
    def problem(self) -> str | None:
        """Why this tool cannot be shown to a model; None when it can (fault 83)."""
        judged = self._judged
        return judged.reason if isinstance(judged, RefusedSchema) else None

    @cached_property
    def _judged(self) -> AcceptedSchema | RefusedSchema:
        return RefusedSchema(self._flaw) if self._flaw else accept_schema(self.definition.get("inputSchema"))

    # ── flags ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def annotations(self) -> JsonObject:
        """Hints, cleaned; a user interface may show those that are absent as unknown (S161)."""
        return _object(self.definition.get("annotations"))

    @property
    def is_read_only(self) -> bool:
        """Whether the server says that calls change nothing. Absent means no (S160)."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def is_concurrency_safe(self) -> bool:
        """Whether calls may run side by side: what reads only (S160, S208)."""
        return self.is_read_only

    @property
    def is_destructive(self) -> bool:
        """Whether the server says that calls destroy. Absent means no, other than in MCP itself (S161)."""
        return self.annotations.get("destructiveHint") is True

    @property
    def requires_user_interaction(self) -> bool:
        """Whether every call asks a person, in every mode (S168, S237)."""
        return self._meta.get("anthropic/requiresUserInteraction") is True

    @property
    def always_load(self) -> bool:
        """Whether a host that defers schemas loads this one at once: it or its server's entry says so (S168, S170)."""
        return self.is_eager or self._meta.get("anthropic/alwaysLoad") is True

    @property
    def max_result_chars(self) -> int | None:
        """Characters of text that a result may have instead of the token limit; at most 500,000 (S168, S224)."""
        value = self._meta.get("anthropic/maxResultSizeChars")
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            return None
        return min(value, MAX_RESULT_CHARS)

    @property
    def is_app_only(self) -> bool:
        """Whether the tool is for the server's own user interface and hidden from models (E15)."""
        visibility = _object(self._meta.get("ui")).get("visibility")
        return is_list(visibility) and "model" not in visibility

    @property
    def _meta(self) -> JsonObject:
        return _object(self.definition.get("_meta"))

    # ── the way back ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def output_schema(self) -> JsonObject | None:
        """Schema of structured content as the server wrote it: values are checked raw."""
        return self.tool.output_schema

    def __repr__(self) -> str:
        hidden = sum(self.removed.values())
        return f"<ToolView {self.name}{f' | {hidden} hidden code points' if hidden else ''}>"


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def view_of(tool: Tool, *, max_description_chars: int = MAX_DESCRIPTION_CHARS, is_eager: bool = False) -> ToolView:
    """Make the view of a tool. Work for one tool alone; whoever lists tools keeps the views (`listing`).

    `is_eager`: the entry of its server says ``alwaysLoad``.

    Source:
        S156-S163, S168, S187-S195.
    """
    try:
        definition = tool.definition
        if is_clean_json(tool.definition_bytes):
            return ToolView(tool, definition, NOTHING, max_description_chars, is_eager=is_eager)
        cleaned = clean_json(definition)
    except RemoteProtocolError as exc:
        flaw = f"its definition cannot be read: {exc.reason}"
        return ToolView(tool, {}, NOTHING, max_description_chars, flaw, is_eager=is_eager)
    problem = AMBIGUOUS if _is_ambiguous(cleaned, definition.get("inputSchema")) else None
    return ToolView(tool, _object(cleaned.value), cleaned.removed, max_description_chars, problem, is_eager=is_eager)


def _is_ambiguous(cleaned: Cleaned, raw_schema: Json) -> bool:
    """Whether two parameters have one cleaned name, in one object or in two (S192)."""
    if any(path.startswith("inputSchema") for path in cleaned.collisions):
        return True
    return map_arguments(raw_schema) is None


def restore_arguments(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Give a call's arguments with the property names that the server wrote (S192).

    Cheap where nothing was cleaned, which is nearly always: the arguments themselves are returned.

    Raises:
        RemoteProtocolError: the definition cannot be read.
        LocalProtocolError: the arguments nest too deep.
    """
    if is_clean_json(tool.definition_bytes):
        return arguments
    mapped = map_arguments(tool.definition.get("inputSchema"))
    return (mapped or ArgumentMap()).restore(arguments)
