"""Owns the journal of living children, so that the next run can stop what a killed run left behind (fault 4).

What this is not: the normal stop, which leaves nothing to find. A child that watches its input ends by itself when its
runtime is killed; this is for those that do not.

Rule 1: a process is named by boot, pid and start time together, never by pid alone.
Rule 2: nothing is touched while its owner lives, and nothing that this format does not describe.
Rule 3: the directory is private (0700), its files are 0600 and appear whole or not at all. Nothing else is believed:
whoever could write an entry would have us signal processes of his choice.

Where there is no /proc there is no journal: `open_journal` returns None.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.files.private import draft_of, is_private, open_private_directory, read_private, why_doubted
from mcp_actors.transports import ladder, procfs
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_actors.config.settings import Settings

__all__ = ["Journal", "Leftover", "open_journal", "parse_leftover", "sweep", "sweep_and_open"]

_log = logging.getLogger("mcp_actors.transports.leftovers")

_FORMAT: Final = 1
_SUFFIX: Final = ".child"
_POLL: Final = 0.02
# What is lost where nothing can be written.
_LOSS: Final = "should this run be killed, the next one will not find what it leaves behind"


@frozen
class Leftover:
    """One journal entry: a child, and the runtime that owned it."""

    boot: str
    pid: int
    start: int
    owner_pid: int
    owner_start: int
    server: str
    command: str


@define(eq=False)
class Journal:
    """Writes and removes the entries of this process. Never raises: a stop that is less sure is no reason to fail."""

    directory: Path
    _boot: str = field(repr=False)
    _owner_start: int = field(repr=False)
    # Whether the last entry could not be written; a fleet that restarts says so once, not once a child.
    _is_failing: bool = field(default=False, init=False, repr=False)

    def record(self, pid: int, *, server: str, command: str) -> None:
        """Remember a child that was just spawned. Its arguments are not kept: they may hold secrets."""
        row = procfs.read_stat(pid)
        if row is None:
            return
        entry = {
            "format": _FORMAT,
            "boot": self._boot,
            "pid": pid,
            "start": row.start,
            "owner_pid": os.getpid(),
            "owner_start": self._owner_start,
            "server": server,
            "command": command,
        }
        path = self._path(pid)
        try:
            # Not flushed to the disk: it counts until the machine starts anew, no longer.
            with draft_of(path, json.dumps(entry).encode()) as draft:
                draft.replace(path)
        except OSError as error:
            if not self._is_failing:
                _log.warning("could not record a child in %s: %s; %s", self.directory, error.strerror, _LOSS)
            self._is_failing = True
        else:
            self._is_failing = False

    def forget(self, pid: int) -> None:
        """Drop the entry of a child that is gone."""
        with contextlib.suppress(OSError):
            self._path(pid).unlink()

    def _path(self, pid: int) -> Path:
        return self.directory / f"{pid}{_SUFFIX}"


def open_journal(directory: Path) -> Journal | None:
    """Make the directory ready. None where processes cannot be told apart or the directory cannot be private."""
    boot, own = procfs.boot_id(), procfs.read_stat(os.getpid())
    if boot is None or own is None:
        return None
    try:
        open_private_directory(directory)
    except OSError as error:
        _log.warning("could not open the journal of children in %s: %s; %s", directory, error.strerror, _LOSS)
        return None
    return Journal(directory, boot, own.start)


def parse_leftover(text: bytes) -> Leftover | None:
    """Read one entry; None when it is anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
        return None
    kinds = {"boot": str, "server": str, "command": str, "pid": int, "start": int, "owner_pid": int, "owner_start": int}
    if set(data) != set(kinds) or any(type(data[key]) is not kind for key, kind in kinds.items()):
        return None
    leftover = Leftover(**data)
    return leftover if leftover.pid > 1 and leftover.owner_pid > 0 else None


