"""Owns the verbs that change one entry of a configuration file: ``add``, ``add-json``, ``remove``.

What this is not: where and how files are written (`destinations`, `writing`). Nothing is started here.

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import output
from mcp_actors.cli.client_secrets import add_client_secret, check_client, forget_secret, keep_secret
from mcp_actors.cli.exits import OK, Refused, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from mcp_actors.cli.destinations import Destination
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.policy import Policy
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.places import Places
    from mcp_actors.files.writing import Change
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "add_scope",
    "build_entry",
    "check_entry",
    "configure_add",
    "configure_add_json",
    "configure_remove",
    "run_add",
    "run_add_json",
    "run_remove",
    "scope_of",
    "tell_change",
]

SCOPES: Final = ("local", "user", "project")
TRANSPORTS: Final = ("stdio", "http", "sse", "ws")
_URL: Final = re.compile(r"(?i)(https?|wss?)://")
# Private to this user and this project (S040): in ~/.claude.json, which Claude Code reads and writes too.
_DEFAULT_SCOPE: Final = "local"


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb that writes a configuration file."""
    parser.add_argument("-s", "--scope", choices=SCOPES, help="which file to write (local)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the change as a diff, secrets starred; write nothing"
    )


def scope_of(own: argparse.Namespace) -> str:
    """The scope that was asked for, else the default (S040)."""
    return str(own.scope or _DEFAULT_SCOPE)


# ── add ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_add(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``add``."""
    parser.usage = "mcp-actors add -s SCOPE [OPTIONS] NAME URL | NAME -- COMMAND [ARGS...]"
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


def build_entry(own: argparse.Namespace, words: Sequence[str]) -> JsonObject:
    """Make an entry of the options of ``add``.

    Args:
        own: transport, env, header, client_id, client_secret, callback_port and timeout, as the options name them.
        words: the command and its arguments, or the address.

    Raises:
        UsageError: they do not fit together.
    """
    if not words:
        raise UsageError("name a command or an address after the server's name")
    kind = own.transport or _transport(words[0])
    entry: dict[str, Json] = {"type": kind}
    if kind == "stdio":
        oauth_options = {"--client-id": own.client_id, "--callback-port": own.callback_port}
        _refuse_options(kind, {"-H": own.header, **oauth_options, "--client-secret": own.client_secret})
        entry |= {"command": words[0], "args": list(words[1:])}
        if own.env:
            entry["env"] = _pairs(own.env, "=", "-e K=V")
    else:
        if len(words) > 1:
            raise UsageError(f"a server of type {kind} takes an address and nothing more, not {words[1]!r}")
        _refuse_options(kind, {"-e": own.env})
        entry["url"] = words[0]
        if own.header:
            entry["headers"] = _pairs(own.header, ":", "-H 'K: V'")
        oauth = {"clientId": own.client_id, "callbackPort": own.callback_port}
        if any(value is not None for value in oauth.values()):
            entry["oauth"] = {key: value for key, value in oauth.items() if value is not None}
    if own.timeout is not None:
        if not (math.isfinite(own.timeout) and own.timeout >= 1):
            raise UsageError("--timeout takes at least one second")
        entry["timeout"] = round(own.timeout * 1000)
    return entry


def _transport(word: str) -> str:
    match = _URL.match(word)
    return "stdio" if match is None else "ws" if match[1].lower().startswith("ws") else "http"


def _refuse_options(kind: str, given: Mapping[str, object]) -> None:
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise UsageError(f"a server of type {kind} has no {' and no '.join(wrong)}")


def _pairs(texts: Sequence[str], sign: str, shape: str) -> dict[str, Json]:
    pairs: dict[str, Json] = {}
    for number, text in enumerate(texts, start=1):
        key, found, value = text.partition(sign)
        if not found or not key.strip():  # the text itself may be a secret
            raise UsageError(f"value {number} of {shape.split()[0]} has another shape than {shape}")
        pairs[key if sign == "=" else key.strip()] = value if sign == "=" else value.strip()
    return pairs


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
    from mcp_actors.files.loading import load_choices

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
    tell_change(change, f"added {name} to {destination.file} ({destination.scope}){kept}", is_dry=own.dry_run)
    return OK


def check_entry(name: str, entry: JsonObject, destination: Destination, policy: Policy) -> ServerSpec:
    """Read an entry as it will be read from the file, and ask whether it may be there.

    Raises:
        ConfigError: it could not run; each of its faults, as a group when there are several.
        ServerNotAllowed: the policy forbids it (S060, S061).
    """
    from mcp_actors.config.policy import decide

    read = _read_entry(name, entry, destination)
    if read.problems:
        raise read.problems[0] if len(read.problems) == 1 else ExceptionGroup("configuration", list(read.problems))
    for note in read.notes:
        if note.is_warning:
            output.note(str(note))
    [spec] = read.specs
    verdict = decide(spec, policy)
    if not verdict.is_allowed:
        raise verdict.error(name)
    return spec


def _read_entry(name: str, entry: Json, destination: Destination) -> SourceReading:
    import os
    from pathlib import Path

    from mcp_actors.config.jsonc import Document
    from mcp_actors.config.sources import SourceText, Surroundings, read_document
    from mcp_actors.files.places import read_named_file

    # As the file will be read: relative paths of a project's file start at its folder.
    directory = str(destination.file.parent if destination.scope == "project" else Path.cwd())
    around = Surroundings(os.environ, directory, os.environ.get("HOME", ""), read_file=read_named_file)
    text = SourceText(b"", str(destination.file), destination.scope, directory=directory)
    return read_document(Document({"mcpServers": {name: entry}}, ""), text, around)


def _approve_own(spec: ServerSpec, places: Places) -> None:
    """Whoever typed the command has seen it: asking again would be noise."""
    from mcp_actors.config.remembered import remember
    from mcp_actors.files.places import CHOICES_FILE
    from mcp_actors.files.writing import change_file

    file = places.state_dir / CHOICES_FILE
    change_file(file, lambda text: remember(text, spec, str(file)), places.state_dir)


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
        forget_secret(_read_entry(own.name, removed[0], destination).specs)
    tell_change(change, f"removed {own.name} from {destination.file} ({destination.scope})", is_dry=own.dry_run)
    return OK


def _only_scope_of(name: str, places: Places) -> str:
    """The scope that defines `name`; the default where none does.

    Raises:
        UsageError: several do.
    """
    from mcp_actors.cli.destinations import destination_of
    from mcp_actors.errors import ConfigError
    from mcp_actors.files.writing import plan_change

    found: list[str] = []
    for scope in SCOPES:
        destination = destination_of(scope, places)
        try:
            change = plan_change(destination.file, lambda text: text or "")
            if name in destination.servers(change.before):
                found.append(scope)
        except ConfigError:
            continue
    if len(found) > 1:
        raise UsageError(f"{name} is defined in several scopes, say which with -s: {', '.join(found)}")
    return found[0] if found else _DEFAULT_SCOPE
