"""Owns where `add`, `import` and `remove` write: the file of a scope, the place in it, and how a change is shown.

What this is not: how a text is edited (`config.editing`) or a file is written (`files.writing`).

Rule 1: ``~/.claude.json`` belongs to another program too. It is written by those verbs alone, for the scopes user and
local (S040, S042).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.cli.redact import redact_entry
from mcp_actors.config.editing import mask_texts, remove_value, set_values
from mcp_actors.config.jsonc import parse_json
from mcp_actors.config.specs import Scope
from mcp_actors.files.places import PROJECT_FILE
from mcp_actors.files.writing import Change, change_file, plan_change
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.files.places import Places
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Destination", "EntryChanges", "destination_of", "diff_text"]

# What a file begins as.
EMPTY: Final = "{}\n"

# Takes the servers that the file has (name -> entry); gives the ones to write, None for those to take out.
EntryChanges: TypeAlias = "Callable[[JsonObject], Mapping[str, JsonObject | None]]"


@frozen
class Destination:
    """One scope's place."""

    scope: Scope
    file: Path
    # For `local`: the names that the project may have in the file, the nearest first; the last one for a new place.
    projects: tuple[str, ...] = ()

    def root(self, document: Json) -> tuple[str, ...]:
        """Key path of the table of servers."""
        if not self.projects:
            return ("mcpServers",)
        table = document.get("projects") if isinstance(document, Mapping) else None
        known = table if isinstance(table, Mapping) else {}
        return ("projects", next((name for name in self.projects if name in known), self.projects[-1]), "mcpServers")

    def servers(self, text: str | None) -> JsonObject:
        """The servers that the text has: name -> entry as written.

        Raises:
            ConfigError: the text does not parse.
        """
        value: Json = None if text is None else parse_json(text, str(self.file)).value
        for key in self.root(value):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, Mapping) else {}

    def held(self) -> JsonObject:
        """The servers that the file has now, none where there is no file.

        Raises:
            ConfigError: the file cannot be read, or does not parse.
        """
        return self.servers(plan_change(self.file, lambda text: text or "").before)

    def apply(self, entries: EntryChanges, state_dir: Path, *, is_dry: bool) -> Change:
        """Change the servers of the file.

        Args:
            entries: what to write and what to take out, decided on what the file has at that moment.
            state_dir: where our locks are.
            is_dry: only say what would be done.

        Raises:
            ConfigError: the file cannot be read, does not parse or cannot be written; it is as it was.
        """

        def change(text: str | None) -> str:
            root = self.root(None if text is None else parse_json(text, str(self.file)).value)
            edited = EMPTY if text is None else text
            changes = entries(self.servers(text))
            for name in (name for name, entry in changes.items() if entry is None):
                edited = remove_value(edited, (*root, name), str(self.file))
            written = {name: entry for name, entry in changes.items() if entry is not None}
            edited = set_values(edited, root, written, str(self.file))
            return edited if changes else text or ""

        if is_dry:
            return plan_change(self.file, change)
        return change_file(self.file, change, state_dir, is_private=self.scope is not Scope.PROJECT)


def destination_of(scope: str, places: Places) -> Destination:
    """Where servers of a scope are written, seen from the working directory.

    Source:
        S009, S010, S012.
    """
    directories = places.project_directories()
    if scope == Scope.PROJECT:
        held = next((path for path in directories if (path / PROJECT_FILE).exists()), places.project)
        return Destination(Scope.PROJECT, held / PROJECT_FILE)
    if scope == Scope.LOCAL:
        return Destination(Scope.LOCAL, places.claude_json, (*map(str, directories), str(places.project)))
    return Destination(Scope.USER, places.claude_json)


def diff_text(change: Change) -> str:
    """What a change does, as a unified diff in which secrets are starred; empty when it does nothing."""
    file = str(change.path)

    def shown(text: str | None) -> list[str]:
        masked = "" if text is None else mask_texts(text, _mask, file)
        return masked.splitlines(keepends=True)

    lines = difflib.unified_diff(
        shown(change.before), shown(change.after), "/dev/null" if change.before is None else file, file
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _mask(document: Json) -> Json:
    return redact_entry(document) if isinstance(document, Mapping) else document
