"""Owns private files: 0600, in directories of 0700, from their first moment on; they appear whole, and through no link.

What this is not: what is in them, or who may write when (`locks`). Everything here blocks for a moment; callers in a
task use a thread.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING, BinaryIO, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "FILE_MODE",
    "create_file",
    "draft_of",
    "flush_to_disk",
    "is_private",
    "make_private_directory",
    "open_private_directory",
    "read_private",
    "why_doubted",
    "write_private",
]

MAX_BYTES: Final = 1024 * 1024
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
IS_POSIX: Final = os.name == "posix"


def make_private_directory(path: Path) -> None:
    """Make a directory, and the one above it, for this user alone; one that is there stays as it is. Raises OSError."""
    # One by one: of several at once `mkdir` makes only the last one private, and here the last two are ours.
    path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def open_private_directory(path: Path) -> Path:
    """Make the directory if need be, and see to it that only its owner can enter.

    Raises:
        OSError: it cannot be made, is no directory, or belongs to somebody else.
    """
    make_private_directory(path)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(0, "no directory, or a link to one", str(path))
    if IS_POSIX:
        if status.st_uid != os.geteuid():
            raise PermissionError(0, "belongs to another user", str(path))
        if status.st_mode & 0o077:
            path.chmod(DIRECTORY_MODE)
    return path


def is_private(path: Path) -> bool:
    """Whether a directory is there, is ours, and is closed to all others."""
    try:
        status = path.lstat()  # a link may lead to another directory the next time
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not IS_POSIX or (status.st_uid == os.geteuid() and status.st_mode & 0o077 == 0)


def why_doubted(path: Path) -> str | None:
    """Why what stands at `path` may be the word of somebody else; None when it is ours, or there is nothing."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not IS_POSIX:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "others may write there" if status.st_mode & 0o022 else None


def create_file(path: Path, mode: int = FILE_MODE) -> BinaryIO:
    """Open a new file. The umask narrows its mode. Raises OSError, also where a file or a link stands already."""
    return cast("BinaryIO", open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)))


@contextlib.contextmanager
def draft_of(path: Path, data: bytes, mode: int = FILE_MODE, like: os.stat_result | None = None) -> Iterator[Path]:
    """Make a file beside `path` that holds `data`, for whoever wants to put it in its place.

    Its name cannot be foreseen. At the end it is gone, unless it replaced something.

    Args:
        path: what it is a draft of.
        data: all that it holds.
        mode: narrowed by the umask.
        like: what it gets the owner and the mode of instead.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with create_file(draft, mode) as file:
            file.write(data)
            if like is not None:
                _dress(file.fileno(), like)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _dress(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner and the mode of the old one."""
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY if IS_POSIX else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file whole: a reader sees the old or the new, also after a crash. Mode 0600.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    open_private_directory(path.parent)
    with draft_of(path, data) as draft:
        flush_to_disk(draft)
        draft.replace(path)


def read_private(path: Path) -> bytes | None:
    """Read a file; None when there is none.

    Raises:
        OSError: it cannot be read, is no regular file, is too large, is not ours, or others may read or write it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                raise OSError(0, "no regular file of a sensible size", str(path))
            if IS_POSIX and status.st_uid != os.geteuid():
                raise PermissionError(0, "belongs to another user", str(path))
            if IS_POSIX and status.st_mode & 0o077:
                raise PermissionError(0, "others may read it: its mode must be 0600", str(path))
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        return None
