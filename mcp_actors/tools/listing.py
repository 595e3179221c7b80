"""Owns the list of tools that a model gets: views of a catalog, filtered, with what was left out and why.

What this is not: the catalog, which keeps every tool callable by route; nor permission to call.

Rule 1: the order of the pipeline is S156: list, validate, clean, cap, name, filter, register. `tools_from_items` lists,
validates and names over cleaned names; `view` cleans and caps; here is the filter and the register.
Rule 2: one server's change costs work for that server alone: the shelves of the others are taken over as they are.
Rule 3: nothing is left out in silence.
"""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from attrs import field

from mcp_actors.tools.sanitise import MAX_DESCRIPTION_CHARS, cap_text, clean_text
from mcp_actors.tools.view import view_of
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mcp_actors.tools.catalog import Catalog, Tool
    from mcp_actors.tools.filters import Hide
    from mcp_actors.tools.view import ToolView

__all__ = ["HiddenTool", "Listing", "Shelf", "clean_instructions", "list_for_model", "show_all"]


class HiddenTool(NamedTuple):
    """A tool that a model does not see."""

    view: ToolView
    reason: str
    # True when it has a fault, or lost its name; false when policy hides it.
    is_quarantined: bool


def show_all(view: ToolView) -> str | None:  # noqa: ARG001 - the shape of a filter
    """Hide nothing."""
    return None


@frozen(eq=False)
class Shelf:
    """The tools of one server for a model."""

    server: str
    # The tools it was made of; the same tuple means that nothing has changed.
    tools: tuple[Tool, ...] = field(repr=False)
    shown: tuple[ToolView, ...]
    hidden: tuple[HiddenTool, ...] = ()
    # Callable name -> server of higher precedence that answers to it (S184).
    taken: Mapping[str, str] = field(factory=dict, repr=False)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a host should tell once: tools left out for a fault, fields that held hidden code points (S195)."""
        found = [f"{tool.view.name} was left out: {tool.reason}" for tool in self.hidden if tool.is_quarantined]
        for view in (*self.shown, *(tool.view for tool in self.hidden)):
            if view.removed:
                count, places = sum(view.removed.values()), ", ".join(sorted(view.removed)[:5])
                found.append(f"{view.name}: {count} hidden code points were removed from {places}")
        return tuple(found)


@frozen(eq=False)
class Listing:
    """What a model may call now. A value, as a catalog is."""

    # In the order of the catalog's servers.
    shelves: tuple[Shelf, ...] = ()
    _hide: Hide = field(default=show_all, repr=False, alias="hide")
    _max_description_chars: int = field(default=MAX_DESCRIPTION_CHARS, repr=False, alias="max_description_chars")

    @cached_property
    def views(self) -> Mapping[str, ToolView]:
        """Maps callable name -> view, in the order of the catalog; the first of two equal names has it (S184)."""
        views: dict[str, ToolView] = {}
        for shelf in self.shelves:
            for view in shelf.shown:
                views.setdefault(view.name, view)
        return MappingProxyType(views)

    @property
    def hidden(self) -> tuple[HiddenTool, ...]:
        """Everything that was left out, with its reason."""
        return tuple(tool for shelf in self.shelves for tool in shelf.hidden)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a host should tell, server by server."""
        return tuple(warning for shelf in self.shelves for warning in shelf.warnings)

    def __iter__(self) -> Iterator[ToolView]:
        return iter(self.views.values())

    def __len__(self) -> int:
        return len(self.views)


def list_for_model(
    catalog: Catalog,
    hide: Hide = show_all,
    *,
    previous: Listing | None = None,
    max_description_chars: int = MAX_DESCRIPTION_CHARS,
    eager: Collection[str] = (),
) -> Listing:
    """List what a model may call.

    Args:
        catalog: who offers what.
        hide: the filter, see `filters.hide_by`; another function makes all shelves anew.
        previous: the last listing; shelves of servers whose tools are the same are taken from it.
        max_description_chars: longest description.
        eager: servers whose entries say ``alwaysLoad``; an entry that is changed has other tools.

    Source:
        S156, S165, S236.
    """
    old: dict[str, Shelf] = {}
    if previous is not None and previous._hide is hide and previous._max_description_chars == max_description_chars:  # noqa: SLF001 - the same class
        old = {shelf.server: shelf for shelf in previous.shelves}
    # Server -> which of its names another one has.
    taken: dict[str, dict[str, str]] = {}
    for name, winner, loser in catalog.collisions:
        taken.setdefault(loser.server, {})[name] = winner.server
    shelves = []
    for server in catalog.servers:
        tools, theirs = catalog.tools_of(server), taken.get(server, {})
        shelf = old.get(server)
        if shelf is None or shelf.tools is not tools or shelf.taken != theirs:
            shelf = _fill(server, tools, theirs, hide, max_description_chars, is_eager=server in eager)
        shelves.append(shelf)
    return Listing(tuple(shelves), hide, max_description_chars)


def _fill(
    server: str,
    tools: tuple[Tool, ...],
    taken: Mapping[str, str],
    hide: Hide,
    max_description_chars: int,
    *,
    is_eager: bool,
) -> Shelf:
    shown: list[ToolView] = []
    hidden: list[HiddenTool] = []
    for tool in tools:
        view = view_of(tool, max_description_chars=max_description_chars, is_eager=is_eager)
        reason = hide(view)
        if reason is not None:
            hidden.append(HiddenTool(view, reason, is_quarantined=False))
        elif view.name in taken:
            reason = f"the one of {taken[view.name]}, which comes first, has this name"
            hidden.append(HiddenTool(view, reason, is_quarantined=True))
        elif view.problem is not None:
            hidden.append(HiddenTool(view, view.problem, is_quarantined=True))
        else:
            shown.append(view)
    return Shelf(server, tools, tuple(shown), tuple(hidden), taken)


def clean_instructions(instructions: str | None, max_chars: int = MAX_DESCRIPTION_CHARS) -> str:
    """Clean and cap a server's instructions; empty when it gave none (S157, S169)."""
    return cap_text(clean_text(instructions or "").strip(), max_chars)
