"""Owns the reading of what plugins bring along: ``.mcp.json`` of each, and what its manifest names.

What this is not: which plugins there are; a program says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve, field

from mcp_actors.config.source_texts import parse_source, read_source
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings
from mcp_actors.config.specs import Scope
from mcp_actors.errors import ConfigError
from mcp_actors.files.places import PROJECT_FILE, Places, is_missing, leads_below, source_at
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["Plugin", "read_plugins"]


@frozen
class Plugin:
    """A plugin that a program has loaded, and what its files may refer to (S031)."""

    root: Path
    # ``${CLAUDE_PLUGIN_DATA}``: where it keeps what outlives an update; None: below our state directory.
    data: Path | None = None
    # ``${user_config.KEY}``: what its user chose, perhaps secrets. Maps key -> value.
    user_config: Mapping[str, str] = field(factory=dict, repr=False)


def read_plugins(plugins: Mapping[str, Path | Plugin], places: Places, around: Surroundings) -> list[SourceReading]:
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
    return [path for path in paths if path != root / PROJECT_FILE and leads_below(path, root)]
