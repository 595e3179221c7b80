"""Owns the reading of configuration files: the only place that opens what a configuration names.

What this is not: what the files mean; all of that is pure and in `config/`. Nothing here starts or contacts a server.

Blocking, and short: a few small files. A body with other work in hand calls `load_config` in a thread.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, frozen

from mcp_actors.config.approvals import Approvals, apply_approvals
from mcp_actors.config.formats import NATIVE, format_of_path
from mcp_actors.config.merge import merge
from mcp_actors.config.notes import ConfigNote, Shadowed
from mcp_actors.config.settings import TRUE_WORDS
from mcp_actors.config.sources import (
    SourceReading,
    SourceText,
    Surroundings,
    parse_source,
    read_document,
    read_source,
)
from mcp_actors.config.specs import InProcessTarget, Scope, ServerSpec
from mcp_actors.errors import ConfigError
from mcp_actors.tools.naming import normalise

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = [
    "APPROVE_PROJECT",
    "MAX_FILE_BYTES",
    "LoadedConfig",
    "finish",
    "load_config",
    "read_bounded",
    "specs_from_mapping",
]

# A thousand servers take 300 kB; `~/.claude.json` of a long-time user a few MB.
MAX_FILE_BYTES = 64 * 1024 * 1024

# Variable that says yes to every project server, for scripts and headless runs.
APPROVE_PROJECT = "MCP_ACTORS_APPROVE_PROJECT"

PROJECT_FILE = ".mcp.json"

ConfigInput: TypeAlias = "str | Path"


@frozen
class LoadedConfig:
    """What should run, and everything there is to say about it.

    `specs`: one per name, stable order (by scope, lowest precedence first, then file order). `problems`: entries and
    files that could not be used. `shadowed`: definitions that lost to another.
    """

    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[ConfigNote, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()
    # Paths and labels that were read, in the order of reading.
    files: tuple[str, ...] = ()


def load_config(
    configs: Sequence[ConfigInput] = (),
    *,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    home: Path | None = None,
    strict: bool = False,
    stop_at: Path | None = None,
    approve_project: bool = False,
    approvals: Approvals | None = None,
    is_unset_fatal: bool = False,
) -> LoadedConfig:
    """Read every configuration that applies in `cwd` and merge it.

    Args:
        configs: files or JSON texts of ``--config``, later ones override earlier ones.
        environ: environment for variables and for ``CLAUDE_CONFIG_DIR`` and ``MCP_ACTORS_APPROVE_PROJECT``.
        cwd: directory that the user works in; None: this process's.
        home: where ``.claude.json`` is; None: ``HOME`` of `environ`, else this user's.
        strict: only `configs` count.
        stop_at: last directory of the upward search for ``.mcp.json``; None: the root.
        approve_project: the user says yes to every server of ``.mcp.json`` files.
        approvals: what the user chose before.
        is_unset_fatal: an unset variable without default keeps its entry from running.

    Returns:
        The merged configuration. A missing file is no problem, unless it was named in `configs`; a project server
        without approval is in `specs`, disabled with reason ``pending-approval``.

    Source:
        S001, S009-S012, S017-S020, S023, S039, S042; faults 21, 28, 109.
    """
    cwd = Path.cwd() if cwd is None else cwd
    home = Path(environ.get("HOME") or Path.home()) if home is None else home
    around = Surroundings(environ, str(cwd), str(home), is_unset_fatal, _read_named_file)
    chosen = approvals or Approvals()
    if approve_project or environ.get(APPROVE_PROJECT, "").strip().lower() in TRUE_WORDS:
        chosen = evolve(chosen, is_all_enabled=True)
    readings: list[SourceReading] = []
    if not strict:
        readings += _read_claude_json(cwd, home, around)
        readings += _read_project_files(cwd, stop_at, around)
    readings += [_read_config(item, number, cwd, around) for number, item in enumerate(configs, start=1)]
    return finish(readings, chosen)


def finish(readings: Sequence[SourceReading], approvals: Approvals) -> LoadedConfig:
    """Approve, merge and look at the whole."""
    readings = [evolve(reading, specs=apply_approvals(reading.specs, approvals)) for reading in readings]
    merged = merge(readings)
    notes = [note for reading in readings for note in reading.notes]
    return LoadedConfig(
        specs=merged.specs,
        problems=tuple(problem for reading in readings for problem in reading.problems),
        notes=(*notes, *_notes_on_whole(merged.specs, merged.shadowed)),
        shadowed=merged.shadowed,
        files=tuple(reading.file for reading in readings),
    )


def specs_from_mapping(
    mapping: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    source: str = "<program>",
    scope: Scope = Scope.DYNAMIC,
    is_unset_fatal: bool = False,
) -> LoadedConfig:
    """Read a configuration that a program holds in its hands.

    Args:
        mapping: ``{"mcpServers": {name: entry}}``; an entry as in a file, a `ServerSpec`, or an `InProcessTarget`.
        environ: environment for the variables.
        source: what to call it in messages.
        scope: scope of the specs.
        is_unset_fatal: an unset variable without default keeps its entry from running.

    Returns:
        The configuration, servers in the order of the mapping.

    Source:
        S016, S087.
    """
    from mcp_actors.config.jsonc import Document

    table = mapping.get("mcpServers")
    objects = dict(table.items()) if isinstance(table, Mapping) else {}
    made: dict[str, ServerSpec] = {}
    for name, entry in objects.items():
        if isinstance(entry, ServerSpec):
            made[name] = evolve(entry, name=name)
        elif isinstance(entry, InProcessTarget):
            made[name] = ServerSpec(name=name, target=entry, scope=scope, source=source)
    text = SourceText(b"", source, scope)
    plain = {key: _plain(value) for key, value in mapping.items() if key != "mcpServers"}
    if isinstance(table, Mapping):
        plain["mcpServers"] = {str(name): _plain(entry) for name, entry in objects.items() if name not in made}
    elif table is not None:
        plain["mcpServers"] = str(type(table).__name__)
    reading = read_document(Document(plain, ""), text, Surroundings(environ, is_unset_fatal=is_unset_fatal))
    read = {spec.name: spec for spec in reading.specs} | made
    ordered = tuple(read[name] for name in map(str, objects) if name in read)
    return finish([evolve(reading, specs=ordered)], Approvals())


def _plain(value: object) -> Json:
    """Tuples and mappings of a program as lists and objects of JSON; what JSON has no word for becomes a list."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return [type(value).__name__]  # no field takes such a list, so it is reported with its key


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def _read_claude_json(cwd: Path, home: Path, around: Surroundings) -> list[SourceReading]:
    """``~/.claude.json``: user servers at the top, local ones under the project's path (S009, S012, S042)."""
    override = around.environ.get("CLAUDE_CONFIG_DIR")
    path = (Path(override) if override else home) / ".claude.json"
    if _is_missing(path):
        return []
    source = _source(path, Scope.USER, must_have_servers=False)
    if isinstance(source, SourceReading):
        return [source]
    try:
        document = parse_source(source)
    except ConfigError as problem:
        return [SourceReading(Scope.USER, source.file, problems=(problem,))]
    readings = [read_document(document, source, around)]
    projects = document.value.get("projects") if isinstance(document.value, Mapping) else None
    if isinstance(projects, Mapping):
        for rank, directory in enumerate(_project_directories(cwd)):
            names = (str(directory), directory.as_posix())
            key = next((name for name in names if isinstance(projects.get(name), Mapping)), None)
            if key is not None:
                local = evolve(source, scope=Scope.LOCAL, rank=-rank, directory=str(directory))
                readings.append(read_document(document, local, around, root=("projects", key, "mcpServers")))
    return readings


