"""Owns the reading of what an administrator put on this machine: the managed servers, the managed settings.

What this is not: what the settings mean (`config.choices`, `config.policy`).

Rule 1: what cannot be read closes, it does not open (S025, S059).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.choices import SettingsLayer, SettingsText, merge_settings, parse_settings
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings, read_source
from mcp_actors.config.specs import Scope
from mcp_actors.errors import ConfigError, ServerNotAllowed
from mcp_actors.files.places import is_missing, read_bounded, source_at, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from mcp_actors.jsontypes import Json

__all__ = ["managed_servers", "managed_settings", "refuse_configs"]


def managed_servers(path: Path, around: Surroundings, *, are_configs_given: bool) -> SourceReading:
    """The managed file, which exists: it alone counts, and when it cannot be read nothing runs.

    Source:
        S025, S016.
    """
    source = source_at(path, Scope.ENTERPRISE)
    reading = read_source(source, around) if isinstance(source, SourceText) else source
    if any(problem.server is None for problem in reading.problems):
        reading = evolve(reading, specs=())
    if are_configs_given:
        refusal = _refusal(str(path), "an administrator has exclusive control of MCP servers")
        reading = evolve(reading, problems=(*reading.problems, refusal))
    return reading


def refuse_configs(readings: Iterable[SourceReading], by: str) -> Iterator[SourceReading]:
    """What ``--config`` names, refused as a whole: no file can hold a server in process, which alone would be let in.

    Args:
        readings: of the configurations that were given.
        by: the managed file that refuses them.

    Source:
        S064.
    """
    for reading in readings:
        refusal = _refusal(reading.file, f"an administrator refuses --config (disableSideloadFlags of {by})")
        yield evolve(reading, specs=(), problems=(refusal,))


def _refusal(file: str, reason: str) -> ServerNotAllowed:
    return ServerNotAllowed(file=file, reason=reason, remedy="leave out --config", category="not_allowed")


def managed_settings(directory: Path, problems: list[ConfigError]) -> Iterator[SettingsText]:
    """``managed-settings.json`` and its drop-ins as one; a piece that cannot be read closes all (S059, S062)."""
    main = directory / "managed-settings.json"
    paths = [] if is_missing(main) else [main]
    drop_ins = directory / "managed-settings.d"
    try:
        paths += sorted(path for path in drop_ins.iterdir() if path.suffix == ".json") if drop_ins.is_dir() else []
    except OSError as exc:
        problems.append(unreadable(drop_ins, exc))
        yield SettingsText(None, str(drop_ins), SettingsLayer.MANAGED)
    if len(paths) == 1:
        yield from _managed_piece(paths[0], problems)
        return
    pieces: list[Mapping[str, Json]] = []
    for path in paths:
        for text in _managed_piece(path, problems):
            settings = parse_settings(text)
            if settings is None:
                yield text  # `read_choices` reports it, and closes
            else:
                pieces.append(settings)
    if pieces:
        yield SettingsText(json.dumps(merge_settings(pieces)).encode(), str(main), SettingsLayer.MANAGED)


def _managed_piece(path: Path, problems: list[ConfigError]) -> Iterator[SettingsText]:
    try:
        yield SettingsText(read_bounded(path), str(path), SettingsLayer.MANAGED)
    except (OSError, ValueError) as exc:
        problems.append(unreadable(path, exc))
        yield SettingsText(None, str(path), SettingsLayer.MANAGED)
