"""Owns the way from global options to a running fleet: load, approve, open, wait; the same for every verb.

What this is not: the reading of files (`files.loading`), nor the runtime. Nothing here prints data.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.restarts import ExitKind
from mcp_actors.cli import exits, output
from mcp_actors.cli.arguments import server_candidates
from mcp_actors.cli.configured import find_spec, no_such_server, places_of, read_configuration
from mcp_actors.cli.debuglog import install_log
from mcp_actors.cli.descriptors import make_room
from mcp_actors.cli.exits import UsageError
from mcp_actors.cli.progress import fleet_text, open_progress
from mcp_actors.config.choices import OPEN_CHOICES
from mcp_actors.config.settings import read_settings
from mcp_actors.config.specs import RestartType
from mcp_actors.runtime import open_runtime
from mcp_actors.tools.naming import server_prefix
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping

    from mcp_actors.actors.host import Host
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.cli.progress import Progress
    from mcp_actors.config.choices import Choices
    from mcp_actors.config.notes import ConfigNote
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.errors import ConfigError
    from mcp_actors.fleet.running import Runtime

__all__ = ["Plan", "load_plan", "open_fleet", "published", "refuse", "settle", "tell_warnings"]

# Seconds; publishing takes a sixtieth of that.
PUBLISH_PATIENCE: Final = 1.0


@frozen
class Plan:
    """What the options and the files say should run, and what was wrong with them."""

    specs: tuple[ServerSpec, ...]
    problems: tuple[ConfigError, ...]
    settings: Settings
    notes: tuple[ConfigNote, ...] = ()
    # About environment variables, one line each.
    warnings: tuple[str, ...] = ()
    # What settings files say: hooks, among others.
    choices: Choices = OPEN_CHOICES

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the usable entries, in configuration order."""
        return tuple(spec.name for spec in self.specs)

    @property
    def invalid(self) -> dict[str, ConfigError]:
        """Maps the name of an entry that cannot be used -> why; not what another file defines in its stead."""
        usable = set(self.names)
        return {each.server: each for each in self.problems if each.server is not None and each.server not in usable}

    @property
    def has_unusable_file(self) -> bool:
        """Whether a whole file could not be used."""
        return any(problem.server is None for problem in self.problems)

    def spec(self, name: str) -> ServerSpec:
        """Find one entry.

        Raises:
            ConfigError: it exists and cannot be used.
            UnknownServer: there is none of that name.
        """
        return find_spec(self, name)

    def server_of(self, asked: str, verb: str, kind: str) -> tuple[str, str]:
        """Tell which server is meant, and what of it: a tool or a prompt by the names that people write.

        Args:
            asked: ``SERVER.THING``, or a callable name.
            verb: what the person wrote, for the usage.
            kind: the verb that lists such things.

        Raises:
            UnknownServer: no configured server fits.
            UsageError: only a server is named.
        """
        names = [*self.names, *self.invalid]
        candidates = server_candidates(asked, names, {name: server_prefix(name) for name in names})
        if candidates:
            return candidates[0]
        if asked in names:
            usage = f"mcp-actors {verb} {asked}.{kind.removesuffix('s').upper()}"
            raise UsageError(f"name one of its {kind}: {usage} (mcp-actors {kind} {asked} lists them)")
        server, _, rest = asked.rpartition(".")
        error = no_such_server(server or asked, self.names)
        if not server or not rest:
            error.add_note(f"write SERVER.{kind.removesuffix('s').upper()}; mcp-actors {kind} lists them")
        raise error

    def only(self, name: str) -> Plan:
        """Give the plan that starts this server alone, and tells of nothing else."""
        return evolve(
            self,
            specs=(self.spec(name),),
            problems=tuple(problem for problem in self.problems if problem.server in (None, name)),
            notes=tuple(note for note in self.notes if note.server == name),
        ).shown()

    def shown(self) -> Plan:
        """Give the plan of a verb that shows the state of each server, which says itself that it waits for approval."""
        return evolve(self, notes=tuple(note for note in self.notes if note.code != "pending-approval"))

    def tell(self) -> None:
        """Say on standard error what is wrong with the configuration."""
        worth_telling = [note for note in self.notes if note.is_warning]
        for text in (*self.warnings, *map(str, self.problems), *map(str, worth_telling)):
            output.note(text)

    def once(self) -> Plan:
        """Give the plan in which a death is final: a verb that looks and leaves reports the first failure."""
        return evolve(self, specs=tuple(evolve(spec, restart_type=RestartType.TEMPORARY) for spec in self.specs))


