"""Owns the reading of what we remember between runs, from our own state directory, and whether it is believed.

What this is not: its form (`config.remembered`), nor how it changes (`writing`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.jsonc import decode_text
from mcp_actors.config.remembered import NOTHING_REMEMBERED, parse_remembered
from mcp_actors.errors import ConfigError
from mcp_actors.files.places import CHOICES_FILE, read_bounded, unreadable
from mcp_actors.files.private import why_doubted

if TYPE_CHECKING:
    from mcp_actors.config.choices import Choices
    from mcp_actors.config.remembered import Remembered
    from mcp_actors.files.places import Places

__all__ = ["add_remembered"]


def add_remembered(choices: Choices, places: Places, problems: list[ConfigError]) -> Choices:
    """Join what was approved and switched on this machine to what files choose; the file exists (S037)."""
    remembered = _remembered(places, problems)
    switches = remembered.switches(str(places.project))
    return evolve(
        choices,
        approvals=choices.approvals.joined(remembered.approvals),
        switched_off=choices.switched_off | switches.disabled,
        switched_on=switches.enabled,
    )


def _remembered(places: Places, problems: list[ConfigError]) -> Remembered:
    """What our own state directory holds; a file that cannot be used, or that others may write, lets nothing run."""
    path = places.state_dir / CHOICES_FILE
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
