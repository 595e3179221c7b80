"""Owns the suppression of plugin and connector servers that are already there under another name.

What this is not: precedence between equal names (`merge`).

Rules. Only definitions that may run suppress. A manual server is one that a person wrote down: every scope but plugin
and claudeai. Each suppression is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve

from mcp_actors.config.merge import endpoint_of, shadow
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mcp_actors.config.notes import Shadowed
    from mcp_actors.config.sources import SourceReading

__all__ = ["Deduplicated", "deduplicate"]

AUTOMATIC = frozenset({Scope.PLUGIN, Scope.CLAUDEAI})


class Deduplicated(NamedTuple):
    """The readings without suppressed specs, in the order given, and the record of each suppression."""

    readings: tuple[SourceReading, ...]
    suppressed: tuple[Shadowed, ...]


def deduplicate(readings: Iterable[SourceReading], needs_auth: Collection[str] = ()) -> Deduplicated:
    """Take out plugin servers and connectors that lead where a manual server leads already.

    Args:
        readings: all of them, approved and filtered by policy.
        needs_auth: names of servers that wait for a login; such a one suppresses no connector.

    Returns:
        What is left. Of two equal plugin servers the one of the lower rank (loaded first) stays.

    Source:
        S021, S022.
    """
    readings = tuple(readings)
    endpoints: dict[object, ServerSpec] = {}
    urls: dict[str, ServerSpec] = {}
    for spec in (spec for reading in readings if reading.scope not in AUTOMATIC for spec in reading.specs):
        if spec.is_enabled:
            endpoints.setdefault(endpoint_of(spec.target), spec)
            if isinstance(spec.target, RemoteTarget) and spec.name not in needs_auth:
                urls.setdefault(spec.target.url, spec)
    suppressed: list[Shadowed] = []
    kept: dict[int, tuple[ServerSpec, ...]] = {}
    for index in sorted(range(len(readings)), key=lambda i: (readings[i].rank, readings[i].file)):
        reading = readings[index]
        if reading.scope not in AUTOMATIC:
            continue
        staying: list[ServerSpec] = []
        for spec in reading.specs:
            holder = _holder(spec, endpoints, urls) if spec.is_enabled else None
            if holder is not None and holder.name != spec.name:
                suppressed.append(shadow(spec, holder, by="endpoint"))
                continue
            staying.append(spec)
            if spec.is_enabled and spec.scope is Scope.PLUGIN:
                endpoints.setdefault(endpoint_of(spec.target), spec)
        kept[index] = tuple(staying)
    return Deduplicated(
        tuple(evolve(reading, specs=kept.get(index, reading.specs)) for index, reading in enumerate(readings)),
        tuple(sorted(suppressed, key=lambda lost: (lost.name, lost.source))),
    )


def _holder(spec: ServerSpec, endpoints: dict[object, ServerSpec], urls: dict[str, ServerSpec]) -> ServerSpec | None:
    if spec.scope is Scope.PLUGIN:
        return endpoints.get(endpoint_of(spec.target))
    return urls.get(spec.target.url) if isinstance(spec.target, RemoteTarget) else None
