"""Owns the verb ``run``: the fleet alive in the foreground, as a unit file starts it.

What this is not: a daemon. It does not fork and is asked nothing; its log is standard error, its events (``--json``)
standard output. All it writes is the journal of its living children, so that the next ``run`` stops what a killed one
left behind. What a person chose by another verb (``enable``, ``disable``, ``approve``) it sees in the file of choices.

SIGTERM ends it with 0, as a unit file expects, SIGINT with 130; a second signal hurries the stop (`signals`). SIGHUP
has it read its configuration again, unless it comes because the terminal went away: that ends it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import trio

    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.actors.registry import StatusChange
    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.files.loading import LoadedConfig
    from mcp_actors.fleet.running import Runtime

__all__ = ["change_line", "configure_run", "login_notice", "run_run"]

_CODES: Final[Mapping[int, int]] = {signal.SIGTERM: exits.OK, signal.SIGINT: exits.INTERRUPTED}
# Phases that are news although the state stays.
_NEWS: Final = frozenset({"backing-off", "parked"})


def configure_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run``."""
    parser.add_argument(
        "--watch",
        action="store_true",
        help="read the configuration again whenever a file of it changes",
    )
    parser.add_argument(
        "--json", action="store_true", help="print each connection made, failed or lost as a line of JSON"
    )