async def sweep(directory: Path, settings: Settings, *, hurry: ladder.Hurry | None = None) -> tuple[Leftover, ...]:
    """Stop what a dead runtime left behind, all at once, and clean the journal.

    Args:
        directory: the one that was given to `open_journal`; need not exist.
        settings: the waits of the ladder.
        hurry: skips those waits.

    Returns:
        The leftovers that were stopped.

    Cancellation:
        Shielded for at most `ladder.bound` seconds. Entries of processes that still live stay for the next run.

    Source:
        Issue 2 point 5, fault 4.
    """
    boot = procfs.boot_id()
    if boot is None or not is_private(directory):
        return ()
    stopped: list[Leftover] = []

    async def stop(path: Path, leftover: Leftover) -> None:
        tree = _LeftoverTree(leftover)
        _log.info("[MCP:%s] stopping a leftover of a previous run pid=%d", leftover.server, leftover.pid)
        await ladder.climb(tree, ladder.rungs(settings), hurry or ladder.Hurry())
        if tree.is_gone():
            stopped.append(leftover)
            _remove(path)

    async with trio.open_nursery() as nursery:
        for path, leftover in _entries(directory):
            if leftover.boot == boot and _is_same(leftover.owner_pid, leftover.owner_start):
                continue
            if leftover.boot != boot or not _is_same(leftover.pid, leftover.start):
                _remove(path)
            else:
                nursery.start_soon(stop, path, leftover)
    return tuple(stopped)


async def sweep_and_open(directory: Path, settings: Settings, *, hurry: ladder.Hurry | None = None) -> Journal | None:
    """Stop what an earlier run left behind, then open the journal of this one. See `sweep` and `open_journal`."""
    # Told once for a run.
    for path, what in ((directory.parent, "the state directory"), (directory, "the journal of children")):
        if (why := why_doubted(path)) is not None:
            _log.warning("%s %s is not for this user alone: %s; what stands there may not be believed", what, path, why)
    for leftover in await sweep(directory, settings, hurry=hurry):
        _log.warning("[MCP:%s] stopped pid=%d, left behind by an earlier run", leftover.server, leftover.pid)
    return open_journal(directory)


@define(eq=False)
class _LeftoverTree:
    """A `ladder.Tree` over a process that is no child of ours: it is looked at, not waited for.

    It is made while the leader was seen alive. From then on the group's number stays taken until the group is empty,
    so it may be signalled as long as nobody saw it empty.
    """

    leftover: Leftover
    _is_gone: bool = False

    def close_input(self) -> None:
        """Nothing to do: it was closed when the owner died."""

    def find_strays(self) -> None:
        """Nothing to do: what left the group cannot be told from what was meant to stay."""

    def signal(self, number: int) -> None:
        """Send a signal to the group, or to the process alone when it leads none."""
        pid = self.leftover.pid
        if self.is_gone():
            return
        row = procfs.read_stat(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if row is not None and row.start == self.leftover.start and row.group != pid:
                os.kill(pid, number)
            else:
                os.killpg(pid, number)

    def is_gone(self) -> bool:
        """Whether neither the process nor anybody in its group runs."""
        if not self._is_gone and not _is_same(self.leftover.pid, self.leftover.start):
            self._is_gone = not procfs.has_live_member(self.leftover.pid)
        return self._is_gone

    def is_past_help(self) -> bool:
        """As `is_gone`, which does not count zombies."""
        return self.is_gone()

    async def wait(self) -> None:
        """Wait until the leader has ended."""
        while _is_same(self.leftover.pid, self.leftover.start):  # noqa: ASYNC110  no event tells the end of a stranger
            await trio.sleep(_POLL)

    async def rest(self, seconds: float) -> None:
        """Let time pass."""
        await trio.sleep(seconds)


def _is_same(pid: int, start: int) -> bool:
    row = procfs.read_stat(pid)
    return row is not None and row.start == start and row.is_alive


def _entries(directory: Path) -> Iterator[tuple[Path, Leftover]]:
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        try:
            leftover = parse_leftover(read_private(path) or b"")
        except OSError:  # not by us, as we write them
            continue
        if leftover is not None:
            yield path, leftover


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
