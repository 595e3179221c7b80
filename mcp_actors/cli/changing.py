"""Owns the verbs that change one entry of a configuration file: ``add``, ``add-json``, ``remove``.

What this is not: where and how files are written (`destinations`, `files.writing`). Nothing is started here.

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.cli import output
from mcp_actors.cli.client_secrets import add_client_secret, check_client, forget_secret, keep_secret
from mcp_actors.cli.entry_options import TRANSPORTS, build_entry
from mcp_actors.cli.entry_writing import (
    DEFAULT_SCOPE,
    SCOPES,
    add_scope,
    check_entry,
    read_entry,
    scope_of,
    tell_change,
)
from mcp_actors.cli.exits import OK, Refused, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.places import Places
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["configure_add", "configure_add_json", "configure_remove", "run_add", "run_add_json", "run_remove"]

# ── add ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_add(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``add``."""
    parser.usage = "mcp-actors add [OPTIONS] NAME URL | NAME -- COMMAND [ARGS...]"
    add_scope(parser)
    parser.add_argument(
        "-t", "--transport", choices=TRANSPORTS, help="how messages move; else by what follows the name"
    )
    parser.add_argument("-e", "--env", action="append", default=[], metavar="K=V", help="a variable of the program")
    parser.add_argument("-H", "--header", action="append", default=[], metavar="K: V", help="sent with every request")
    parser.add_argument("--client-id", metavar="ID", help="the OAuth client that this program is")
    add_client_secret(parser)
    parser.add_argument("--callback-port", type=int, metavar="N", help="where the OAuth login comes back to")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for one call")
    parser.add_argument("words", nargs="+", metavar="NAME COMMAND_OR_URL", help="put -- before a command with options")


def run_add(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Write one entry; 1 when the name is taken in that file."""
    del shared
    name, *words = own.words
    return _add(own, name, build_entry(own, words))


def configure_add_json(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``add-json``."""
    add_scope(parser)
    parser.add_argument("name", metavar="NAME", help="what to call it")
    parser.add_argument(
        "json", metavar="JSON", help='the entry, such as {"command": "..."}; @FILE reads it from a file'
    )
    add_client_secret(parser)


def run_add_json(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Write one entry that is given as JSON; 1 when the name is taken in that file."""
    del shared
    from mcp_actors.cli.calling import read_text
    from mcp_actors.config.jsonc import parse_json

    text = read_text(own.json[1:]) if own.json.startswith("@") else own.json
    entry = parse_json(text, "<command line>").value
    if not isinstance(entry, dict):
        raise UsageError("JSON is no object")
    if len(entry) == 1 and isinstance(entry.get("mcpServers"), dict):
        raise UsageError('give the entry alone, without {"mcpServers": {NAME: ...}} around it; or use import --path')
    return _add(own, own.name, entry)


def _add(own: argparse.Namespace, name: str, entry: JsonObject) -> int:
    import os

    from mcp_actors.cli.configured import check_name, places_of, refuse_when_managed
    from mcp_actors.cli.destinations import destination_of
    from mcp_actors.cli.redact import redact_entry
    from mcp_actors.config.specs import Scope
    from mcp_actors.files.given import load_choices

    places = places_of()
    destination = destination_of(scope_of(own), places)
    refuse_when_managed(places)
    check_name(name)
    spec = check_entry(name, entry, destination, load_choices(os.environ, places=places).policy)

    def entries(held: JsonObject) -> Mapping[str, JsonObject]:
        if name in held:
            there = ", ".join(held)
            raise Refused(
                f"{name} exists in {destination.file} ({destination.scope}) already: remove it first, or take another "
                f"name\nthere are: {there}"
            )
        return {name: entry}

    kept = ""
    if own.client_secret:
        check_client(spec)
        destination.apply(entries, places.state_dir, is_dry=True)  # nobody types a secret for a name that is taken
        if not own.dry_run:
            kept = f"; its client secret is kept in the store {keep_secret(spec)}"
    change = destination.apply(entries, places.state_dir, is_dry=own.dry_run)
    if destination.scope is Scope.PROJECT and not own.dry_run:
        _approve_own(spec, places)
        if redact_entry(entry) != entry:
            output.note(
                f"{destination.file} is meant to be shared, and the entry holds what looks like a secret: write "
                "${NAME} in its place and set the variable"
            )
    told = f"added {name} to {destination.file} ({destination.scope}){kept}; to try it: mcp-actors list {name}"
    tell_change(change, told, is_dry=own.dry_run)
    return OK


def _approve_own(spec: ServerSpec, places: Places) -> None:
    """Whoever typed the command has seen it: asking again would be noise."""
    from mcp_actors.config.remembering import remember
    from mcp_actors.files.places import CHOICES_FILE
    from mcp_actors.files.writing import change_file

    file = places.state_dir / CHOICES_FILE
    change_file(file, lambda text: remember(text, spec, str(file)), places.state_dir)


# ── remove ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_remove(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``remove``."""
    add_scope(parser)
    parser.add_argument("name", metavar="NAME", help="a server that stands in that file")


def run_remove(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Take one entry out of a file; 1 when it is not there."""
    del shared
    from mcp_actors.cli.configured import places_of, refuse_when_managed
    from mcp_actors.cli.destinations import destination_of

    places = places_of()
    refuse_when_managed(places)
    destination = destination_of(own.scope or _only_scope_of(own.name, places), places)

    removed: list[Json] = []

    def entries(held: JsonObject) -> Mapping[str, None]:
        removed[:] = [held.get(own.name)]
        if own.name not in held:
            there = f"there are: {', '.join(held)}" if held else "there are no servers"
            raise Refused(f"no server is named {own.name!r} in {destination.file} ({destination.scope})\n{there}")
        return {own.name: None}

    change = destination.apply(entries, places.state_dir, is_dry=own.dry_run)
    if not own.dry_run:
        forget_secret(read_entry(own.name, removed[0], destination).specs)
    tell_change(change, f"removed {own.name} from {destination.file} ({destination.scope})", is_dry=own.dry_run)
    return OK


def _only_scope_of(name: str, places: Places) -> str:
    """The scope that defines `name`; the default where none does.

    Raises:
        UsageError: several do.
    """
    from mcp_actors.cli.destinations import destination_of
    from mcp_actors.errors import ConfigError

    found: list[str] = []
    for scope in SCOPES:
        destination = destination_of(scope, places)
        try:
            if name in destination.held():
                found.append(scope)
        except ConfigError:
            continue
    if len(found) > 1:
        raise UsageError(f"{name} is defined in several scopes, say which with -s: {', '.join(found)}")
    return found[0] if found else DEFAULT_SCOPE
