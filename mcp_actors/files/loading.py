"""Owns the reading of configuration files: the only place that opens what a configuration names.

What this is not: what the files mean; all of that is pure and in `config/`. Nothing here starts or contacts a server.

Blocking, and short: a few small files. A body with other work in hand calls `load_config` in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from attrs import evolve, field, frozen

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.choices import (
    OPEN_CHOICES,
    Choices,
    SettingsLayer,
    SettingsText,
    read_choices,
)
from mcp_actors.config.formats import format_of_path
from mcp_actors.config.jsonc import decode_text
from mcp_actors.config.loaded import APPROVE_PROJECT, LoadedConfig, assemble, read_mapping
from mcp_actors.config.remembered import NOTHING_REMEMBERED, Remembered, parse_remembered
from mcp_actors.config.settings import TRUE_WORDS
from mcp_actors.config.sources import (
    SourceReading,
    SourceText,
    Surroundings,
    parse_source,
    read_document,
    read_source,
)
from mcp_actors.config.specs import Scope
from mcp_actors.errors import ConfigError
from mcp_actors.files.ide import read_ide
from mcp_actors.files.managed import managed_servers, managed_settings, refuse_configs
from mcp_actors.files.places import Places, is_missing, read_bounded, read_named_file, source_at, unreadable
from mcp_actors.tools.naming import normalise_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import Json

__all__ = [
    "APPROVE_PROJECT",
    "CHOICES_FILE",
    "MANAGED_FILE",
    "PROJECT_FILE",
    "ConfigLike",
    "LoadedConfig",
    "Plugin",
    "load_any",
    "load_choices",
    "load_config",
    "specs_from_mapping",
    "with_readings",
]


@frozen
class Plugin:
    """A plugin that a program has loaded, and what its files may refer to (S031)."""

    root: Path
    # ``${CLAUDE_PLUGIN_DATA}``: where it keeps what outlives an update; None: below our state directory.
    data: Path | None = None
    # ``${user_config.KEY}``: what its user chose, perhaps secrets. Maps key -> value.
    user_config: Mapping[str, str] = field(factory=dict, repr=False)


PROJECT_FILE = ".mcp.json"
# In our own state directory: what was approved and switched (`config.remembered`).
CHOICES_FILE = "choices.json"
MANAGED_FILE = "managed-mcp.json"
ConfigInput: TypeAlias = "str | Path"

# A mapping {"mcpServers": {...}}, the path (or JSON text) of a file, server specs, what `loading` loaded;
# None: the files that apply in the working directory.
ConfigLike: TypeAlias = "LoadedConfig | Mapping[str, object] | str | Path | Iterable[ServerSpec] | None"


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
    claude = _read_claude_json(places, around)
    choices = _choices(places, environ, claude, settings)
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
        readings += _read_plugins(plugins or {}, places, around)
        readings += _read_project_files(places, around)
    given = [_read_config(item, number, places.cwd, around) for number, item in enumerate(configs, start=1)]
    readings += refuse_configs(given, choices.sideloads_off_by) if choices.sideloads_off_by is not None else given
    readings += [read_ide(places)] if ide else []
    loaded = assemble(readings, choices, normalise_server)
    if settings is None or _is_json(settings):
        return loaded
    # So that whoever watches files watches it, too.
    return evolve(loaded, files=(*loaded.files, str(places.cwd / settings)))


def load_any(config: ConfigLike, environ: Mapping[str, str]) -> LoadedConfig:
    """Turn whatever names a configuration into a loaded one. Raises `ConfigError` when nothing of it can be used."""
    if isinstance(config, LoadedConfig):
        return config
    if isinstance(config, Mapping):
        choices = load_choices(environ)
        loaded = specs_from_mapping(config, environ, choices=choices)  # pyright: ignore[reportArgumentType]
    elif config is None:
        loaded = load_config(environ=environ)
    elif isinstance(config, str | Path):
        loaded = load_config([config], environ=environ, strict=True)
    else:
        return LoadedConfig(specs=tuple(config), choices=load_choices(environ))
    unusable = [problem for problem in loaded.problems if problem.server is None]
    if unusable and not loaded.specs:
        raise unusable[0]
    return loaded


def load_choices(environ: Mapping[str, str], *, places: Places | None = None) -> Choices:
    """Read only what settings files say: for servers that a program adds itself (S048, S060, fault 29)."""
    places = places or Places.of(environ)
    return _choices(places, environ, _read_claude_json(places, Surroundings(environ)))


def with_readings(
    loaded: LoadedConfig, late: Sequence[SourceReading], needs_auth: Collection[str] = ()
) -> LoadedConfig:
    """The configuration with sources that arrived late: connectors, mostly. Everything is decided anew.

    Source:
        S015, S022, S056, S057.
    """
    if loaded.choices.are_connectors_off:
        late = [reading for reading in late if reading.scope is not Scope.CLAUDEAI]
    if loaded.is_exclusive:
        late = [
            reading for reading in late if reading.scope is Scope.CLAUDEAI and loaded.choices.are_connectors_managed
        ]
    readings = [*loaded.readings, *late]
    return assemble(readings, loaded.choices, normalise_server, needs_auth=needs_auth, is_exclusive=loaded.is_exclusive)


def specs_from_mapping(
    mapping: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    source: str = "<program>",
    scope: Scope = Scope.DYNAMIC,
    is_unset_fatal: bool = False,
    choices: Choices = OPEN_CHOICES,
) -> LoadedConfig:
    """Read a configuration that a program holds in its hands: see `config.loaded.read_mapping`.

    `choices` are those of `load_choices` where the policy of the machine is to hold.
    """
    reading = read_mapping(mapping, environ, source, scope, is_unset_fatal=is_unset_fatal)
    return assemble([reading], choices, normalise_server)


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class _ClaudeJson(NamedTuple):
    """``~/.claude.json``: user and local servers, and what it knows about this project."""

    readings: tuple[SourceReading, ...] = ()
    approvals: Approvals = Approvals()
    switched_off: frozenset[str] = frozenset()
    is_trusted: bool = False


def _read_claude_json(places: Places, around: Surroundings) -> _ClaudeJson:
    """User servers at the top, local ones under the project's path (S009, S012, S024, S037)."""
    if is_missing(places.claude_json):
        return _ClaudeJson()
    source = source_at(places.claude_json, Scope.USER, must_have_servers=False)
    if isinstance(source, SourceReading):
        return _ClaudeJson((source,))
    try:
        document = parse_source(source)
    except ConfigError as problem:
        return _ClaudeJson((SourceReading(Scope.USER, source.file, problems=(problem,)),))
    readings = [read_document(document, source, around)]
    approvals, switched_off, is_trusted = Approvals(), frozenset[str](), False
    projects = document.value.get("projects") if isinstance(document.value, Mapping) else None
    table = projects if isinstance(projects, Mapping) else {}
    for rank, directory in enumerate(places.project_directories()):
        key = next((name for name in (str(directory), directory.as_posix()) if name in table), str(directory))
        project = table.get(key)
        if not isinstance(project, Mapping):
            continue
        local = evolve(source, scope=Scope.LOCAL, rank=-rank, directory=str(directory))
        readings.append(read_document(document, local, around, root=("projects", key, "mcpServers")))
        # This file is the user's own, so that its choices count without trust.
        approvals = approvals.joined(
            Approvals(
                enabled=_names(project.get("enabledMcpjsonServers")),
                disabled=_names(project.get("disabledMcpjsonServers")),
            )
        )
        switched_off |= _names(project.get("disabledMcpServers"))
        is_trusted = is_trusted or project.get("hasTrustDialogAccepted") is True
    return _ClaudeJson(tuple(readings), approvals, switched_off, is_trusted)