def run_run(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Keep the fleet alive until a signal comes."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared)
    began = time.monotonic()
    try:
        return run_interruptibly(partial(_run, shared, plan, is_watching=own.watch, has_events=own.json), _CODES)
    finally:
        _say(f"stopped; it ran for {time.monotonic() - began:.1f} s")


async def _run(shared: GlobalOptions, plan: Plan, *, is_watching: bool, has_events: bool) -> NoReturn:
    import trio
    from attrs import evolve

    from mcp_actors.cli.configured import read_configuration
    from mcp_actors.cli.descriptors import make_room
    from mcp_actors.config.specs import SERVICE_RESTARTS
    from mcp_actors.files.places import Places
    from mcp_actors.fleet.reloading import choices_file, keep_reloading
    from mcp_actors.runtime import open_runtime

    plan.tell()

    def reread() -> LoadedConfig:
        loaded = read_configuration(shared)
        make_room(len(loaded.specs))
        return loaded

    state_dir = Places.of(os.environ).state_dir
    settings = evolve(plan.settings, restarts=SERVICE_RESTARTS)
    async with (
        open_runtime(reread(), settings=settings, state_dir=state_dir, reread=reread) as runtime,
        trio.open_nursery() as nursery,
    ):
        # An ignored one stays ignored (nohup).
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            nursery.start_soon(_reload_on_hangup, runtime, nursery)
        # What a person tells us in another terminal counts at once; edits of files only where they are to be watched.
        files = None if is_watching else choices_file
        nursery.start_soon(partial(keep_reloading, runtime, then=_reload, files=files))
        await _tell_changes(runtime, plan.names, _emit_event if has_events else None)


async def _reload_on_hangup(runtime: Runtime, nursery: trio.Nursery) -> None:
    """Reload at each SIGHUP. Runs until cancelled."""
    import trio

    has_terminal = os.isatty(0)
    with trio.open_signal_receiver(signal.SIGHUP) as arrivals:
        async for _ in arrivals:
            if has_terminal and not os.isatty(0):
                signal.raise_signal(signal.SIGTERM)
            else:
                nursery.start_soon(_reload, runtime)


async def _reload(runtime: Runtime) -> None:
    from mcp_actors.fleet.reloading import reload

    before = {*map(str, runtime.problems), *map(str, runtime.configured.loaded.notes)}
    changes = await reload(runtime)
    for problem in runtime.problems:
        if str(problem) not in before:
            _say(f"kept what ran before: {problem}")
    for note in runtime.configured.loaded.notes:
        if note.is_warning and str(note) not in before:
            _say(str(note))
    _say(f"reloaded: {changes}")


async def _tell_changes(
    runtime: Runtime, names: Sequence[str], emit: Callable[[StatusChange], None] | None
) -> NoReturn:
    """Log each change, and once that every server was tried. Runs until cancelled."""
    # Name -> the status that its last line told of.
    told: dict[str, ServerStatus] = {}
    is_told = False
    _say(f"starting {len(names)} server{'' if len(names) == 1 else 's'}")
    with runtime.watch() as changes:
        for status in runtime.status().values():
            told[status.name] = status
            _say(change_line(None, status))
        while True:
            if not is_told and all(name in told and told[name].is_tried for name in names):
                is_told = True
                _say(_summary(told.values()))
                _say(login_notice(told.values()))
            change = await anext(changes)
            if emit is not None:
                emit(change)
            old, new = told.pop(change.name, None), change.new
            _say(change_line(old, new))
            if new is not None:
                told[new.name] = new


def _emit_event(change: StatusChange) -> None:
    from mcp_actors.actors.telemetry import connection_event

    event = connection_event(change, has_names=True)
    if event is None:
        return
    try:
        output.emit(json.dumps({"timestamp": time.time(), **event}))
    except exits.OutputClosed as error:
        _say(f"{str(error) or 'nobody reads standard output any more'}: stopping")
        raise exits.OutputClosed from None
    except exits.Refused as error:
        _say(f"an event was lost: {error}")


def login_notice(statuses: Iterable[ServerStatus]) -> str | None:
    """Say once which servers wait for a login, however many; None when none does (S269)."""
    from mcp_actors.cli.render import clean_line

    names = [clean_line(status.name) for status in statuses if status.state == "needs-auth"]
    if not names:
        return None
    servers = "1 server waits for a login" if len(names) == 1 else f"{len(names)} servers wait for a login"
    return f"{servers}: " + ", ".join(f"mcp-actors login {shlex.quote(name)}" for name in names)


def _summary(statuses: Iterable[ServerStatus]) -> str:
    counts: dict[str, int] = {}
    for status in statuses:
        counts[str(status.state)] = counts.get(str(status.state), 0) + 1
    return "running: " + (
        ", ".join(f"{count} {state}" for state, count in counts.items()) or "no servers: mcp-actors add writes one down"
    )


def _key(status: ServerStatus) -> tuple[object, ...]:
    phase = status.phase if status.phase in _NEWS else None
    return (status.state, phase, status.is_connected and status.generation, status.warnings)


def change_line(old: ServerStatus | None, new: ServerStatus | None) -> str | None:
    """Write the log line of a change.

    Args:
        old: the status that the last line told of; None when there was none.
        new: the status now; None when the server was removed.

    Returns:
        One line, or None when nothing changed that is news.
    """
    from mcp_actors.cli.render import MAX_WARNINGS, clean_line

    if new is None:
        return None if old is None else f"{clean_line(old.name)}: removed"
    if old is not None and _key(old) == _key(new):
        return None
    if (
        new.state == "pending"
        and new.phase not in _NEWS
        and not new.warnings
        and (old is None or old.state is new.state)
    ):
        return None  # a try begins; what becomes of it is the news
    before = "" if old is None or old.state is new.state else f"{old.state} -> "
    facts: list[str] = [f"{clean_line(new.name)}: {before}{new.state} ({new.reason})"]
    if new.is_connected:
        known = {"revision": new.revision, "tools": new.tools, "pid": new.pid}
        facts += [f"{key}={value}" for key, value in known.items() if value is not None]
    else:
        facts += [f"phase={new.phase}"] if new.phase in _NEWS else []
        facts += [f"error={clean_line(new.error)!r}"] if new.error else []
    facts += [f"warning={clean_line(warning)!r}" for warning in new.warnings[:MAX_WARNINGS]]
    if new.restarts:
        facts.append(f"restarts={new.restarts}")
    return " ".join(facts)


def _say(text: str | None) -> None:
    if text is not None:
        # The journal writes its own moments.
        moment = "" if "JOURNAL_STREAM" in os.environ else datetime.now().astimezone().isoformat(timespec="seconds")
        stamp = f"{moment} " if moment else ""
        output.note(f"{stamp}{text}", prefix="")
