"""Owns precedence: many readings become one table of servers, and a list of what lost.

What this is not: reading (`sources`), approval (`approvals`) or policy (`policy`); they run before.

Rules. Entries win as a whole, fields are never mixed (S019). The order of the readings has no effect: scope decides,
then rank inside a scope. A definition that may not run (pending, rejected) never hides one that may (S017, S023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.config.approvals import Approval
from mcp_actors.config.notes import Shadowed
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, Scope, ServerSpec, Target
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_actors.config.sources import SourceReading

__all__ = ["PRECEDENCE", "Merged", "endpoint_of", "merge", "shadow"]

# Lowest first (S018). Enterprise is not merged but exclusive (S025); its place here only orders a set of its own.
PRECEDENCE: tuple[Scope, ...] = (
    Scope.CLAUDEAI,
    Scope.PLUGIN,
    Scope.USER,
    Scope.PROJECT,
    Scope.LOCAL,
    Scope.DYNAMIC,
    Scope.ENTERPRISE,
)
RANK = {scope: rank for rank, scope in enumerate(PRECEDENCE)}
MAY_NOT_RUN = frozenset({Approval.PENDING.value, Approval.REJECTED.value, "policy"})


@frozen
class Merged:
    """`specs`: one per name, highest precedence first, in a file's own order. `shadowed`: what lost, sorted by name.

    The first of two servers whose tools collide keeps the name (S184), so order is precedence.
    """

    specs: tuple[ServerSpec, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()


def merge(readings: Iterable[SourceReading]) -> Merged:
    """Bring all readings into one table.

    Args:
        readings: in any order; their specs carry approval and policy already.

    Returns:
        The table. Equal sets of readings give equal results, order included.

    Source:
        S017-S020, S025, S043; fault 28.
    """
    ordered = sorted(readings, key=lambda reading: (RANK[reading.scope], reading.rank, reading.file))
    # Entry: (may run, place among all definitions, spec); a later definition wins when it may run as much.
    winners: dict[str, tuple[bool, int, ServerSpec]] = {}
    precedence = {id(spec): index for index, reading in enumerate(ordered) for spec in reading.specs}
    losers: list[ServerSpec] = []
    specs = (spec for reading in ordered for spec in reading.specs)
    for place, spec in enumerate(specs):
        challenger = (spec.is_enabled or spec.disabled_reason not in MAY_NOT_RUN, place, spec)
        holder = winners.get(spec.name)
        if holder is None or challenger[:2] > holder[:2]:
            winners[spec.name] = challenger
            if holder is not None:
                losers.append(holder[2])
        else:
            losers.append(spec)
    chosen = sorted(winners.values(), key=lambda winner: (-precedence[id(winner[2])], winner[1]))
    shadowed = [shadow(loser, winners[loser.name][2]) for loser in losers]
    return Merged(
        tuple(winner[2] for winner in chosen),
        tuple(sorted(shadowed, key=lambda lost: (lost.name, RANK[lost.scope], lost.source))),
    )


def shadow(loser: ServerSpec, winner: ServerSpec, by: str = "name") -> Shadowed:
    """The record that `winner` runs instead of `loser`."""
    return Shadowed(
        name=loser.name,
        scope=loser.scope,
        source=loser.source,
        winner=winner.name,
        winner_scope=winner.scope,
        winner_source=winner.source,
        by=by,
        is_different=endpoint_of(loser.target) != endpoint_of(winner.target),
    )


def endpoint_of(target: Target) -> Sequence[object]:
    """What makes two servers the same one: the url, or command, args and env (S021). Hashable."""
    if isinstance(target, InProcessTarget):
        return ("sdk", id(target.serve))
    if isinstance(target, RemoteTarget):
        return ("url", target.url)
    return ("stdio", target.command, target.args, tuple(sorted(target.environment.items())))
