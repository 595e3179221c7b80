"""Owns which tools are kept from a model before it could ask for them.

What this is not: permission to call (`permissions`); a hidden tool is not offered, a denied call is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.tools.naming import HEAD, SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_actors.tools.permission_rules import Rules
    from mcp_actors.tools.view import ToolView

__all__ = ["IDE_TOOLS", "Hide", "hide_by", "is_listed_for_ide"]

# Says why a tool is hidden; None shows it.
Hide: TypeAlias = "Callable[[ToolView], str | None]"

IDE_PREFIX: Final = f"{HEAD}{SEPARATOR}ide{SEPARATOR}"
IDE_TOOLS: Final = frozenset({f"{IDE_PREFIX}executeCode", f"{IDE_PREFIX}getDiagnostics"})


def is_listed_for_ide(callable_name: str) -> bool:
    """Whether the editor's allow-list lets this name pass; names of other servers always do (S164)."""
    return not callable_name.startswith(IDE_PREFIX) or callable_name in IDE_TOOLS


def hide_by(rules: Rules, suspended: Collection[str] = frozenset()) -> Hide:
    """Make the filter of a host: the editor's list, app-only tools, deny rules, suspended definitions.

    Args:
        rules: permission rules; a deny rule without parameters hides what it names (S165, S236).
        suspended: callable names that `pinning` holds back (fault 104).
    """

    def hide(view: ToolView) -> str | None:
        if not is_listed_for_ide(view.name):
            return "not on the editor's list"
        if view.is_app_only:
            return "meant for the server's own user interface"
        if view.name in suspended:
            return "its definition changed since it was approved"
        rule = rules.hiding(view.names) if rules.deny else None
        return None if rule is None else f"denied by {rule}"

    return hide