def load_plan(shared: GlobalOptions, environ: Mapping[str, str] = os.environ) -> Plan:
    """Open the log and read what should run. Nothing is started, and nothing is said yet (`Plan.tell`).

    Raises:
        ConfigError: a file or text that an option names cannot be used at all, or nothing is left for want of a file
            that can.
    """
    install_log(is_debug=shared.is_debug, place=shared.debug_file)
    settings, warnings = read_settings(environ)
    loaded = read_configuration(shared, environ)
    words = [*shared.configs, *([] if shared.settings is None else [shared.settings])]
    named = {str(places_of(environ).cwd / word) for word in words}
    broken = [problem for problem in loaded.problems if problem.server is None]
    given = [problem for problem in broken if str(problem.file) in named or str(problem.file).startswith("<")]
    if given or (broken and not loaded.specs):
        raise exits.as_one(given or broken)
    return Plan(loaded.specs, loaded.problems, settings, loaded.notes, warnings, loaded.choices)


@asynccontextmanager
async def open_fleet(plan: Plan, *, host: Host | None = None) -> AsyncIterator[Runtime]:
    """Tell what is wrong with the plan and start what it says; leaving stops all of it.

    With the logins of this user, and as every run: what a killed one left behind is stopped (fault 4). `host`
    answers what servers ask.
    """
    plan.tell()
    make_room(len(plan.specs))
    state_dir = places_of().state_dir
    async with open_runtime(plan.specs, settings=plan.settings, state_dir=state_dir, host=host) as runtime:
        yield runtime


async def _show_changes(runtime: Runtime, progress: Progress) -> None:
    with runtime.watch() as changes:
        async for _ in changes:
            progress.show(fleet_text(runtime.status()))


async def settle(runtime: Runtime, names: Collection[str] | None = None) -> None:
    """Wait until every server (or those named) is up or has failed for good, with progress on a terminal (S130).

    In a plan of `Plan.once` only those are tried again that answer that they cannot serve just now (S119, fault 46).
    """
    with open_progress(fleet_text(runtime.status())) as progress:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_show_changes, runtime, progress)
            tried = await runtime.wait_ready(names)
            while any(_is_worth_waiting(status) for name, status in runtime.status().items() if name in tried):
                await runtime.wait_published()
            nursery.cancel_scope.cancel()


async def published(runtime: Runtime, status: ServerStatus) -> ServerStatus:
    """Give a status that a watcher told of with the counts of what the server lists; they come a moment later."""
    with trio.move_on_after(PUBLISH_PATIENCE):
        await runtime.wait_ready([status.name])
    now = runtime.status().get(status.name)
    return now if now is not None and now.generation == status.generation and now.state is status.state else status


def _is_worth_waiting(status: ServerStatus) -> bool:
    """Whether it is tried at once, or again for its own sake; what this machine lacks does not come by waiting."""
    return not status.is_settled and status.reason != ExitKind.EXHAUSTED.value


def refuse(status: ServerStatus) -> int:
    """Say on standard error why a server takes no calls and what to do; give the exit code that this means."""
    remedy = status.remedy
    lines = [f"{status.name}: {status.state} ({status.reason})" + (f": {status.error}" if status.error else "")]
    output.note("\n".join([*lines, *([f"  -> {remedy}"] if remedy else [])]))
    return exits.code_of_state(str(status.state), status.reason)


def tell_warnings(statuses: Iterable[ServerStatus]) -> None:
    """Say on standard error what was wrong with servers' lists (S155)."""
    from mcp_actors.cli.render import warning_lines

    for status in statuses:
        for line in warning_lines(status):
            output.note(line)
