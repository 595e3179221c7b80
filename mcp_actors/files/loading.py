"""Owns which configuration files count, and in which order: the way from a working directory to a `LoadedConfig`.

What this is not: what the files mean; all of that is pure and in `config/`. Kinds of files that have more to them are
read beside this (`claude_json`, `plugins`, `settings_files`, `managed`, `ide`), and what a program holds in its hands
needs none of it (`given`). Nothing starts or contacts a server.

Blocking, and short: a few small files. A body with other work in hand calls `load_config` in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.formats import format_of_path
from mcp_actors.config.loaded import APPROVE_PROJECT, LoadedConfig, assemble
from mcp_actors.config.settings import TRUE_WORDS
from mcp_actors.config.source_texts import read_source
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings
from mcp_actors.config.specs import Scope
from mcp_actors.files.claude_json import read_claude_json
from mcp_actors.files.managed import managed_servers, refuse_configs
from mcp_actors.files.places import (
    MANAGED_FILE,
    PROJECT_FILE,
    Places,
    is_json_text,
    is_missing,
    read_named_file,
    source_at,
)
from mcp_actors.files.settings_files import read_settings_files
from mcp_actors.tools.naming import normalise_server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mcp_actors.config.approvals import Approvals
    from mcp_actors.files.places import ConfigInput
    from mcp_actors.files.plugins import Plugin

__all__ = ["APPROVE_PROJECT", "LoadedConfig", "load_config"]


def load_config(
    configs: Sequence[ConfigInput] = (),
    *,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    home: Path | None = None,
    managed_dir: Path | None = None,
    strict: bool = False,
    stop_at: Path | None = None,
    approve_project: bool = False,
    approvals: Approvals | None = None,
    plugins: Mapping[str, Path | Plugin] | None = None,
    is_unset_fatal: bool = False,
    ide: bool = False,
    settings: ConfigInput | None = None,
) -> LoadedConfig:
    """Read every configuration that applies in `cwd` and merge it.

    Args:
        configs: files or JSON texts of ``--config``, later ones override earlier ones.
        environ: environment for variables and for ``CLAUDE_CONFIG_DIR`` and ``MCP_ACTORS_APPROVE_PROJECT``.
        cwd: directory that the user works in; None: this process's.
        home: where ``.claude.json`` is; None: ``HOME`` of `environ`, else this user's.
        managed_dir: where an administrator's files are; None: as the platform has it.
        strict: only `configs` count; policy holds all the same.
        stop_at: last directory of the upward search for ``.mcp.json``; None: the root.
        approve_project: the user says yes to every server of ``.mcp.json`` files.
        approvals: yes and no beside those that files hold: ours in the state directory, and settings files.
        plugins: maps the name of each plugin, first loaded first, to its root directory, or to more of it.
        is_unset_fatal: an unset variable without default keeps its entry from running.
        settings: a settings file, or its JSON text, that counts more than those of user and project (``--settings``).
        ide: the editor that has `cwd` open brings its server along, named ``ide``.

    Returns:
        The merged configuration. A missing file is no problem, unless it was named in `configs`; a project server
        without approval is in `specs`, disabled with reason ``pending-approval``, a blocked one with ``policy``.

    Source:
        S001, S008-S026, S031, S032, S039, S042, S086; faults 21, 28-30, 109.
    """
    places = Places.of(environ, cwd=cwd, home=home, managed_dir=managed_dir, stop_at=stop_at)
    around = Surroundings(environ, str(places.cwd), str(places.home), is_unset_fatal, read_named_file)
    claude = read_claude_json(places, around)
    choices = read_settings_files(places, environ, claude, settings)
    if approve_project or environ.get(APPROVE_PROJECT, "").strip().lower() in TRUE_WORDS:
        choices = evolve(choices, approvals=evolve(choices.approvals, is_all_enabled=True), is_trusted=True)
    if approvals is not None:
        choices = evolve(choices, approvals=choices.approvals.joined(approvals))
    managed = places.managed_dir / MANAGED_FILE
    readings: list[SourceReading]
    if not is_missing(managed):
        choices = evolve(choices, policy=evolve(choices.policy, exclusive_by=str(managed)))
        readings = [managed_servers(managed, around, are_configs_given=bool(configs))]
        return assemble(readings, choices, normalise_server, is_exclusive=True)
    readings = []
    if not strict:
        readings += claude.readings
        if plugins:
            from mcp_actors.files.plugins import read_plugins  # few have any

            readings += read_plugins(plugins, places, around)
        readings += _read_project_files(places, around)
    given = [_read_config(item, number, places.cwd, around) for number, item in enumerate(configs, start=1)]
    readings += refuse_configs(given, choices.sideloads_off_by) if choices.sideloads_off_by is not None else given
    if ide:
        from mcp_actors.files.ide import read_ide  # few ask for it

        readings.append(read_ide(places))
    loaded = assemble(readings, choices, normalise_server)
    if settings is None or is_json_text(settings):
        return loaded
    # So that whoever watches files watches it, too.
    return evolve(loaded, files=(*loaded.files, str(places.cwd / settings)))


def _read_project_files(places: Places, around: Surroundings) -> list[SourceReading]:
    """``.mcp.json`` in the working directory and above; the nearest has the highest rank (S010, S011)."""
    readings: list[SourceReading] = []
    for distance, directory in enumerate(places.upward()):
        if not is_missing(directory / PROJECT_FILE):
            source = source_at(directory / PROJECT_FILE, Scope.PROJECT, rank=-distance, directory=str(directory))
            readings.append(read_source(source, around) if isinstance(source, SourceText) else source)
    return readings


def _read_config(item: ConfigInput, number: int, cwd: Path, around: Surroundings) -> SourceReading:
    """One ``--config``: JSON when it begins like an object, else a path relative to `cwd` (S039)."""
    if is_json_text(item):
        # Lone surrogates come in from argv that is no UTF-8; the entry that holds one is reported.
        text = SourceText(str(item).encode("utf-8", "surrogatepass"), f"<--config {number}>", Scope.DYNAMIC, number)
        return read_source(text, around)
    path = cwd / item
    chosen = format_of_path(path.as_posix())
    source = source_at(path, Scope.DYNAMIC, rank=number, directory=chosen.directory_of(path.as_posix()))
    return read_source(evolve(source, format=chosen), around) if isinstance(source, SourceText) else source
