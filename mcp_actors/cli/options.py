"""Owns the command line's grammar: the table of verbs, the options that every verb takes, where they may stand.

What this is not: what a verb does, or its own options; each family's file has ``configure_VERB`` and ``run_VERB``.

Rules.

1. Only the module of the verb in hand is imported, and it imports nothing heavy at its top (``--help`` under 120 ms).
2. Global options are taken before and after the verb; options and names mix in any order.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from mcp_actors.cli import output
from mcp_actors.cli.exits import UsageError
from mcp_actors.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["VERBS", "GlobalOptions", "Verb", "Words", "parse"]

# The words of MCP_DEBUG and MCP_ACTORS_APPROVE_PROJECT that mean yes (S349).
TRUE_WORDS: Final = frozenset({"1", "true", "yes", "on"})


class Verb(NamedTuple):
    """One verb: the family's module that knows it, and what help says about it."""

    module: str
    summary: str


VERBS: Final[Mapping[str, Verb]] = {
    "demo": Verb("demo", "run the built-in fleet: connect, call, kill one, see it restarted, stop"),
    "list": Verb("inspecting", "connect every server, report its state, stop"),
    "tools": Verb("inspecting", "list the tools of all servers or of one"),
    "get": Verb("inspecting", "show one server: its entry, its status, its tools"),
    "call": Verb("calling", "call a tool: SERVER.TOOL key=value key:=json"),
    "resources": Verb("reading", "list the resources of all servers or of one"),
    "read": Verb("reading", "read a resource: SERVER URI, or @SERVER:URI"),
    "prompts": Verb("prompts", "list the prompts of all servers or of one"),
    "prompt": Verb("prompts", "fill a prompt: SERVER.PROMPT key=text, or /mcp__server__prompt words"),
    "skills": Verb("skills", "list the skills of all servers or of one"),
    "skill": Verb("skills", "show a skill, or a file of it, verified: SERVER SKILL [FILE]"),
    "run": Verb("running", "keep the fleet alive in the foreground"),
    "add": Verb("changing", "add a server to a configuration file"),
    "add-json": Verb("changing", "add a server, given as JSON"),
    "import": Verb("importing", "copy the servers of another program's configuration"),
    "remove": Verb("changing", "remove a server from a configuration file"),
    "enable": Verb("choosing", "switch a server on in this project"),
    "disable": Verb("choosing", "switch a server off in this project"),
    "approve": Verb("choosing", "look at the servers that a project brings along, and allow them"),
    "reset-project-choices": Verb("choosing", "forget what was approved and switched in this project"),
    "login": Verb("auth_verbs", "sign in to a server, in a browser"),
    "logout": Verb("auth_verbs", "revoke and forget the login of a server"),
    "auth": Verb("auth_verbs", "auth status: tell how servers are signed in to; asks nobody"),
    "xaa": Verb("auth_verbs", "xaa setup, login, logout: sign in once with a company, for all its servers"),
    "doctor": Verb("diagnosing", "check the whole configuration and say what to do; starts nothing"),
    "why": Verb("diagnosing", "explain the state of one server; starts nothing"),
    "storm": Verb("storm", "connect many synthetic servers and measure it"),
}


class GlobalOptions(NamedTuple):
    """What every verb is told."""

    # Files or JSON texts, in the order of the command line; later ones win.
    configs: tuple[str, ...] = ()
    # Only `configs` count, no file is looked for.
    is_strict: bool = False
    is_debug: bool = False
    # Where the log goes instead of standard error: a file, or a directory for one file per run (S353).
    debug_file: str | None = None
    # Run the servers of project files without asking (fault 109).
    approves_project: bool = False
    # The server of the editor that has this directory open runs, too (S086).
    has_ide: bool = False
    # A settings file or its JSON text, for this run (S063).
    settings: str | None = None


