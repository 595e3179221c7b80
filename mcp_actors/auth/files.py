"""Owns files of secrets: directories that only their owner enters, atomic writes, and locks between processes.

What this is not: what is in them. Everything here blocks for a moment; callers in a task use a thread.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["open_private_directory", "process_lock", "read_private", "write_private"]

MAX_BYTES: Final = 1024 * 1024
# Seconds between two looks at a lock that another process holds.
FIRST_LOOK: Final = 0.005
LAST_LOOK: Final = 0.1
# Twice what one renewal may take.
LOCK_TIMEOUT: Final = 60.0
IS_POSIX: Final = os.name == "posix"


def open_private_directory(path: Path) -> Path:
    """Make the directory if need be, and see to it that only its owner can enter.

    Raises:
        OSError: it cannot be made, is no directory, or belongs to somebody else.
    """
    # One by one: of several at once `mkdir` makes only the last one private, and here the last two are ours.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(0, "no directory, or a link to one", str(path))
    if IS_POSIX:
        if status.st_uid != os.geteuid():
            raise PermissionError(0, "belongs to another user", str(path))
        if status.st_mode & 0o077:
            path.chmod(0o700)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace a file whole: a reader sees the old or the new, also after a crash. Mode 0600.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    open_private_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_private(path: Path) -> bytes | None:
    """Read a file; None when there is none.

    Raises:
        OSError: it cannot be read, is no regular file, is too large, or others may read or write it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                raise OSError(0, "no regular file of a sensible size", str(path))
            if IS_POSIX and status.st_mode & 0o077:
                raise PermissionError(0, "others may read it: its mode must be 0600", str(path))
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        return None


@contextlib.asynccontextmanager
async def process_lock(path: Path, timeout: float = LOCK_TIMEOUT) -> AsyncIterator[None]:
    """Hold a lock that no other process (and no other user of this function in this one) holds at the same time.

    The kernel lets go of it when its process dies, however that happens. The file stays: removing it would let two
    processes lock two files of one name.

    Args:
        path: the lock file, which is made.
        timeout: seconds to wait for whoever holds it.

    Raises:
        TimeoutError: somebody held it all that time.
        OSError: the lock file cannot be opened.

    Cancellation:
        Safe while waiting and while holding.
    """
    await trio.to_thread.run_sync(open_private_directory, path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        pause, deadline = FIRST_LOOK, trio.current_time() + timeout
        while not _try_lock(descriptor):
            if trio.current_time() > deadline:
                raise TimeoutError(0, "another process holds the lock", str(path))
            await trio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK)
        yield
    finally:
        os.close(descriptor)


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
