"""Owns the catalog: which server offers which tool under which callable name, as an immutable value.

What this is not: the registry, the actor that decides when a catalog is published; nor what a model may see of a tool.

Rule 1: a tool's definition stays the bytes that the server sent until somebody reads it; no key is lost (invariant 9).
Rule 2: the same servers give the same names in the same order, in whatever order they arrived (invariant 10).
Rule 3: one server's change costs work for that server alone; the mapping over all names is merged when first read.
Rule 4: nothing is shadowed in silence: what loses a name is listed in `Catalog.collisions` (S184).
Rule 5: of two tools of one server with one callable name the one whose raw name sorts first has it, the other one's
ends in a hash. Many servers list their tools in another order at each start, and a name that was approved must not
change its meaning with that.
"""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import evolve, field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.filters import is_listed_for_ide
from mcp_actors.tools.naming import (
    MAX_CALLABLE_NAME_CHARS,
    ToolNames,
    callable_name,
    contested_name,
    normalise,
    parse,
    server_prefix,
)
from mcp_actors.tools.sanitise import clean_text
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Catalog", "Collision", "Tool", "ToolsRead", "tools_from_items"]

# Names compared for "did you mean": comparing is slow, and more than this only happens with a thousand servers.
MAX_COMPARED_NAMES: Final = 2_000


@frozen(eq=False, slots=False)  # there are many, and without slots they are made in half the time
class Tool:
    """One tool as its server defined it. Untrusted: texts are for a model or a person only after cleaning."""

    # What a model calls it, see `naming.callable_name`.
    callable_name: str
    # Name of the server.
    server: str
    # Raw name, as `tools/call` wants it (S183).
    name: str
    # One JSON object as sent, undecoded.
    definition_bytes: bytes = field(repr=lambda data: f"<{len(data)} bytes>")

    @property
    def names(self) -> ToolNames:
        """What rules may call it by."""
        prefix = server_prefix(self.server)
        return ToolNames(self.callable_name, prefix + normalise(_visible(self.name)), prefix)

    @cached_property
    def definition(self) -> JsonObject:
        """The definition as sent, every key kept; decoded when first read.

        Raises:
            RemoteProtocolError: it is not a JSON object.
        """
        return jsonrpc.decode_object(self.definition_bytes)

    @property
    def title(self) -> str | None:
        """Display name, None when the server gave none."""
        return _text(self.definition.get("title"))

    @property
    def description(self) -> str:
        """What it does; empty when the server gave none."""
        return _text(self.definition.get("description")) or ""

    @property
    def input_schema(self) -> JsonObject:
        """JSON schema of the arguments. Missing or null means an object without parameters (fault 83)."""
        return _object(self.definition.get("inputSchema")) or {"type": "object"}

    @property
    def output_schema(self) -> JsonObject | None:
        """JSON schema of the structured content, None when the server gave none."""
        return _object(self.definition.get("outputSchema"))

    @property
    def annotations(self) -> JsonObject:
        """Hints such as ``readOnlyHint``, as sent; empty when there are none. Claims, not facts."""
        return _object(self.definition.get("annotations")) or {}

    @property
    def meta(self) -> JsonObject:
        """The ``_meta`` object, as sent; empty when there is none."""
        return _object(self.definition.get("_meta")) or {}


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Json) -> dict[str, Json] | None:
    return value if isinstance(value, dict) else None


class ToolsRead(NamedTuple):
    """The tools of one server in its own order, and one warning for each item that was left out."""

    tools: tuple[Tool, ...]
    warnings: tuple[str, ...]


def tools_from_items(
    server: str, items: Sequence[bytes], *, max_name_chars: int = MAX_CALLABLE_NAME_CHARS
) -> ToolsRead:
    """Make tools of the undecoded items of a ``tools/list`` answer; only the names are decoded.

    Args:
        server: raw name of the server.
        items: undecoded items, in the server's order, all pages.
        max_name_chars: longest callable name that is made.

    Returns:
        The valid tools. An item without a name, or whose name another one has, is left out alone and named in a
        warning; so is told which gave way in its callable name. What the editor's allow-list keeps out is left out
        without one.

    Source:
        S149, S156, S164, S173, S191, faults 81 and 83.
    """
    # Maps position -> the tool there, and what is told of it; callable name -> the tool that has it (rule 5).
    read: dict[int, Tool] = {}
    warnings: dict[int, str] = {}
    holders: dict[str, Tool] = {}
    for position, (raw, name) in enumerate(zip(items, jsonrpc.decode_texts(items, "name"), strict=True), 1):
        if isinstance(name, RemoteProtocolError):
            warnings[position] = f"was skipped: {name.reason}"
            continue
        visible = _visible(name)
        if not visible:
            what = "it is made of invisible characters" if name else "its name is empty"
            warnings[position] = f"was skipped: {what}"
            continue
        tool = Tool(callable_name(server, name, visible=visible, max_chars=max_name_chars), server, name, raw)
        read[position] = tool
        if name < holders.setdefault(tool.callable_name, tool).name:
            holders[tool.callable_name] = tool
    if len(holders) < len(read):
        _give_way(read, holders, warnings, max_name_chars)
    listed = [tool for tool in read.values() if is_listed_for_ide(tool.callable_name)]
    return ToolsRead(tuple(listed), tuple(f"tool {position} {warnings[position]}" for position in sorted(warnings)))


def _visible(name: str) -> str:
    return name if name.isascii() and name.isprintable() else clean_text(name)


