"""Owns the way from one document to the servers it defines, before they meet those of other documents.

What this is not: finding and reading files (`files.loading`), parsing them (`source_texts`), nor precedence (`merge`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve, field

from mcp_actors.config.dialects import PROJECT_DIRECTORY, WORKSPACE_NAME, Translation, copy_of
from mcp_actors.config.documents import find_odd_number
from mcp_actors.config.formats import NATIVE, Format, ServerTable, fill_env_file
from mcp_actors.config.notes import ConfigNote, Findings, KeyPath
from mcp_actors.config.validate import EntryContext, read_entry
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.config.documents import Document
    from mcp_actors.config.specs import Scope, ServerSpec
    from mcp_actors.errors import ConfigError

__all__ = ["SourceReading", "SourceText", "Surroundings", "read_document"]


def _no_files(path: str, directory: str) -> bytes:  # noqa: ARG001 - the shape of a reader
    raise FileNotFoundError(path)


@frozen
class Surroundings:
    """What every source is read against."""

    environ: Mapping[str, str] = field(factory=dict, repr=False)
    # Absolute path of the directory that the user works in.
    directory: str = ""
    home: str = ""
    is_unset_fatal: bool = False
    # Reads a file that an entry names, relative to a directory; raises OSError. Nothing here opens files.
    read_file: Callable[[str, str], bytes] = field(default=_no_files, repr=False)


@frozen
class SourceText:
    """One configuration text and where it came from."""

    data: bytes = field(repr=False)
    # Path, or a label such as ``<--config 2>``.
    file: str
    scope: Scope
    # Among sources of one scope the higher rank wins.
    rank: int = 0
    format: Format = NATIVE
    # Directory that belongs to it: what ``${workspaceFolder}`` and the like mean.
    directory: str = ""
    # Stands before each name: ``plugin:PLUGIN:`` (S032).
    prefix: str = ""
    # More names for the expansion: a plugin's root, its data, its user_config (S031).
    fixed: Mapping[str, str] = field(factory=dict, repr=False)
    # False: a document without servers is in order (`~/.claude.json` holds much else).
    must_have_servers: bool = True


@frozen
class SourceReading:
    """What one source defines: `specs` in file order, each either a spec here or a problem."""

    scope: Scope
    file: str
    rank: int = 0
    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[ConfigNote, ...] = ()


def read_document(
    document: Document, source: SourceText, around: Surroundings, *, root: KeyPath | None = None
) -> SourceReading:
    """Read the servers of a parsed document.

    Args:
        document: the document.
        source: where it came from.
        around: the environment and directories.
        root: key path of the table of servers; None: as the format says.

    Returns:
        The reading; every problem and note carries line and column where the document knows them.
    """
    findings = Findings(source.file)
    for key in document.duplicates if root is None else ():
        findings.note((), "duplicate-key", f"the key {key!r} stands twice in one object; the last one is used")
    table = source.format.find_table(document.value, findings, root, must_have=source.must_have_servers)
    specs = _read_table(table, document, source, around, findings) if table is not None else ()
    findings.place(document.locate)
    return SourceReading(
        source.scope, source.file, source.rank, tuple(specs), tuple(findings.problems), tuple(findings.notes)
    )


def _read_table(
    table: ServerTable, document: Document, source: SourceText, around: Surroundings, findings: Findings
) -> list[ServerSpec]:
    specs: list[ServerSpec] = []
    directory = source.directory or around.directory
    # Grows while entries are read: what files held, under names that only we can write.
    fixed = {PROJECT_DIRECTORY: directory, WORKSPACE_NAME: directory.rstrip("/").rpartition("/")[2], **source.fixed}
    if around.home:
        fixed.setdefault("HOME", around.environ.get("HOME", around.home))
    context = EntryContext(findings, source.scope, around.environ, fixed, is_unset_fatal=around.is_unset_fatal)

    def read_file(path: str) -> bytes:
        return around.read_file(path, directory)

    for name, written in table.entries.items():
        path = (*table.path, name)
        if not isinstance(written, Mapping):
            read_entry(source.prefix + name, written, path, context)
            continue
        if document.has_odd_numbers and (odd := find_odd_number(written)) is not None:
            reason = "is a number that JSON does not know or we cannot keep"
            findings.problem((*path, *odd), reason, server=source.prefix + name)
            continue
        before = len(findings.problems)
        translation = Translation(
            source.prefix + name, copy_of(written), path, findings, document.value, fixed, read_file=read_file
        )
        shown = source.format.translate(translation)
        entry = fill_env_file(translation, around.environ, read_file)
        if len(findings.problems) > before:
            continue
        spec = read_entry(source.prefix + name, entry, path, context, shown=shown)
        if spec is not None:
            specs.append(evolve(spec, is_enabled=False) if name in table.disabled else spec)
    return specs
