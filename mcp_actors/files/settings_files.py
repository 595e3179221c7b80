"""Owns which settings files there are, of all layers, and what is chosen by them and beside them.

What this is not: what they mean (`config.settings_texts`), what we remember (`remembered`), nor servers (`loading`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.choices import SettingsLayer, SettingsText, choices_of_environment
from mcp_actors.files.managed_settings import managed_settings
from mcp_actors.files.places import (
    CHOICES_FILE,
    is_json_text,
    is_missing,
    read_bounded,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_actors.config.choices import Choices
    from mcp_actors.errors import ConfigError
    from mcp_actors.files.claude_json import ClaudeJson
    from mcp_actors.files.places import ConfigInput, Places


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
    if texts:
        from mcp_actors.config.settings_texts import read_choices  # most programs run where there is none

        choices = read_choices(texts, environ, is_trusted=claude.is_trusted)
    else:
        choices = choices_of_environment(environ, is_trusted=claude.is_trusted)
    choices = evolve(choices, approvals=choices.approvals.joined(claude.approvals), switched_off=claude.switched_off)
    if not is_missing(places.state_dir / CHOICES_FILE):
        from mcp_actors.files.remembered import add_remembered  # nor has anybody approved or switched anything

        choices = add_remembered(choices, places, problems)
    return evolve(choices, problems=(*problems, *choices.problems))


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
