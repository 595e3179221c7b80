"""Owns locks between processes: one file each, which the system frees when its holder dies, however that happens.

What this is not: locks between tasks. The file of a lock stays: removing it would let two processes lock two files of
one name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from mcp_actors.files.private import FILE_MODE, make_private_directory, open_private_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

__all__ = ["LOCK_TIMEOUT", "blocking_lock", "process_lock"]

# Twice what one renewal of a login may take; a change of a file takes milliseconds.
LOCK_TIMEOUT: Final = 60.0
# Seconds between two looks at a lock that another process holds, by which they grow, and at most.
FIRST_LOOK: Final = 0.005
GROWTH: Final = 1.5
LAST_LOOK: Final = 0.1


@contextlib.asynccontextmanager
async def process_lock(path: Path, timeout: float = LOCK_TIMEOUT) -> AsyncIterator[None]:
    """Hold a lock that no other process (and no other user of this function in this one) holds at the same time.

    Args:
        path: the lock file, which is made; its directory is made private.
        timeout: seconds to wait for whoever holds it.

    Raises:
        TimeoutError: somebody held it all that time.
        OSError: the lock file cannot be opened.

    Cancellation:
        Safe while waiting and while holding.
    """
    import trio  # only who waits in a task needs it: a verb that changes a file starts sooner

    await trio.to_thread.run_sync(open_private_directory, path.parent)
    with _opened(path) as descriptor:
        for pause in _pauses(path, descriptor, trio.current_time, timeout):
            await trio.sleep(pause)
        yield


@contextlib.contextmanager
def blocking_lock(path: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """As `process_lock`, for code that blocks; a directory that is there stays as it is."""
    make_private_directory(path.parent)
    with _opened(path) as descriptor:
        for pause in _pauses(path, descriptor, time.monotonic, timeout):
            time.sleep(pause)
        yield


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), FILE_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _pauses(path: Path, descriptor: int, now: Callable[[], float], timeout: float) -> Iterator[float]:
    """Take the lock; each value is how long to wait before the next try. Raises TimeoutError."""
    pause, deadline = FIRST_LOOK, now() + timeout
    while not _try_lock(descriptor):
        if now() > deadline:
            raise TimeoutError(0, "another process holds the lock", str(path))
        yield pause
        pause = min(pause * GROWTH, LAST_LOOK)


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        windows: Any = msvcrt
        try:
            windows.locking(descriptor, windows.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
