"""Owns what `doctor` and `why` find: each definition that was read, whether it runs, and what to do where it does not.

What this is not: printing it (`diagnosing`). Nothing here starts, resolves over the network or contacts anything; the
file system is asked where a program is, and that is all.

Rule 1: nothing is left out in silence. Every definition of every file is in the list, once, with its state.
"""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Final

from mcp_actors.cli.redact import redact_entry, redact_place
from mcp_actors.config.approvals import approval_of
from mcp_actors.config.policy import decide
from mcp_actors.config.remedies import MISSED, switched_off_remedy
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget
from mcp_actors.errors import ConnectFailed
from mcp_actors.transports.commands import resolve_final
from mcp_actors.transports.environment import child_environment
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_actors.errors import ConfigError
    from mcp_actors.files.loading import LoadedConfig
    from mcp_actors.jsontypes import Json

__all__ = ["Finding", "explain_server", "explain_text", "find_all", "find_state", "program_of"]

# Told of as states of their servers.
TOLD: Final = frozenset({"pending-approval", "policy", "shadowed", "not-configured"})


@frozen
class Finding:
    """One line of `doctor`. `level`: ok, note, warning or error."""

    level: str
    code: str
    text: str
    server: str | None = None
    scope: str | None = None
    file: str | None = None
    remedy: str | None = None

    def row(self) -> dict[str, Json]:
        """The documented keys of ``doctor --json``."""
        return {
            "level": self.level,
            "code": self.code,
            "server": self.server,
            "scope": self.scope,
            "file": self.file,
            "text": self.text,
            "remedy": self.remedy,
        }


def program_of(spec: ServerSpec, environ: Mapping[str, str], cwd: str) -> str:
    """Find the file that a stdio server would start.

    Raises:
        ConnectFailed: there is none.
    """
    assert isinstance(spec.target, StdioTarget)
    own = child_environment(environ, spec.target.environment)
    target = spec.target
    return resolve_final(target.command, target.args, environ, environ=own, cwd=target.cwd or cwd)[1]


def find_all(loaded: LoadedConfig, environ: Mapping[str, str], cwd: str) -> Iterator[Finding]:
    """Everything there is to say about a configuration: problems, then servers in their order, then notes."""
    for problem in loaded.problems:
        yield _of_problem(problem)
    for spec in loaded.specs:
        yield _of_spec(spec, environ, cwd)
    for lost in loaded.shadowed:
        yield Finding(
            "warning" if lost.is_different else "note",
            "shadowed" if lost.by == "name" else "duplicate",
            f"not used: {lost.winner} of {lost.winner_source} ({lost.winner_scope}) runs instead"
            + ("" if lost.is_different else ", and leads to the same server"),
            server=lost.name,
            scope=str(lost.scope),
            file=lost.source,
            remedy="remove one of the two" if lost.is_different else None,
        )
    for note in loaded.notes:
        if note.code not in TOLD:
            level = "warning" if note.is_warning else "note"
            place = note.file if note.line is None else f"{note.file}:{note.line}:{note.column or 1}"
            text = f"{note.key}: {note.text}" if note.key else note.text
            yield Finding(level, note.code, text, server=note.server, file=place)


def find_state(state_dir: Path) -> Iterator[Finding]:
    """Whether what we remember is for this user alone."""
    for path in (state_dir, *(state_dir.glob("*.json") if state_dir.is_dir() else ())):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if stat.S_IMODE(mode) & 0o077:
            private = "700" if path.is_dir() else "600"
            yield Finding(
                "warning",
                "open-state",
                "others of this machine may read or change what we remember",
                file=str(path),
                remedy=f"chmod {private} {path}",
            )


def _of_problem(problem: ConfigError) -> Finding:
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}:{problem.column or 1}"
    text = f"{problem.key}: {problem.reason}" if problem.key else problem.reason
    return Finding(
        "error", problem.category.replace("_", "-"), text, server=problem.server, file=place, remedy=problem.remedy
    )


def _of_spec(spec: ServerSpec, environ: Mapping[str, str], cwd: str) -> Finding:
    about = {"server": spec.name, "scope": str(spec.scope), "file": spec.source}
    if not spec.is_enabled:
        level = "warning" if spec.disabled_reason in MISSED else "note"
        remedy = switched_off_remedy(spec.disabled_reason, spec.name)
        text = f"does not run: {spec.disabled_reason}" + (f": {spec.disabled_detail}" if spec.disabled_detail else "")
        return Finding(level, spec.disabled_reason, text, remedy=remedy, **about)
    if isinstance(spec.target, StdioTarget):
        try:
            return Finding("ok", "runs", f"stdio: {program_of(spec, environ, cwd)}", **about)
        except ConnectFailed as error:
            return Finding("error", "command-not-found", error.reason, **about)
    return Finding("ok", "runs", f"{spec.transport}: {_address(spec)}", **about)


