"""Owns the form of what we remember between runs: which project servers were approved, what is switched off where.

What this is not: the file (`files.writing`, `files.loading`), the decision (`approvals`), nor how it changes
(`remembering`). No repository writes here.

The file is an object with ``approved``, which maps the hash of a definition to its name and file, and ``projects``,
which maps a directory to its lists ``disabled`` and ``enabled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.jsonc import parse_json
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = ["NOTHING_REMEMBERED", "Remembered", "Switches", "parse_remembered"]


@frozen
class Switches:
    """What the user switched in one project, by name, of whatever scope (S037)."""

    disabled: frozenset[str] = frozenset()
    # Runs although its definition or another program's list switches it off.
    enabled: frozenset[str] = frozenset()


@frozen
class Remembered:
    """All of it."""

    # Maps the hash of an approved definition -> the file that it stands in.
    approved: Mapping[str, str] = field(factory=dict)
    # Maps directory of a project -> its switches.
    projects: Mapping[str, Switches] = field(factory=dict)

    @property
    def approvals(self) -> Approvals:
        """What was approved, in the form that decides."""
        return Approvals(hashes=frozenset(self.approved))

    def switches(self, project: str) -> Switches:
        """What was switched in one project."""
        return self.projects.get(project, Switches())

    def doubted(self) -> Remembered:
        """What may be taken of it where others could have written it: what it switches off."""
        off = {directory: Switches(switches.disabled) for directory, switches in self.projects.items()}
        return Remembered(projects=off)


NOTHING_REMEMBERED = Remembered()


def parse_remembered(text: str, file: str) -> Remembered:
    """Read the file's text; parts that have another form count as empty, so that nothing is approved by accident.

    Raises:
        ConfigError: it is no JSON at all.
    """
    document = parse_json(text, file).value
    approved, projects = _table(document, "approved"), _table(document, "projects")
    return Remembered(
        {key: str(record.get("file")) for key, record in approved.items() if isinstance(record, Mapping)},
        {
            directory: Switches(_names(lists, "disabled"), _names(lists, "enabled"))
            for directory, lists in projects.items()
        },
    )


def _table(document: Json, key: str) -> Mapping[str, Json]:
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _names(lists: Json, key: str) -> frozenset[str]:
    value = lists.get(key) if isinstance(lists, Mapping) else None
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()