def _project_directories(cwd: Path) -> list[Path]:
    """`cwd` and its parents up to the repository that holds it; only `cwd` outside of one. Nearest first."""
    upward = [cwd, *cwd.parents]
    top = next((index for index, directory in enumerate(upward) if (directory / ".git").exists()), 0)
    found = upward[: top + 1]
    resolved = cwd.resolve()
    return found if resolved == cwd else [*found, resolved]


def _read_project_files(cwd: Path, stop_at: Path | None, around: Surroundings) -> list[SourceReading]:
    """``.mcp.json`` in `cwd` and above; the nearest has the highest rank (S010, S011)."""
    readings: list[SourceReading] = []
    for distance, directory in enumerate([cwd, *cwd.parents]):
        if not _is_missing(directory / PROJECT_FILE):
            source = _source(directory / PROJECT_FILE, Scope.PROJECT, rank=-distance, directory=str(directory))
            readings.append(read_source(source, around) if isinstance(source, SourceText) else source)
        if directory == stop_at:
            break
    return readings


def _read_config(item: ConfigInput, number: int, cwd: Path, around: Surroundings) -> SourceReading:
    """One ``--config``: JSON when it begins like an object, else a path relative to `cwd` (S039)."""
    if isinstance(item, str) and item.lstrip("\ufeff \t\r\n").startswith("{"):
        # Lone surrogates come in from argv that is no UTF-8; the entry that holds one is reported.
        text = SourceText(item.encode("utf-8", "surrogatepass"), f"<--config {number}>", Scope.DYNAMIC, number)
        return read_source(text, around)
    path = cwd / item
    chosen = format_of_path(path.as_posix())
    source = _source(path, Scope.DYNAMIC, rank=number, directory=str(path.parent))
    return read_source(evolve(source, format=chosen), around) if isinstance(source, SourceText) else source


