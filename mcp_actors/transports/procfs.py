"""Owns reading the process table under /proc: who is alive, in which group, since when.

What this is not: signalling (`ladder`), nor needed for a plain stop. Where there is no /proc every answer is "unknown".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ProcessStat", "boot_id", "descendants", "has_live_member", "is_running", "parse_stat", "read_stat", "stats"]

_PROC: Final = "/proc"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# States of a process that only waits to be reaped.
_DEAD: Final = frozenset("ZXx")
# Links of a task directory with one thread in it: its own name, its dot, and the thread's.
_LINKS_OF_ONE: Final = 3
# A tree deeper or wider than this is not walked to its end.
_MAX_DESCENDANTS: Final = 1000


@frozen
class ProcessStat:
    """One row of the process table. `start` is in clock ticks since boot: with `pid` it names a process for good."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return self.state not in _DEAD


def parse_stat(text: bytes) -> ProcessStat | None:
    """Read ``/proc/PID/stat``; None when it is not one. The program's name may hold blanks and parentheses."""
    head, _, tail = text.rpartition(b")")
    fields = tail.split()
    try:
        pid = int(head.split(b"(", 1)[0])
        return ProcessStat(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))
    except (ValueError, IndexError):
        return None


def read_stat(pid: int) -> ProcessStat | None:
    """Look one process up; None when there is none, or no /proc."""
    try:
        return parse_stat(_read(f"{_PROC}/{pid}/stat"))
    except OSError:
        return None


def is_running(pid: int, start: int) -> bool:
    """Whether the process that pid and start time name is alive, as far as /proc tells."""
    row = read_stat(pid)
    return row is not None and row.start == start and row.is_alive


def boot_id() -> str | None:
    """Name of this boot: start times are only comparable within one."""
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def stats() -> Iterator[ProcessStat]:
    """Walk the whole process table (some 10 us for each process)."""
    try:
        with os.scandir(_PROC) as listing:
            names = [entry.name for entry in listing]
    except OSError:
        return
    for name in names:
        if name.isdigit():
            row = read_stat(int(name))
            if row is not None:
                yield row


def has_live_member(group: int) -> bool | None:
    """Whether a process of this group runs, zombies not counted; None when that cannot be told."""
    seen = False
    for row in stats():
        seen = True
        if row.group == group and row.is_alive:
            return True
    return False if seen else None


def descendants(pid: int) -> list[ProcessStat]:
    """All living children of a process, and theirs, parents first; empty where the kernel does not tell."""
    found: list[ProcessStat] = []
    queue = [pid]
    while queue and len(found) < _MAX_DESCENDANTS:
        for child in _children(queue.pop()):
            row = read_stat(child)
            if row is not None and row.is_alive:
                found.append(row)
                queue.append(child)
    return found


def _read(path: str) -> bytes:
    # By descriptor: these reads are many and short.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 64 * 1024)
    finally:
        os.close(fd)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        # A directory's links tell how many threads there are without listing them; most children have one.
        if os.stat(f"{_PROC}/{pid}/task").st_nlink == _LINKS_OF_ONE:  # noqa: PTH116  a Path costs more than the call
            return [int(child) for child in _read(f"{_PROC}/{pid}/task/{pid}/children").split()]
        with os.scandir(f"{_PROC}/{pid}/task") as threads:
            for thread in threads:
                found += map(int, _read(f"{thread.path}/children").split())
    except OSError:
        pass
    return found
