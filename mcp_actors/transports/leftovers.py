"""Owns the journal of living children, so that the next run can find what a killed run left behind (fault 4).

What this is not: the stop of what is found (`sweeping`).

Rule 1: a process is named by boot, pid and start time together, never by pid alone.
Rule 2: nothing is read that this format does not describe.
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

from attrs import field

from mcp_actors.files.private import draft_of, open_private_directory, read_private
from mcp_actors.transports import procfs
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Journal", "Leftover", "entries", "open_journal", "parse_leftover", "read_leftover"]

_log = logging.getLogger("mcp_actors.transports.leftovers")

_FORMAT: Final = 1
_SUFFIX: Final = ".child"
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


def read_leftover(path: Path) -> Leftover | None:
    """Read one file of the journal; None when it is none of ours, as we write them."""
    try:
        return parse_leftover(read_private(path) or b"")
    except OSError:
        return None


def entries(directory: Path) -> Iterator[tuple[Path, Leftover]]:
    """Read all of the journal."""
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        if (leftover := read_leftover(path)) is not None:
            yield path, leftover
