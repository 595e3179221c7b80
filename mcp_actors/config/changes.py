"""Owns the comparison of two configurations: what starts, stops or is replaced, and what of a broken edit is kept.

What this is not: the doing (`actors.supervisor`), nor the reading (`files.loading`).

Rules.

1. A server whose definition hashes the same is not touched, whichever file it comes from now (S038).
2. A file that cannot be used any more, or an entry in it, keeps what it last said; the problem is told all the same.
3. What an administrator broke is not kept: it closes (S025, S059).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.loaded import LoadedConfig, assemble
from mcp_actors.config.specs import Scope
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.config.choices import Choices
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import ServerSpec

__all__ = ["Applied", "compare", "is_same", "keep_last_good"]


@frozen
class Applied:
    """What a new configuration changed: names of servers, in its order; those removed in the old order."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{len(names)} {what} ({', '.join(names)})"
            for what, names in (("added", self.added), ("changed", self.changed), ("removed", self.removed))
            if names
        ]
        return ", ".join([*parts, f"{len(self.unchanged)} unchanged"])


def is_same(old: ServerSpec, new: ServerSpec) -> bool:
    """Whether a server may go on as it is: it would run the same way, or stay stopped for the same reason."""
    if old is new:
        return True
    if old.is_enabled != new.is_enabled or old.fingerprint() != new.fingerprint():
        return False
    why = (old.disabled_reason, old.disabled_detail)
    return old.is_enabled or why == (new.disabled_reason, new.disabled_detail)


def compare(old: Mapping[str, ServerSpec], new: Mapping[str, ServerSpec]) -> Applied:
    """Compare what runs with what should run; both map name -> spec.

    Source:
        S038, S114.
    """
    kept = {name: is_same(old[name], spec) for name, spec in new.items() if name in old}
    return Applied(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name, same in kept.items() if not same),
        unchanged=tuple(name for name, same in kept.items() if same),
    )


def keep_last_good(old: LoadedConfig, new: LoadedConfig, normalise: Callable[[str], str]) -> LoadedConfig:
    """Give the new configuration with the last good word of whatever in it was broken (rules 2 and 3).

    Args:
        old: what was applied last.
        new: what was read just now.
        normalise: turns a server's name into the one that tool names hold.

    Source:
        S025, S059, S420.
    """
    broken = {reading.file for reading in new.readings if _is_broken(reading)}
    choices = _choices(old, new, broken)
    readings: list[SourceReading] = []
    for reading in new.readings:
        known = [each for each in old.readings if each.file == reading.file]
        if reading.scope is Scope.ENTERPRISE:
            readings.append(reading)
        elif reading.file in broken:
            good = [evolve(each, problems=()) for each in known if each.specs]
            # The reading itself stays for its problems; its file may have held servers of several scopes.
            readings += [reading, *good]
        else:
            readings.append(_with_broken_entries(reading, known))
    if choices is new.choices and readings == list(new.readings):
        return new
    merged = assemble(readings, choices, normalise, is_exclusive=new.is_exclusive)
    return evolve(merged, problems=new.problems)


def _is_broken(reading: SourceReading) -> bool:
    return not reading.specs and any(problem.server is None for problem in reading.problems)


def _with_broken_entries(reading: SourceReading, known: list[SourceReading]) -> SourceReading:
    lost = {problem.server for problem in reading.problems} - {spec.name for spec in reading.specs}
    same = next((each for each in known if (each.scope, each.rank) == (reading.scope, reading.rank)), None)
    if same is None or not lost:
        return reading
    kept = tuple(spec for spec in same.specs if spec.name in lost)
    return evolve(reading, specs=(*reading.specs, *kept)) if kept else reading


def _choices(old: LoadedConfig, new: LoadedConfig, broken: set[str]) -> Choices:
    """Settings: those of before where a file that holds some was broken, but an administrator's closes."""
    if new.choices.policy.closed_by is not None:
        return new.choices
    # The file of user servers holds choices as well.
    is_user_broken = any(reading.scope is Scope.USER and reading.file in broken for reading in new.readings)
    faults = {problem.file for problem in new.choices.problems if problem.server is None}
    known = {problem.file for problem in old.choices.problems if problem.server is None}
    return old.choices if is_user_broken or faults - known else new.choices