def _names(value: Json) -> frozenset[str]:
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()


def _read_project_files(places: Places, around: Surroundings) -> list[SourceReading]:
    """``.mcp.json`` in the working directory and above; the nearest has the highest rank (S010, S011)."""
    readings: list[SourceReading] = []
    for distance, directory in enumerate(places.upward()):
        if not is_missing(directory / PROJECT_FILE):
            source = source_at(directory / PROJECT_FILE, Scope.PROJECT, rank=-distance, directory=str(directory))
            readings.append(read_source(source, around) if isinstance(source, SourceText) else source)
    return readings


def _read_plugins(plugins: Mapping[str, Path | Plugin], places: Places, around: Surroundings) -> list[SourceReading]:
    """``.mcp.json`` of each plugin, and `mcpServers` of its ``plugin.json``: a path, a list, or an object (S031)."""
    readings: list[SourceReading] = []
    for rank, (name, given) in enumerate(plugins.items()):
        plugin = given if isinstance(given, Plugin) else Plugin(given)
        root, data = plugin.root, plugin.data or places.state_dir / "plugins" / re.sub(r"[^A-Za-z0-9_-]", "-", name)
        fixed = {"CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PLUGIN_DATA": str(data)}
        fixed |= {f"user_config.{key}": value for key, value in plugin.user_config.items()}
        manifest = root / ".claude-plugin" / "plugin.json"
        files = [root / PROJECT_FILE, manifest]
        for path in files:  # grows while it is read: a manifest names more files
            if is_missing(path):
                continue
            source = source_at(path, Scope.PLUGIN, rank=rank, directory=around.directory)
            if isinstance(source, SourceReading):
                readings.append(source)
                continue
            source = evolve(source, prefix=f"plugin:{name}:", fixed=fixed, must_have_servers=path != manifest)
            if path == manifest:
                files += _named_in_manifest(source, root)
            readings.append(read_source(source, around))
    return readings