def _address(spec: ServerSpec) -> str:
    """Where it is, as written: what variables stand for is not shown, nor a path, which may hold a key (S030)."""
    return redact_place(str(spec.raw.get("url") or ""))


def explain_server(name: str, loaded: LoadedConfig, environ: Mapping[str, str], cwd: str) -> dict[str, Json]:
    """Everything that decides about one server; the documented keys of ``why --json``.

    `loaded` defines it at least once, or has a problem of that name.
    """
    spec = next((each for each in loaded.specs if each.name == name), None)
    problems = [problem for problem in loaded.problems if problem.server == name]
    lost = [each for each in loaded.shadowed if name in (each.name, each.winner)]
    shown: dict[str, Json] = {
        "name": name,
        "runs": spec is not None and spec.is_enabled,
        "reason": "invalid-config" if spec is None else "enabled" if spec.is_enabled else spec.disabled_reason,
        "detail": "" if spec is None else spec.disabled_detail,
        "scope": None if spec is None else str(spec.scope),
        "file": None if spec is None else spec.source,
        "entry": None if spec is None else redact_entry(spec.raw),
        "not_used": [str(each) for each in lost],
        "problems": [problem.describe() for problem in problems],
        "warnings": [str(note) for note in loaded.notes if note.server == name and note.code not in TOLD],
        "approval": None,
        "policy": None,
        "program": None,
        "remedy": None,
    }
    if spec is None:
        shown["remedy"] = next((problem.remedy for problem in problems if problem.remedy), "mend the entry")
        return shown
    finding = _of_spec(spec, environ, cwd)
    shown["policy"] = str(decide(spec, loaded.choices.policy))
    if spec.scope is Scope.PROJECT:
        shown["approval"] = str(approval_of(spec, loaded.choices.approvals))
    elif any(each.scope is Scope.PROJECT and each.name == name for each in lost):
        shown["approval"] = "a project's definition of this name is not used"
    if isinstance(spec.target, StdioTarget):
        try:
            shown["program"] = program_of(spec, environ, cwd)
        except ConnectFailed as error:
            shown["program"] = error.reason
            if spec.is_enabled:
                shown["reason"] = "command-not-found"
    elif isinstance(spec.target, RemoteTarget):
        shown["program"] = _address(spec)
    shown["remedy"] = finding.remedy or shown["remedy"]
    return shown


def explain_text(shown: Mapping[str, Json]) -> str:
    """What `why` prints for a person."""
    state = "nothing stands against it" if shown["runs"] else f"does not run ({shown['reason']})"
    if shown["runs"] and shown["reason"] != "enabled":
        state = f"cannot start ({shown['reason']})"
    lines = [f"{shown['name']}: {state}" + (f": {shown['detail']}" if shown["detail"] else "")]
    if shown["file"] is not None:
        lines += [f"  defined in {shown['file']} (scope {shown['scope']})", f"  entry {json.dumps(shown['entry'])}"]
    for key in ("policy", "approval", "program"):
        if shown[key] is not None:
            label = "address" if key == "program" and "://" in str(shown[key]) else key
            lines.append(f"  {label}: {shown[key]}")
    for key, mark in (("problems", "problem"), ("not_used", "not used"), ("warnings", "warning")):
        told = shown[key]
        lines += [f"  {mark}: {each}" for each in told] if isinstance(told, list) else []
    status = shown.get("status")
    if isinstance(status, dict):
        lines.append(f"  now: {status['state']} ({status['reason']})" + (f": {e}" if (e := status["error"]) else ""))
        told = status["warnings"]
        lines += [f"  warning: {' '.join(str(each).split())}" for each in told] if isinstance(told, list) else []
    remedy = status["remedy"] if isinstance(status, dict) and status["remedy"] else shown["remedy"]
    if remedy is None and status is None and shown["reason"] == "enabled":
        remedy = "to see whether it connects: the same with --connect"
    return "\n".join([*lines, *([f"  -> {remedy}"] if remedy else [])])
