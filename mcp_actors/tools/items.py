"""Owns resources, resource templates and prompts as their servers defined them: raw, decoded when read.

What this is not: their contents, which a call fetches; nor what a person sees: `shown_*` is cleaned, the rest is raw.

Rule 1: raw names and URIs go back to the server untouched (S194). Rule 2: a bad item is left out alone (S149).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.naming import callable_name
from mcp_actors.tools.sanitise import cap_text, clean_text, is_list
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_actors.jsontypes import JsonObject

__all__ = [
    "Item",
    "Prompt",
    "PromptArgument",
    "Resource",
    "ResourceTemplate",
    "prompts_from_items",
    "resources_from_items",
    "templates_from_items",
]

MAX_SHOWN_NAME_CHARS: Final = 200


@frozen(eq=False)
class Item:
    """What all three have."""

    # Name of the server.
    server: str
    # Raw key within the server: a URI, a URI template, a prompt's name.
    key: str
    # One JSON object as sent, undecoded.
    definition_bytes: bytes = field(repr=lambda data: f"<{len(data)} bytes>")

    @cached_property
    def definition(self) -> JsonObject:
        """The definition as sent, every key kept.

        Raises:
            RemoteProtocolError: it is not a JSON object.
        """
        return jsonrpc.decode_object(self.definition_bytes)

    def _text(self, name: str) -> str | None:
        value = self.definition.get(name)
        return value if isinstance(value, str) else None

    @property
    def name(self) -> str:
        """Raw name; the key where there is none."""
        return self._text("name") or self.key

    @property
    def shown_name(self) -> str:
        """Title, else name; cleaned and capped."""
        return cap_text(clean_text(self._text("title") or self.name), MAX_SHOWN_NAME_CHARS)

    @property
    def shown_key(self) -> str:
        """The key for display; it may differ from the one that goes to the server (S194)."""
        return clean_text(self.key)

    @property
    def description(self) -> str:
        """What it is, cleaned and capped; empty when the server gave none."""
        return cap_text(clean_text(self._text("description") or "").strip())


@frozen(eq=False)
class Resource(Item):
    """Something to read under a URI (S322)."""

    @property
    def uri(self) -> str:
        """Raw URI, as ``resources/read`` wants it."""
        return self.key

    @property
    def mime_type(self) -> str | None:
        """Media type, cleaned; None when the server gave none."""
        value = self._text("mimeType")
        return None if value is None else clean_text(value)

    def row(self) -> dict[str, str]:
        """The resource as the list tool gives it to a model (S320); the URI is shown as it is to be sent back."""
        row = {"uri": self.uri, "name": self.shown_name, "server": self.server}
        if self.mime_type:
            row["mimeType"] = self.mime_type
        if self.description:
            row["description"] = self.description
        return row


@frozen(eq=False)
class ResourceTemplate(Item):
    """A pattern of URIs (S325)."""

    @property
    def uri_template(self) -> str:
        """Raw template, RFC 6570."""
        return self.key


class PromptArgument(NamedTuple):
    """One declared argument of a prompt."""

    # Raw name, as ``prompts/get`` wants it.
    name: str
    shown_name: str
    description: str
    is_required: bool


@frozen(eq=False)
class Prompt(Item):
    """A prompt of a server, which a person calls as a command (S332)."""

    @property
    def callable_name(self) -> str:
        """Name of the command without its slash, made as for tools."""
        return callable_name(self.server, self.key, visible=clean_text(self.key))

    @cached_property
    def arguments(self) -> tuple[PromptArgument, ...]:
        """Declared arguments in order; malformed ones are left out."""
        declared = self.definition.get("arguments")
        found: list[PromptArgument] = []
        for entry in declared if is_list(declared) else ():
            name = entry.get("name") if isinstance(entry, Mapping) else None
            if not isinstance(entry, Mapping) or not isinstance(name, str):
                continue
            text = entry.get("description")
            description = cap_text(clean_text(text)) if isinstance(text, str) else ""
            found.append(PromptArgument(name, clean_text(name), description, entry.get("required") is True))
        return tuple(found)


T = TypeVar("T", bound=Item)


def _read(
    kind: str, key: str, make: Callable[[str, bytes], T], items: Iterable[bytes]
) -> tuple[dict[str, T], list[str]]:
    found: dict[str, T] = {}
    warnings: list[str] = []
    for position, raw in enumerate(items, 1):
        try:
            value = jsonrpc.decode(jsonrpc.raw_members(raw).get(key, b"null"))
        except RemoteProtocolError as exc:
            warnings.append(f"{kind} {position} was skipped: {exc.reason}")
            continue
        if not isinstance(value, str) or not value:
            warnings.append(f"{kind} {position} was skipped: it has no {key}")
        elif value in found:
            warnings.append(f"{kind} {position} was skipped: its {key} is there already")
        else:
            found[value] = make(value, raw)
    return found, warnings


def resources_from_items(server: str, items: Iterable[bytes]) -> tuple[tuple[Resource, ...], tuple[str, ...]]:
    """Make resources of the undecoded items of a ``resources/list`` answer; also a warning for each left out."""
    found, warnings = _read("resource", "uri", lambda uri, raw: Resource(server, uri, raw), items)
    return tuple(found.values()), tuple(warnings)


def templates_from_items(server: str, items: Iterable[bytes]) -> tuple[tuple[ResourceTemplate, ...], tuple[str, ...]]:
    """Make templates of the undecoded items of a ``resources/templates/list`` answer, as `resources_from_items`."""
    found, warnings = _read("template", "uriTemplate", lambda key, raw: ResourceTemplate(server, key, raw), items)
    return tuple(found.values()), tuple(warnings)


def prompts_from_items(server: str, items: Iterable[bytes]) -> tuple[tuple[Prompt, ...], tuple[str, ...]]:
    """Make prompts of the undecoded items of a ``prompts/list`` answer.

    Of two with one command name the one whose raw name sorts first has it, as for tools.
    """
    found, warnings = _read("prompt", "name", lambda name, raw: Prompt(server, name, raw), items)
    holders: dict[str, Prompt] = {}
    for name in sorted(found):
        holders.setdefault(found[name].callable_name, found[name])
    kept = tuple(prompt for prompt in found.values() if holders[prompt.callable_name] is prompt)
    for prompt in found.values():
        holder = holders[prompt.callable_name]
        if holder is not prompt:
            warnings.append(f"prompt {ascii(prompt.key)[:80]} was skipped: {ascii(holder.key)[:80]} has its command")
    return kept, tuple(warnings)
