"""Owns what all verbs that write an entry share: the scope that is asked for, a last look at the entry, what is told.

What this is not: the verbs (`changing`, `importing`), nor where and how files are written (`destinations`,
`files.writing`).

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.cli import output
from mcp_actors.cli.exits import as_one

if TYPE_CHECKING:
    import argparse

    from mcp_actors.cli.destinations import Destination
    from mcp_actors.config.policy import Policy
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.writing import Change
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["DEFAULT_SCOPE", "SCOPES", "add_scope", "check_entry", "read_entry", "scope_of", "tell_change"]

SCOPES: Final = ("local", "user", "project")
# Private to this user and this project (S040): in ~/.claude.json, which Claude Code reads and writes too.
DEFAULT_SCOPE: Final = "local"


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb that writes a configuration file."""
    parser.add_argument("-s", "--scope", choices=SCOPES, help="which file to write (local)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the change as a diff, secrets starred; write nothing"
    )


def scope_of(own: argparse.Namespace) -> str:
    """The scope that was asked for, else the default (S040)."""
    return str(own.scope or DEFAULT_SCOPE)


def check_entry(name: str, entry: JsonObject, destination: Destination, policy: Policy) -> ServerSpec:
    """Read an entry as it will be read from the file, and ask whether it may be there.

    Raises:
        ConfigError: it could not run; each of its faults, as a group when there are several.
        ServerNotAllowed: the policy forbids it (S060, S061).
    """
    from mcp_actors.config.policy import decide

    read = read_entry(name, entry, destination)
    if read.problems:
        raise as_one(read.problems)
    for note in read.notes:
        if note.is_warning:
            output.note(str(note))
    [spec] = read.specs
    verdict = decide(spec, policy)
    if not verdict.is_allowed:
        raise verdict.error(name)
    return spec


def read_entry(name: str, entry: Json, destination: Destination) -> SourceReading:
    """Read an entry as it will be read from the file."""
    import os

    from mcp_actors.config.documents import Document
    from mcp_actors.config.sources import SourceText, Surroundings, read_document
    from mcp_actors.files.places import read_named_file, working_directory

    # As the file will be read: relative paths of a project's file start at its folder.
    directory = str(destination.file.parent if destination.scope == "project" else working_directory(os.environ))
    around = Surroundings(os.environ, directory, os.environ.get("HOME", ""), read_file=read_named_file)
    text = SourceText(b"", str(destination.file), destination.scope, directory=directory)
    return read_document(Document({"mcpServers": {name: entry}}, ""), text, around)


def tell_change(change: Change, text: str, *, is_dry: bool) -> None:
    """Say what was done; for a dry run print what would be."""
    from mcp_actors.cli.destinations import diff_text
    from mcp_actors.cli.render import clean

    if not is_dry:
        output.note(text, prefix="")
    elif change.is_empty:
        output.note("nothing to change", prefix="")
    else:
        output.emit(clean(diff_text(change)).removesuffix("\n"))
