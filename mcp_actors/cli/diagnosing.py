"""Owns the verbs that explain: ``doctor`` looks at everything, ``why`` at one server.

What this is not: the looking (`diagnosis`). Both start nothing; ``why --connect`` starts the one server that is asked
about, when it may run.

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from mcp_actors.cli.diagnosis import Finding
    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.jsontypes import Json

__all__ = ["configure_doctor", "configure_why", "run_doctor", "run_why"]

# What an extra brings, by the module that shows its presence.
EXTRAS: Final[Mapping[str, str]] = {
    "rich": "cli: progress on a terminal",
    "watchfiles": "watch: changes of files are seen at once",
    "jsonschema_rs": "validate: results are checked",
    "cryptography": "jwt: signed assertions and DPoP",
    "PIL": "images: large pictures are made small",
    "yaml": "skills: skills of servers are checked",
    "keyring": "logins are kept in the system's key store",
}
_COLOURS: Final[Mapping[str, str]] = {"error": "31", "warning": "33", "note": "2", "ok": "32"}


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help='print {"files": [...], "findings": [...], ...}')


def run_doctor(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Check everything; 0 without errors, 3 when a whole file cannot be used, else 1."""
    from mcp_actors.cli import render
    from mcp_actors.cli.configured import places_of, read_configuration
    from mcp_actors.cli.descriptors import missing_room
    from mcp_actors.cli.diagnosis import Finding, find_all, find_state
    from mcp_actors.config.settings import read_settings
    from mcp_actors.config.specs import StdioTarget

    places = places_of()
    loaded = read_configuration(shared)
    findings = list(find_all(loaded, os.environ, str(places.cwd)))
    findings += [Finding("warning", "environment", text) for text in read_settings(os.environ)[1]]
    findings += find_state(places.state_dir)
    programs = sum(spec.is_enabled and isinstance(spec.target, StdioTarget) for spec in loaded.specs)
    if (missing := missing_room(programs)) is not None:
        findings.append(Finding("warning", "descriptors", missing, remedy="raise that limit: ulimit -n, LimitNOFILE="))
    about: dict[str, Json] = {
        "version": _version(),
        "python": sys.version.split()[0],
        "state": str(places.state_dir),
        "extras": {name: _is_installed(name) for name in EXTRAS},
        "managed": loaded.is_exclusive,
        "files": list(dict.fromkeys(loaded.files)),
    }
    if own.json:
        output.emit(render.json_text({**about, "findings": [finding.row() for finding in findings]}))
    else:
        output.emit(_text(about, findings, has_colour=output.has_colour()))
    if any(problem.server is None for problem in loaded.problems):
        return exits.CONFIG
    return exits.FAILED if any(finding.level == "error" for finding in findings) else exits.OK


def _version() -> str:
    from importlib.metadata import version

    return version("mcp-actors")


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _text(about: Mapping[str, Json], findings: Sequence[Finding], *, has_colour: bool) -> str:
    from mcp_actors.cli.render import clean_line

    lines = [f"mcp-actors {about['version']}, Python {about['python']}", f"state: {about['state']}"]
    extras, files = about["extras"], about["files"]
    assert isinstance(extras, dict)
    assert isinstance(files, list)
    lines += [f"not installed: {name} ({EXTRAS[name]})" for name, is_there in extras.items() if not is_there]
    lines += [f"read: {file}" for file in files] or ["read: no file"]
    if about["managed"]:
        lines.append("an administrator has exclusive control: no other file counts")
    for finding in findings:
        level = finding.level.ljust(7)
        mark = f"\x1b[{_COLOURS[finding.level]}m{level}\x1b[0m" if has_colour else level
        name = "" if finding.server is None else f"{finding.server}: "
        place = f" [{finding.file}]" if finding.file else ""
        lines.append(f"{mark}  {clean_line(name + finding.text + place, 2000)}")
        if finding.remedy:
            lines.append(f"         -> {clean_line(finding.remedy, 2000)}")
    counts = {level: sum(finding.level == level for finding in findings) for level in _COLOURS}
    told = ", ".join(f"{count} {level}{'s' * (count != 1 and level != 'ok')}" for level, count in counts.items())
    return "\n".join([*map(_plain, lines), f"{told}; nothing was started: mcp-actors list connects them"])


def _plain(line: str) -> str:
    from mcp_actors.cli.render import clean

    return line if line.startswith("\x1b[") else clean(line)


# ── why ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_why(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``why``."""
    parser.add_argument("name", metavar="SERVER", help="a configured server")
    parser.add_argument("--connect", action="store_true", help="start it too, when it may run, and say what happens")
    parser.add_argument("--json", action="store_true", help="print one object")


def run_why(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Explain one server; 0 when it is explained, with ``--connect`` as ``get``."""
    from mcp_actors.cli import render
    from mcp_actors.cli.configured import no_such_server, places_of, read_configuration
    from mcp_actors.cli.diagnosis import explain_server, explain_text

    loaded = read_configuration(shared)
    names = [spec.name for spec in loaded.specs]
    known = {*names, *(problem.server for problem in loaded.problems), *(lost.name for lost in loaded.shadowed)}
    if own.name not in known:
        raise no_such_server(own.name, names)
    shown = explain_server(own.name, loaded, os.environ, str(places_of().cwd))
    code = exits.OK
    if own.connect and shown["runs"]:
        from mcp_actors.cli.fleet import load_plan
        from mcp_actors.cli.signals import run_interruptibly

        status: dict[str, Json] = {}
        code = run_interruptibly(partial(_connect, load_plan(shared).only(own.name), own.name, status))
        shown["status"] = status
    if own.json:
        output.emit(render.json_text(shown))
    else:
        output.emit(render.clean(explain_text(shown)))
    return code


async def _connect(plan: Plan, name: str, shown: dict[str, Json]) -> int:
    """Start one server, look at it, and stop it; its status goes to `shown`."""
    from mcp_actors.cli import render
    from mcp_actors.cli.fleet import open_fleet, settle

    async with open_fleet(plan.once()) as runtime:
        await settle(runtime)
        status = runtime.status()[name]
    shown |= render.server_row(status)
    return exits.OK if status.is_connected else exits.code_of_state(str(status.state), status.reason)
