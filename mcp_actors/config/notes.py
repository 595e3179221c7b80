"""Owns what reading a configuration has to tell besides the servers: notes, and definitions that lost to another.

What this is not: errors. An entry that cannot run is a `ConfigError`; a note leaves the entry running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field

from mcp_actors.errors import ConfigError
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.config.specs import Scope

__all__ = ["ConfigNote", "EntryFindings", "Findings", "KeyPath", "Shadowed", "dotted"]

# Where something stands inside a document: keys and list indices from the root.
KeyPath: TypeAlias = "tuple[str | int, ...]"


@frozen
class ConfigNote:
    """Something worth knowing about an entry that runs all the same. Never holds a value of the file (S030).

    `code` is stable (``unset-variable``, ``whitespace``, ...); `line` and `column` count from 1.
    """

    code: str
    text: str
    server: str | None = None
    file: str | None = None
    key: str | None = None
    line: int | None = None
    column: int | None = None
    # True: probably a mistake. False: only said so that nothing happens in silence.
    is_warning: bool = True

    def __str__(self) -> str:
        place = self.file or "configuration"
        if self.line is not None:
            place += f":{self.line}:{self.column or 1}"
        return f"{place}: {self.key}: {self.text}" if self.key else f"{place}: {self.text}"


@frozen
class Shadowed:
    """A definition that does not run because another one of the same name, or the same endpoint, does (S020-S022)."""

    name: str
    scope: Scope
    source: str
    winner: str
    winner_scope: Scope
    winner_source: str
    # "name": overridden as a whole; "endpoint": the same server under another name.
    by: str = "name"
    # False: both lead to the same endpoint, so nothing is lost (S043).
    is_different: bool = True

    def __str__(self) -> str:
        same = f" {self.winner!r}" if self.winner != self.name else ""
        return (
            f"{self.name}: the definition of {self.source} ({self.scope}) is not used, "
            f"because that{same} of {self.winner_source} ({self.winner_scope}) is"
        )


@define
class Findings:
    """Collects problems and notes while one source is read; knows in which file."""

    file: str
    problems: list[ConfigError] = field(factory=list)
    notes: list[ConfigNote] = field(factory=list)
    # Key paths of the two lists above, in step with them: positions are looked up once, at the end.
    problem_paths: list[KeyPath] = field(factory=list)
    note_paths: list[KeyPath] = field(factory=list)

    def problem(
        self,
        path: KeyPath,
        reason: str,
        *,
        server: str | None = None,
        remedy: str | None = None,
        category: str = "invalid_config",
    ) -> None:
        """Note that what stands at `path` keeps an entry (or the file) from running."""
        self.problems.append(
            ConfigError(
                server=server, file=self.file, key=dotted(path) or None, reason=reason, remedy=remedy, category=category
            )
        )
        self.problem_paths.append(path)

    def note(self, path: KeyPath, code: str, text: str, *, server: str | None = None, is_warning: bool = True) -> None:
        """Note something about what stands at `path`."""
        self.notes.append(
            ConfigNote(
                code=code, text=text, server=server, file=self.file, key=dotted(path) or None, is_warning=is_warning
            )
        )
        self.note_paths.append(path)

    def place(self, locate: Callable[[KeyPath], tuple[int, int] | None]) -> None:
        """Give all problems and notes their positions, which `locate` knows by key path."""
        for problem, path in zip(self.problems, self.problem_paths, strict=True):
            if (place := locate(path)) is not None:
                problem.line, problem.column = place
        for index, path in enumerate(self.note_paths):
            if (place := locate(path)) is not None:
                line, column = place
                self.notes[index] = evolve(self.notes[index], line=line, column=column)


@frozen
class EntryFindings:
    """The `Findings` of one entry: its name goes along, and paths begin at it."""

    findings: Findings
    server: str
    # Where the entry stands.
    path: KeyPath

    def problem(self, path: KeyPath, reason: str, remedy: str | None = None, category: str = "invalid_config") -> None:
        """Note that what stands at `path` keeps the entry from running."""
        self.findings.problem((*self.path, *path), reason, server=self.server, remedy=remedy, category=category)

    def note(self, path: KeyPath, code: str, text: str, *, is_warning: bool = True) -> None:
        """Note something about what stands at `path`."""
        self.findings.note((*self.path, *path), code, text, server=self.server, is_warning=is_warning)


def dotted(path: KeyPath) -> str:
    """`path` as people write it: ``mcpServers.docs.args[1]``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