def _source(
    path: Path, scope: Scope, *, rank: int = 0, directory: str = "", must_have_servers: bool = True
) -> SourceText | SourceReading:
    """Read a file; a reading with a problem when that fails."""
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as exc:
        reason = (exc.strerror if isinstance(exc, OSError) else None) or "not a usable path"
        problem = ConfigError(file=str(path), reason=f"cannot be read: {reason.lower()}", category="unreadable")
        return SourceReading(scope, str(path), rank, problems=(problem,))
    return SourceText(data, str(path), scope, rank, NATIVE, directory, must_have_servers=must_have_servers)


def _is_missing(path: Path) -> bool:
    """True: nothing stands there. A dangling link or a folder that we may not enter is not nothing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def read_bounded(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file of at most `limit` bytes; a pipe or a device is refused before it can block.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(0, f"larger than {limit} bytes")
    return data


def _read_named_file(path: str, directory: str) -> bytes:
    """Read what an entry names (`envFile`), relative to its configuration's directory."""
    try:
        return read_bounded(Path(directory) / Path(path).expanduser(), limit=1024 * 1024)
    except (ValueError, RuntimeError) as exc:  # a NUL in the path; a ~user that nobody is
        raise FileNotFoundError(0, "not a usable path") from exc


# ── the whole ────────────────────────────────────────────────────────────────────────────────────────────────────────
def _notes_on_whole(specs: Sequence[ServerSpec], shadowed: Sequence[Shadowed]) -> list[ConfigNote]:
    """What only shows when everything is together: waiting approvals, names that collide, different definitions."""
    notes: list[ConfigNote] = []
    pending = [spec for spec in specs if not spec.is_enabled and spec.disabled_reason == "pending-approval"]
    for spec in pending:
        text = (
            f"the project's server waits for your approval and is not started: look at it in {spec.source}, "
            f"then approve it, pass --approve-project or set {APPROVE_PROJECT}=1"
        )
        notes.append(ConfigNote("pending-approval", text, server=spec.name, file=spec.source, key=spec.name))
    by_normal: dict[str, list[ServerSpec]] = {}
    for spec in specs:
        normal = normalise(spec.name)
        by_normal.setdefault(normal, []).append(spec)
        if "__" in normal:
            text = "the name holds two underscores, so that its tools' names cannot be taken apart again"
            notes.append(ConfigNote("double-underscore", text, server=spec.name, file=spec.source, key=spec.name))
    for same in by_normal.values():
        if len(same) > 1:
            names = ", ".join(spec.name for spec in same)
            text = f"these names look alike in tool names and get a suffix there: {names}"
            notes.append(ConfigNote("name-collision", text, server=same[-1].name, file=same[-1].source))
    notes += [
        ConfigNote("shadowed", str(lost), server=lost.name, file=lost.source, is_warning=lost.is_different)
        for lost in shadowed
    ]
    return notes
