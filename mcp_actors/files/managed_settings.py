"""Owns the reading of the settings that an administrator put on this machine.

What this is not: what they mean (`config.settings_texts`), nor the managed servers (`managed`).

Rule 1: what cannot be read closes, it does not open (S059).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_actors.config.choices import SettingsLayer, SettingsText
from mcp_actors.files.places import is_missing, read_bounded, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_actors.errors import ConfigError
    from mcp_actors.jsontypes import Json

__all__ = ["managed_settings"]


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
    if len(paths) < 2:
        for path in paths:
            yield from _managed_piece(path, problems)
        return
    from mcp_actors.config.settings_texts import merge_settings, parse_settings  # few administrators write more

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
