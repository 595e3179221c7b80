"""Owns what a program may give as its configuration, and the way from there to a `LoadedConfig`.

What this is not: which files count (`loading`, which is loaded where files are named), nor what they mean (`config/`).

Blocking, and short: a few small files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mcp_actors.config.choices import OPEN_CHOICES
from mcp_actors.config.loaded import LoadedConfig, assemble, read_mapping
from mcp_actors.config.sources import Surroundings
from mcp_actors.config.specs import Scope
from mcp_actors.files.claude_json import read_claude_json
from mcp_actors.files.places import Places
from mcp_actors.files.settings_files import read_settings_files
from mcp_actors.tools.naming import normalise_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.config.choices import Choices
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import ServerSpec

__all__ = ["ConfigLike", "load_any", "load_choices", "specs_from_mapping", "with_readings"]

# A mapping {"mcpServers": {...}}, the path (or JSON text) of a file, server specs, what `loading` loaded;
# None: the files that apply in the working directory.
ConfigLike: TypeAlias = "LoadedConfig | Mapping[str, object] | str | Path | Iterable[ServerSpec] | None"


def load_any(config: ConfigLike, environ: Mapping[str, str]) -> LoadedConfig:
    """Turn whatever names a configuration into a loaded one. Raises `ConfigError` when nothing of it can be used."""
    if isinstance(config, LoadedConfig):
        return config
    if isinstance(config, Mapping):
        choices = load_choices(environ)
        loaded = specs_from_mapping(config, environ, choices=choices)  # pyright: ignore[reportArgumentType]
    elif config is None or isinstance(config, str | Path):
        from mcp_actors.files.loading import load_config  # a mapping stands in no file

        loaded = load_config(environ=environ) if config is None else load_config([config], environ=environ, strict=True)
    else:
        return LoadedConfig(specs=tuple(config), choices=load_choices(environ))
    unusable = [problem for problem in loaded.problems if problem.server is None]
    if unusable and not loaded.specs:
        raise unusable[0]
    return loaded


def load_choices(environ: Mapping[str, str], *, places: Places | None = None) -> Choices:
    """Read only what settings files say: for servers that a program adds itself (S048, S060, fault 29)."""
    places = places or Places.of(environ)
    return read_settings_files(places, environ, read_claude_json(places, Surroundings(environ)))


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
