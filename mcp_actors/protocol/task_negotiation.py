"""Owns whether a call of 2025-11-25 asks to become a task.

What this is not: the course of one (`tasks`). Modern servers decide themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_actors.protocol.revisions import REVISIONS

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import ServerInfo

__all__ = ["task_params"]


def task_params(execution: Json, info: ServerInfo, *, wants_task: bool) -> JsonObject | None:
    """Decide whether a call of 2025-11-25 asks to become a task.

    Args:
        execution: of the tool's definition, as sent.
        info: what the server declared.
        wants_task: the caller would rather have a task where it may choose.

    Returns:
        What goes under ``task`` in the params of the call; None for a plain call. Modern servers decide themselves.

    Source:
        G05; MCP 2025-11-25, "Tasks", "Tool-Level Negotiation".
    """
    row = REVISIONS.get(info.revision)
    if row is None or not row.has_core_tasks or not _takes_tasks(info.capabilities):
        return None
    support = execution.get("taskSupport") if isinstance(execution, Mapping) else None
    if support != "required" and not (support == "optional" and wants_task):
        return None
    return {}


def _takes_tasks(capabilities: Json) -> bool:
    value = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is not None and value is not False
