"""Owns the look at the process table: which processes descend from us, and which are left of a set of groups.

What this is not: a way to start or stop servers. It serves the counts of ``demo`` and ``storm`` and a hurried stop.

Linux is read from /proc; elsewhere `ps` is asked (POSIX option names).
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["Process", "all_processes", "descendants", "leftovers"]


class Process(NamedTuple):
    """One process as the table shows it."""

    pid: int
    parent: int
    group: int
    # One letter: R, S, D, T, Z (ended, not yet reaped), ...
    state: str


def _parse_stat(text: str) -> Process:
    """Read a line of /proc/PID/stat; the command in parentheses may hold spaces and parentheses."""
    head, _, tail = text.rpartition(")")
    state, parent, group = tail.split()[:3]
    return Process(int(head.split(" ", 1)[0]), int(parent), int(group), state)


def _from_proc(root: Path) -> Iterable[Process]:
    for entry in root.iterdir():
        if entry.name.isdigit():
            try:
                yield _parse_stat((entry / "stat").read_text(encoding="utf-8", errors="replace"))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked


def _parse_ps(text: str) -> Iterable[Process]:
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3:
            yield Process(int(words[0]), int(words[1]), int(words[2]), words[3][:1] if len(words) > 3 else "?")


def all_processes() -> list[Process]:
    """Read the process table."""
    root = Path("/proc")
    if (root / "self" / "stat").exists():
        return list(_from_proc(root))
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], stdout=subprocess.PIPE, text=True) as ps:
        shown, _ = ps.communicate()
    return [process for process in _parse_ps(shown) if process.pid != ps.pid]


def descendants(pid: int, table: Collection[Process] | None = None) -> list[Process]:
    """List the children of `pid`, their children and so on, parents first; ended but unreaped ones too."""
    children: dict[int, list[Process]] = {}
    for process in all_processes() if table is None else table:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    front = [pid]
    while front:
        level = [child for parent in front for child in children.get(parent, ())]
        found.extend(level)
        front = [child.pid for child in level]
    return found


def leftovers(pid: int, groups: Collection[int], spared: Collection[int] = ()) -> list[Process]:
    """List what should be gone: descendants of `pid`, and members of `groups` wherever they hang now.

    Args:
        pid: whose descendants count.
        groups: process groups that servers of ours led; an orphan keeps its group.
        spared: processes that are meant to live; their descendants are spared too.
    """
    table = all_processes()
    safe = set(spared)
    for each in spared:
        safe.update(process.pid for process in descendants(each, table))
    ours = {process.pid for process in descendants(pid, table)} - safe
    return [each for each in table if each.pid in ours or (each.group in groups and each.pid not in safe)]