def _give_way(read: dict[int, Tool], holders: dict[str, Tool], warnings: dict[int, str], max_name_chars: int) -> None:
    """Give the tools that do not have their name another one; those that nobody could tell from another go."""
    for position, tool in tuple(read.items()):
        holder = holders[tool.callable_name]
        if holder is tool:
            continue
        visible = _visible(tool.name)
        other = contested_name(tool.server, tool.name, visible=visible, max_chars=max_name_chars)
        if other in holders or holder.name == tool.name:
            del read[position]
            came_of_it = "was skipped"
        else:
            read[position] = holders[other] = evolve(tool, callable_name=other)
            came_of_it = f"is named {other}"
        told = f"({_shown(tool.name)}) {came_of_it}: {_shown(holder.name)} has the name {tool.callable_name}"
        warnings[position] = told


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:77] + "...")


class Collision(NamedTuple):
    """Two servers offer tools of one callable name: `winner` answers to it, `loser` to its route only."""

    name: str
    winner: Tool
    loser: Tool


@frozen(eq=False)
class _Offer:
    """The tools of one server, found by either name; each mapping is made when first needed."""

    tools: tuple[Tool, ...]

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        names: dict[str, Tool] = {}
        for tool in self.tools:
            names.setdefault(tool.callable_name, tool)
        return names

    @cached_property
    def kept(self) -> tuple[Tool, ...]:
        return tuple(self.by_name.values())

    @cached_property
    def by_raw_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.by_name.values()}


@frozen(eq=False)
class Catalog:
    """Who offers what under which name. A value: a change gives a new one, and a reader may keep what it has.

    The callable name is a tool's identity for models, permission rules, pins and hooks alike (S182).
    """

    # Names of servers in the order of the configuration, which is also the order of precedence.
    order: tuple[str, ...] = ()
    # Maps server -> what it offers.
    _by_server: Mapping[str, _Offer] = field(factory=dict, repr=False, alias="by_server")

    def replace_servers(self, changes: Mapping[str, Iterable[Tool] | None]) -> Catalog:
        """Apply all changes of a publish window at once (S367, S368).

        Args:
            changes: server -> its tools, and nothing else of it; None where it is gone, unknown ones are no error.
        """
        by_server = dict(self._by_server)
        for server, tools in changes.items():
            if tools is None:
                by_server.pop(server, None)
            else:
                by_server[server] = _Offer(tuple(tools))
        return Catalog(self.order, by_server)

    def with_order(self, order: Sequence[str]) -> Catalog:
        """Give the catalog in which the servers have this order and precedence, first wins."""
        return Catalog(tuple(order), self._by_server)

    @cached_property
    def servers(self) -> tuple[str, ...]:
        """Servers that have tools here, in order; those that `order` does not name come last, by name."""
        named = [server for server in self.order if server in self._by_server]
        return (*named, *sorted(self._by_server.keys() - set(named)))

    @cached_property
    def _merged(self) -> tuple[dict[str, Tool], tuple[Collision, ...]]:
        merged: dict[str, Tool] = {}
        collisions: list[Collision] = []
        for server in self.servers:
            offered = self._by_server[server].by_name
            if not merged.keys().isdisjoint(offered):
                lost = merged.keys() & offered.keys()
                collisions.extend(Collision(name, merged[name], tool) for name, tool in offered.items() if name in lost)
                offered = {name: tool for name, tool in offered.items() if name not in lost}
            merged.update(offered)
        return merged, tuple(collisions)

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Maps callable name -> tool: servers in order, each server's tools in its own order."""
        return MappingProxyType(self._merged[0])

    @property
    def collisions(self) -> tuple[Collision, ...]:
        """Tools that lost their callable name to a server of higher precedence (S184)."""
        return self._merged[1]

    def tools_of(self, server: str) -> tuple[Tool, ...]:
        """Tools of one server in its own order, the same tuple until they change; empty when it has none."""
        offer = self._by_server.get(server)
        return offer.kept if offer is not None else ()

    def resolve(self, name: str) -> Tool | None:
        """Find a tool by its callable name, or by its route written ``server.tool`` in raw names."""
        tool = self._merged[0].get(name)
        if tool is not None:
            return tool
        # A server's own name may hold dots: each dot is tried, from the left.
        at = name.find(".")
        while at != -1:
            tool = self.resolve_route(name[:at], name[at + 1 :])
            if tool is not None:
                return tool
            at = name.find(".", at + 1)
        return None

    def resolve_route(self, server: str, name: str) -> Tool | None:
        """Find a tool by its server and raw name."""
        offer = self._by_server.get(server)
        return offer.by_raw_name.get(name) if offer is not None else None

    def nearest(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Names most similar to one that does not resolve, best first: routes when `name` is written as one.

        Where the server is right only the tools are compared, and only its own: a prefix in common is no likeness.
        """
        from difflib import get_close_matches  # needed for mistakes alone

        parsed = parse(name)
        is_route = parsed is None and "." in name
        heads = {server: f"{server}." if is_route else server_prefix(server) for server in self.servers}
        named = {server: head for server, head in heads.items() if name.startswith(head)}
        # Maps what is compared -> the name that is offered.
        candidates: dict[str, str] = {}
        for server, head in (named or heads).items():
            for tool in self._by_server[server].by_name.values():
                offered = f"{head}{tool.name}" if is_route else tool.callable_name
                candidates.setdefault(offered.removeprefix(named.get(server, "")), offered)
        wanted = name.removeprefix(max(named.values(), key=len, default=""))
        compared = list(candidates)[:MAX_COMPARED_NAMES]
        return tuple(candidates[found] for found in get_close_matches(wanted, compared, n=limit, cutoff=0.5))

    def __len__(self) -> int:
        return len(self._merged[0])

    def __repr__(self) -> str:
        count = sum(len(offer.tools) for offer in self._by_server.values())
        return f"<Catalog {count} tools of {len(self._by_server)} servers>"
