"""Owns the verb ``import``: the servers of another program's configuration, copied into a file that is read here.

What this is not: reading foreign files in place; ``--config`` does that. What each format means is in `config.formats`.

Rules.

1. What is written is Claude Code's spelling, with ``${NAME}`` references in place of other programs' ones; nothing is
   filled in.
2. A second import changes nothing: an entry that is there already, under its name or the name that a clash gave it, is
   left alone. For the scope local, the user's own servers are there already.
3. Whatever is not copied is named, with the reason.
4. What a repository may have brought along is copied only where it still needs approval (``-s project``), or where the
   person names its file: nobody's own files are the place for programs that nobody looked at (fault 109).

Source:
    S040.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import output
from mcp_actors.cli.entry_writing import add_scope, check_entry, scope_of, tell_change
from mcp_actors.cli.exits import FAILED, OK, Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mcp_actors.cli.destinations import Destination
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.formats import Format
    from mcp_actors.config.policy import Policy
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.places import Places
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["configure_import", "entry_of", "place_entries", "run_import"]

FORMAT_NAMES: Final = (
    "claude-desktop", "claude-code", "cursor", "vscode",
    "codex", "gemini", "opencode", "mcporter",
)  # fmt: skip
# What the reading put in the place of a file's content: it cannot be written down.
_SLOT: Final = re.compile(r"\$\{file\.\d+\}")
_BROUGHT: Final = "{path} belongs to the project: take it over with -s project, or name it with --path"
_IN_PLACE: Final = "{path} belongs to the project, and is read where it is: mcp-actors approve lets its servers run"


def configure_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``import``."""
    add_scope(parser)
    parser.add_argument("--path", metavar="P", help="the file; else where that program keeps it")
    parser.add_argument("format", choices=FORMAT_NAMES, help="the program")