class Words(NamedTuple):
    """A command line, understood."""

    verb: str
    shared: GlobalOptions
    # The verb's own options, as its ``configure_VERB`` named them.
    own: argparse.Namespace
    run: Callable[[GlobalOptions, argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """argparse without abbreviations (they would change meaning with the next option), and errors as exceptions."""

    def __init__(self, *, prog: str, **kwargs: object) -> None:
        super().__init__(prog=prog, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)  # type: ignore[arg-type]

    def print_help(self, file: object = None) -> None:
        """Write it as data is written: argparse says nothing where it cannot."""
        del file
        output.emit_exactly(self.format_help().encode())

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def _add_shared(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of every verb")
    group.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE|JSON",
        help='a file or a JSON text with "mcpServers"; repeatable, later ones win',
    )
    group.add_argument("--strict-config", action="store_true", help="use only --config, look for no file")
    group.add_argument(
        "--approve-project",
        action="store_true",
        help="run servers of project .mcp.json files, else disabled (also MCP_ACTORS_APPROVE_PROJECT=1)",
    )
    group.add_argument(
        "--settings",
        metavar="FILE|JSON",
        help="a settings file or its JSON text: approvals, policy, permissions and hooks for this run",
    )
    group.add_argument("--ide", action="store_true", help="also the server of the editor that has this directory open")
    group.add_argument("--debug", action="store_true", help="log to standard error (also MCP_DEBUG=1)")
    group.add_argument(
        "--debug-file", metavar="PATH", help="log to this file instead; in a directory, to a file of each run's own"
    )


def _top_parser() -> _Parser:
    width = max(map(len, VERBS))
    table = "\n".join(f"  {name:{width}}  {verb.summary}" for name, verb in VERBS.items())
    parser = _Parser(
        prog="mcp-actors",
        usage="mcp-actors [OPTIONS] VERB ...",
        description="Run a fleet of MCP servers.\n\nverbs (each has its own --help):\n" + table,
        epilog="exit codes: 0 ok, 1 failed, 2 usage, 3 configuration, 4 login needed, 5 timed out, 130 interrupted",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    _add_shared(parser)
    parser.add_argument("verb", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _merge(before: argparse.Namespace, after: argparse.Namespace, environ: Mapping[str, str]) -> GlobalOptions:
    def says_yes(variable: str) -> bool:
        return environ.get(variable, "").strip().lower() in TRUE_WORDS

    debug_file = after.debug_file or before.debug_file
    return GlobalOptions(
        configs=(*before.config, *after.config),
        is_strict=before.strict_config or after.strict_config,
        is_debug=before.debug or after.debug or debug_file is not None or says_yes("MCP_DEBUG"),
        debug_file=debug_file,
        approves_project=before.approve_project or after.approve_project or says_yes("MCP_ACTORS_APPROVE_PROJECT"),
        has_ide=before.ide or after.ide,
        settings=before.settings if after.settings is None else after.settings,
    )


def parse(arguments: Sequence[str], *, environ: Mapping[str, str] = os.environ) -> Words:
    """Understand a command line.

    Args:
        arguments: the words after the program's name.
        environ: variable name -> text.

    Raises:
        UsageError: it cannot be understood.
        SystemExit: help or the version was asked for, and printed.
    """
    top = _top_parser()
    before = top.parse_args(arguments)
    if before.version:
        output.emit(f"mcp-actors {VERSION}")
        raise SystemExit(0)
    if before.verb is None:
        raise UsageError(f"name a verb\n\n{top.format_help().strip()}")
    if before.verb not in VERBS:
        from difflib import get_close_matches

        nearest = get_close_matches(before.verb, VERBS, n=2)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else f"; there are: {', '.join(VERBS)}"
        raise UsageError(f"no verb is named {before.verb!r}{hint}")

    family = import_module(f"mcp_actors.cli.{VERBS[before.verb].module}")
    verb = before.verb.replace("-", "_")
    parser = _Parser(prog=f"mcp-actors {before.verb}", description=VERBS[before.verb].summary)
    getattr(family, f"configure_{verb}")(parser)
    # The usage is the verb's own; the options of every verb are told once, below it.
    parser.usage = parser.usage or parser.format_usage().removeprefix("usage: ").strip().replace("%", "%%")
    _add_shared(parser)
    own = parser.parse_intermixed_args(before.rest)
    return Words(before.verb, _merge(before, own, environ), own, getattr(family, f"run_{verb}"))
