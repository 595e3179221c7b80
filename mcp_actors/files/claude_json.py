"""Owns the reading of ``~/.claude.json``: the user's servers, a project's local ones, and what was decided about those.

What this is not: what any of it means (`config`), nor writing it (`writing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.sources import SourceReading, read_document
from mcp_actors.config.specs import Scope
from mcp_actors.errors import ConfigError
from mcp_actors.files.places import is_missing, source_at

if TYPE_CHECKING:
    from mcp_actors.config.sources import Surroundings
    from mcp_actors.files.places import Places
    from mcp_actors.jsontypes import Json

__all__ = ["ClaudeJson", "read_claude_json"]


class ClaudeJson(NamedTuple):
    """``~/.claude.json``: user and local servers, and what it knows about this project."""

    readings: tuple[SourceReading, ...] = ()
    approvals: Approvals = Approvals()
    switched_off: frozenset[str] = frozenset()
    is_trusted: bool = False


def read_claude_json(places: Places, around: Surroundings) -> ClaudeJson:
    """User servers at the top, local ones under the project's path (S009, S012, S024, S037)."""
    if is_missing(places.claude_json):
        return ClaudeJson()
    from mcp_actors.config.source_texts import parse_source  # whoever has none parses nothing

    source = source_at(places.claude_json, Scope.USER, must_have_servers=False)
    if isinstance(source, SourceReading):
        return ClaudeJson((source,))
    try:
        document = parse_source(source)
    except ConfigError as problem:
        return ClaudeJson((SourceReading(Scope.USER, source.file, problems=(problem,)),))
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
    return ClaudeJson(tuple(readings), approvals, switched_off, is_trusted)


def _names(value: Json) -> frozenset[str]:
    return frozenset(name for name in value if isinstance(name, str)) if isinstance(value, list) else frozenset()
