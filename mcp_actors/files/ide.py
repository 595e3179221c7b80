"""Owns finding the editor that is open on the working directory: the lock files that extensions leave behind.

What this is not: what a lock file says (`config.ide`). Nothing here connects to anything.

Rule 1: only a file that nobody but its owner can write, of this very user, is believed: it says where a token goes.
Rule 2: an editor that has ended leaves its file; its process id tells.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from mcp_actors.config.ide import choose_ide, parse_lock, spec_of_ide
from mcp_actors.config.notes import ConfigNote
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import Scope
from mcp_actors.files.places import read_bounded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_actors.config.ide import IdeLock
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.places import Places

__all__ = ["find_ide", "read_ide"]

MAX_LOCK_BYTES: Final = 64 * 1024
# Editors leave files behind for years; the newest count.
MAX_LOCKS: Final = 100


def find_ide(places: Places) -> ServerSpec | None:
    """The MCP server of the editor that has the working directory open; None when there is none. Blocking.

    Source:
        S086.
    """
    directories = [*map(str, places.upward()), str(places.cwd.resolve())]
    lock = choose_ide(_locks(places.config_dir / "ide"), directories)
    return None if lock is None else spec_of_ide(lock)


def read_ide(places: Places) -> SourceReading:
    """What the editor defines; without one a note says that there is none."""
    spec = find_ide(places)
    if spec is not None:
        return SourceReading(Scope.DYNAMIC, spec.source, specs=(spec,))
    note = ConfigNote("no-editor", "no editor that runs has this directory open", file="--ide")
    return SourceReading(Scope.DYNAMIC, "--ide", notes=(note,))


def _locks(directory: Path) -> Iterator[IdeLock]:
    """What living editors left there, the newest first."""
    dated: list[tuple[float, Path]] = []
    try:
        if not _is_ours(directory.stat()):
            return
        for path in directory.glob("*.lock"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and _is_ours(status):
                dated.append((status.st_mtime, path))
    except OSError:
        return
    for _, path in sorted(dated, reverse=True)[:MAX_LOCKS]:
        try:
            lock = parse_lock(read_bounded(path, MAX_LOCK_BYTES), str(path), path.name.removesuffix(".lock"))
        except OSError:
            continue
        if lock is not None and (lock.pid is None or _is_alive(lock.pid)):
            yield lock


def _is_ours(status: os.stat_result) -> bool:
    """Whether nobody else can have written it (rule 1); where a system has no such notion, it is believed."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o022


def _is_alive(pid: int) -> bool:
    if os.name != "posix":  # there the call would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