def run_import(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Copy the servers of one program; 1 when one of them could not be copied."""
    del shared
    import os

    from mcp_actors.cli.configured import places_of, refuse_when_managed
    from mcp_actors.cli.destinations import destination_of
    from mcp_actors.config.formats import FORMATS
    from mcp_actors.config.specs import Scope
    from mcp_actors.files.given import load_choices
    from mcp_actors.files.places import PROJECT_FILE

    places = places_of()
    refuse_when_managed(places)
    destination = destination_of(scope_of(own), places)
    chosen = FORMATS[own.format]
    files = _files(own.path, chosen, places)
    readings = [(_read(path, chosen, destination, places), path, is_brought) for path, is_brought in files.items()]
    policy = load_choices(os.environ, places=places).policy
    wanted: list[tuple[str, JsonObject]] = []
    left: list[str] = [str(problem) for reading, _, _ in readings for problem in reading.problems]
    for reading, path, is_brought in readings:
        is_kept_out = is_brought and destination.scope is not Scope.PROJECT
        brought = (_IN_PLACE if path.name == PROJECT_FILE else _BROUGHT).format(path=path)
        for spec in reading.specs:
            entry = entry_of(spec)
            reason = brought if is_kept_out else _refusal(spec.name, entry, destination, policy)
            if reason is None:
                wanted.append((spec.name, entry))
            else:
                left.append(f"{spec.name}: not imported: {reason}")
    of_user = destination_of(Scope.USER, places).held() if destination.scope is Scope.LOCAL else {}
    missing = [(name, entry) for name, entry in wanted if place_entries(of_user, [(name, entry)])]
    # New name -> old name of what was written; filled by the change, which may be made more than once.
    placed: dict[str, str] = {}

    def entries(held: JsonObject) -> Mapping[str, JsonObject]:
        new = place_entries(held, missing)
        placed.clear()
        placed.update({name: old for name, (old, _) in new.items()})
        return {name: entry for name, (_, entry) in new.items()}

    change = destination.apply(entries, places.state_dir, is_dry=own.dry_run)
    for text in left:
        output.note(text)
    for name, old in placed.items():
        output.note(f"{name} (as {old} exists with another definition)" if name != old else name, prefix="  ")
    done = f"imported {len(placed)} of {len(wanted) + len(left)} servers into {destination.file} ({destination.scope})"
    same = len(wanted) - len(placed)
    tell_change(change, done + (f"; there already: {same}" if same else ""), is_dry=own.dry_run)
    return FAILED if left else OK


def _files(path: str | None, chosen: Format, places: Places) -> dict[Path, bool]:
    """Files to read -> whether a repository may have brought it along."""
    if path is not None:
        return {places.cwd / path: False}
    of_user = [_user_file(each, places) for each in chosen.user_paths]
    of_project = [directory / each for directory in places.project_directories() for each in chosen.project_paths]
    candidates = dict.fromkeys(of_project, True) | dict.fromkeys(of_user, False)
    found = {each: candidates[each] for each in dict.fromkeys([*of_user, *of_project]) if each.exists()}
    if not found:
        looked = "\n".join(f"  {each}" for each in dict.fromkeys([*of_user, *of_project]))
        raise Refused(f"no configuration of {chosen.name} was found; name it with --path\nlooked for:\n{looked}")
    return found


def _user_file(path: str, places: Places) -> Path:
    """Where a program keeps what is at `path` below a home directory; ``.config`` may be elsewhere, as XDG has it."""
    import os

    config_home = os.environ.get("XDG_CONFIG_HOME", "")
    if path.startswith(".config/") and config_home.startswith("/"):
        return places.home / config_home / path.removeprefix(".config/")
    return places.home / path


def _read(path: Path, chosen: Format, destination: Destination, places: Places) -> SourceReading:
    import os

    from mcp_actors.config.source_texts import read_source
    from mcp_actors.config.sources import SourceText, Surroundings
    from mcp_actors.files.places import read_bounded, read_named_file, unreadable

    around = Surroundings(os.environ, str(places.cwd), str(places.home), read_file=read_named_file)
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as exc:
        raise unreadable(path, exc) from exc
    text = SourceText(
        data,
        str(path),
        destination.scope,
        format=chosen,
        directory=chosen.directory_of(path.as_posix()),
        must_have_servers=path != places.claude_json,  # it holds much else
    )
    reading = read_source(text, around)
    whole = [problem for problem in reading.problems if problem.server is None]
    if whole:
        raise whole[0]
    return reading


def entry_of(spec: ServerSpec) -> JsonObject:
    """The entry to write for a server that was read: as written, and off where its program says so elsewhere."""
    is_off = not spec.is_enabled and spec.disabled_reason == "user"
    says_so = spec.raw.get("disabled") is True or spec.raw.get("enabled") is False
    return {**spec.raw, "disabled": True} if is_off and not says_so else dict(spec.raw)


def _refusal(name: str, entry: JsonObject, destination: Destination, policy: Policy) -> str | None:
    """Why an entry cannot be copied, None when it can."""
    from mcp_actors.cli.configured import check_name
    from mcp_actors.cli.exits import leaves
    from mcp_actors.errors import ConfigError

    if _SLOT.search(json.dumps(entry)):
        return "it takes a value out of a file, which has no form here: put it into a variable"
    try:
        check_name(name)
        check_entry(name, entry, destination, policy)
    except (ConfigError, ExceptionGroup) as error:
        return "; ".join(str(getattr(leaf, "reason", leaf)) for leaf in leaves(error))
    return None


def place_entries(held: JsonObject, wanted: Iterable[tuple[str, JsonObject]]) -> dict[str, tuple[str, JsonObject]]:
    """Decide under which names entries are written.

    Args:
        held: what the file has: name -> entry.
        wanted: names and entries, in order.

    Returns:
        New name -> (its own name, entry), without those that are there already. A name that another definition has
        gets ``_1``, ``_2`` and so on.
    """
    table: dict[str, Json] = dict(held)
    placed: dict[str, tuple[str, JsonObject]] = {}
    for name, entry in wanted:
        new, number = name, 0
        while new in table and table[new] != entry:
            number += 1
            new = f"{name}_{number}"
        if new not in table:
            table[new] = entry
            placed[new] = (name, entry)
    return placed
