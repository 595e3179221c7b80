"""Owns the reading of the servers that an administrator put on this machine, and what of ours that rules out.

What this is not: the managed settings (`managed_settings`).

Rule 1: what cannot be read closes, it does not open (S025, S059).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.source_texts import read_source
from mcp_actors.config.sources import SourceText
from mcp_actors.config.specs import Scope
from mcp_actors.errors import ServerNotAllowed
from mcp_actors.files.places import source_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mcp_actors.config.sources import SourceReading, Surroundings

__all__ = ["managed_servers", "refuse_configs"]


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
