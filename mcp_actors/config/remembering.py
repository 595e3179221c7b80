"""Owns how the text of what we remember changes: a definition more that was approved, a switch, a project forgotten.

What this is not: its form (`remembered`), nor the file (`files.writing`). Changes are made to the text (`editing`), so
that what a later version keeps beside them stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.config.approvals import definition_hash
from mcp_actors.config.editing import remove_value, set_value
from mcp_actors.config.remembered import parse_remembered

if TYPE_CHECKING:
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import Json

__all__ = ["forget_project", "remember", "switch"]

EMPTY = '{\n  "version": 1\n}\n'


def remember(text: str | None, spec: ServerSpec, file: str) -> str:
    """The file's text with one more approved definition; None is a file that does not exist yet."""
    record: dict[str, Json] = {"name": spec.name, "file": spec.source}
    return set_value(text or EMPTY, ("approved", definition_hash(spec)), record, file)


def switch(text: str | None, project: str, name: str, file: str, *, is_on: bool, overrides: bool = False) -> str:
    """The file's text with one server switched on or off in one project.

    `overrides`: on although its definition, or another program's list, says off.
    """
    text = text or EMPTY
    held = parse_remembered(text, file).switches(project)
    disabled = held.disabled - {name} if is_on else held.disabled | {name}
    enabled = held.enabled | {name} if is_on and overrides else held.enabled - {name}
    text = set_value(text, ("projects", project, "disabled"), sorted(disabled), file)
    return set_value(text, ("projects", project, "enabled"), sorted(enabled), file)


def forget_project(text: str | None, project: str, files: frozenset[str], file: str) -> str:
    """The file's text without the switches of one project, and without what was approved of `files`."""
    text = text or EMPTY
    for digest, source in parse_remembered(text, file).approved.items():
        if source in files:
            text = remove_value(text, ("approved", digest), file)
    return remove_value(text, ("projects", project), file)
