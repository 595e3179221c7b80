"""Owns the reading of the settings files of all layers, and of what we remember beside them.

What this is not: what they mean (`config.choices`, `config.remembered`), nor servers (`loading`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.choices import Choices, SettingsLayer, SettingsText, read_choices
from mcp_actors.config.jsonc import decode_text
from mcp_actors.config.remembered import NOTHING_REMEMBERED, Remembered, parse_remembered
from mcp_actors.errors import ConfigError
from mcp_actors.files.managed import managed_settings
from mcp_actors.files.places import (
    CHOICES_FILE,
    ConfigInput,
    Places,
    is_json_text,
    is_missing,
    read_bounded,
    unreadable,
)
from mcp_actors.files.private import why_doubted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_actors.files.claude_json import ClaudeJson


__all__ = ["read_settings_files"]


def read_settings_files(
    places: Places, environ: Mapping[str, str], claude: ClaudeJson, settings: ConfigInput | None = None
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
    if is_json_text(item):
        yield SettingsText(str(item).encode("utf-8", "surrogatepass"), "<--settings>", SettingsLayer.COMMAND_LINE)
        return
    path = cwd / item
    try:
        yield SettingsText(read_bounded(path), str(path), SettingsLayer.COMMAND_LINE)
    except (OSError, ValueError) as exc:
        problems.append(unreadable(path, exc))


def _remembered(places: Places, problems: list[ConfigError]) -> Remembered:
    """What our own state directory holds; a file that cannot be used, or that others may write, lets nothing run."""
    path = places.state_dir / CHOICES_FILE
    if is_missing(path):
        return NOTHING_REMEMBERED
    try:
        remembered = parse_remembered(decode_text(read_bounded(path), str(path)), str(path))
    except ConfigError as problem:
        problems.append(problem)
        return NOTHING_REMEMBERED
    except (OSError, ValueError) as exc:
        problems.append(unreadable(path, exc))
        return NOTHING_REMEMBERED
    for place in (places.state_dir, path):
        if (why := why_doubted(place)) is not None:
            reason = f"what was approved and switched on is not believed: {why}"
            remedy = f"make it yours alone: chmod go-w {shlex.quote(str(place))}"
            problems.append(ConfigError(file=str(place), reason=reason, remedy=remedy, category="unreadable"))
            return remembered.doubted()
    return remembered