def _named_in_manifest(source: SourceText, root: Path) -> list[Path]:
    """The files that a plugin's manifest names; none above its root."""
    try:
        value = parse_source(source).value
    except ConfigError:
        return []
    named = value.get("mcpServers") if isinstance(value, Mapping) else None
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    paths = [root / name for name in names if isinstance(name, str)]
    return [path for path in paths if path != root / PROJECT_FILE and path.resolve().is_relative_to(root.resolve())]


def _read_config(item: ConfigInput, number: int, cwd: Path, around: Surroundings) -> SourceReading:
    """One ``--config``: JSON when it begins like an object, else a path relative to `cwd` (S039)."""
    if _is_json(item):
        # Lone surrogates come in from argv that is no UTF-8; the entry that holds one is reported.
        text = SourceText(str(item).encode("utf-8", "surrogatepass"), f"<--config {number}>", Scope.DYNAMIC, number)
        return read_source(text, around)
    path = cwd / item
    chosen = format_of_path(path.as_posix())
    source = source_at(path, Scope.DYNAMIC, rank=number, directory=chosen.directory_of(path.as_posix()))
    return read_source(evolve(source, format=chosen), around) if isinstance(source, SourceText) else source


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def _choices(
    places: Places, environ: Mapping[str, str], claude: _ClaudeJson, settings: ConfigInput | None = None
) -> Choices:
    """Settings files of all layers, and what `~/.claude.json` holds of the kind (S023, S062, S063)."""
    problems: list[ConfigError] = []
    texts = list(managed_settings(places.managed_dir, problems))
    if settings is not None:
        texts += _given_settings(settings, places.cwd, problems)
    files = [(places.config_dir / "settings.json", SettingsLayer.USER)]
    for directory in places.project_directories():
        files.append((directory / ".claude" / "settings.json", SettingsLayer.PROJECT))
        files.append((directory / ".claude" / "settings.local.json", SettingsLayer.LOCAL))
    seen: set[Path] = set()
    for path, layer in files:
        # Whoever works in the home directory has one file in two layers: it is the user's own.
        if path in seen or is_missing(path):
            continue
        seen.add(path)
        try:
            texts.append(SettingsText(read_bounded(path), str(path), layer))
        except (OSError, ValueError) as exc:
            problems.append(unreadable(path, exc))
    choices = read_choices(texts, environ, is_trusted=claude.is_trusted)
    remembered = _remembered(places, problems)
    switches = remembered.switches(str(places.project))
    return evolve(
        choices,
        approvals=choices.approvals.joined(claude.approvals).joined(remembered.approvals),
        switched_off=claude.switched_off | switches.disabled,
        switched_on=switches.enabled,
        problems=(*problems, *choices.problems),
    )


def _given_settings(item: ConfigInput, cwd: Path, problems: list[ConfigError]) -> Iterator[SettingsText]:
    """``--settings``: the user's own word for this run, so that its yes counts without trust (S024)."""
    if _is_json(item):
        yield SettingsText(str(item).encode("utf-8", "surrogatepass"), "<--settings>", SettingsLayer.COMMAND_LINE)
        return
    path = cwd / item
    try:
        yield SettingsText(read_bounded(path), str(path), SettingsLayer.COMMAND_LINE)
    except (OSError, ValueError) as exc:
        problems.append(unreadable(path, exc))


def _is_json(item: ConfigInput) -> bool:
    """Whether a word of the command line is the text itself: it begins like an object (S039)."""
    return isinstance(item, str) and item.lstrip("\ufeff \t\r\n").startswith("{")


def _remembered(places: Places, problems: list[ConfigError]) -> Remembered:
    """What our own state directory holds; a file that cannot be used approves nothing."""
    path = places.state_dir / CHOICES_FILE
    if is_missing(path):
        return NOTHING_REMEMBERED
    try:
        return parse_remembered(decode_text(read_bounded(path), str(path)), str(path))
    except ConfigError as problem:
        problems.append(problem)
    except (OSError, ValueError) as exc:
        problems.append(unreadable(path, exc))
    return NOTHING_REMEMBERED
