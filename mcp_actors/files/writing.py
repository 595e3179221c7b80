"""Owns the writing of one small file, so that no reader ever sees half of it and no writer loses another's work.

What this is not: what is written; the change is a pure function of the text. Blocking, like `loading`.

Rules (faults 23 and 31).

1. One writer at a time: a lock of ours (`locks`), which lies in our own state directory, never beside the file.
2. The file is read under the lock, and once more before it is replaced: programs that know nothing of our lock are
   seen too, and the change is made again to what they wrote.
3. A new file in the same directory, flushed to the disk, takes the place of the old one with its mode and its owner. A
   symbolic link stays one: the file that it leads to is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from mcp_actors.config.jsonc import decode_text, mark_of
from mcp_actors.errors import ConfigError
from mcp_actors.files.locks import blocking_lock
from mcp_actors.files.places import read_bounded, unreadable, where_it_leads
from mcp_actors.files.private import FILE_MODE, draft_of, flush_to_disk
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Change", "change_file", "plan_change"]

# Seconds that another writer may hold the lock; each holds it for milliseconds.
LOCK_PATIENCE = 30.0
# How often a program without our lock may get in between.
MAX_TRIES = 50
# The mode of a file that we make for others too; narrowed by the umask.
SHARED_MODE = 0o666


@frozen
class Change:
    """What a change does to a file. `before` None: there is none, and an empty `after` makes none."""

    path: Path
    before: str | None
    after: str

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return self.after == (self.before or "")


def plan_change(path: Path, change: Callable[[str | None], str]) -> Change:
    """What `change` would do to the file, written nowhere.

    Raises:
        ConfigError: the file cannot be read, or `change` refuses it.
    """
    data = _read(path)
    before = None if data is None else decode_text(data, str(path))
    return Change(path, before, change(before))


def change_file(path: Path, change: Callable[[str | None], str], state_dir: Path, *, is_private: bool = True) -> Change:
    """Change a file, or make it.

    Args:
        path: the file, or a symbolic link to it.
        change: takes the text, None when there is no file; may be called more than once.
        state_dir: where our lock lies; made when it is missing.
        is_private: a file that is made is for this user alone.

    Returns:
        What was done. A change that changes nothing writes nothing.

    Raises:
        ConfigError: the file cannot be read or written, or `change` refuses it; it is as it was, to the byte.

    Source:
        Faults 22, 23 and 31.
    """
    try:
        target = where_it_leads(path)
    except OSError as exc:
        raise unreadable(path, exc) from exc
    with _locked(target, state_dir):
        for _ in range(MAX_TRIES):
            data = _read(target)
            mark, encoding = mark_of(data or b"")
            before = None if data is None else decode_text(data, str(path))
            done = Change(path, before, change(before))
            if done.is_empty:
                return done
            try:
                is_done = _replace(target, data, mark + done.after.encode(encoding), is_private=is_private)
            except OSError as exc:
                raise _unwritable(path, exc) from exc
            if is_done:
                return done
    raise ConfigError(file=str(path), reason="is written by another program all the time", category="unwritable")


def _read(path: Path) -> bytes | None:
    try:
        return read_bounded(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise unreadable(path, exc) from exc


def _unwritable(path: Path, exc: OSError) -> ConfigError:
    reason = (exc.strerror or "not possible").lower()
    return ConfigError(file=str(path), reason=f"cannot be written: {reason}", category="unwritable")


def _replace(target: Path, seen: bytes | None, data: bytes, *, is_private: bool) -> bool:
    """Put `data` in the place of `target`; False when the file is no longer what was `seen`."""
    old = target.stat() if seen is not None else None
    # By its mode too: who runs as root has not said that the mode means nothing.
    if old is not None and not (old.st_mode & 0o222 and os.access(target, os.W_OK)):
        raise PermissionError(0, "it is write-protected")
    mode = FILE_MODE if is_private or old is not None else SHARED_MODE
    with draft_of(target, data, mode, like=old) as draft:
        flush_to_disk(draft)
        if _read(target) != seen:
            return False
        draft.replace(target)
    # The new name must be on the disk too; file systems that cannot do that need not.
    with contextlib.suppress(OSError):
        flush_to_disk(target.parent)
    return True


@contextlib.contextmanager
def _locked(target: Path, state_dir: Path) -> Iterator[None]:
    """Hold the lock of one file."""
    name = hashlib.sha256(os.fsencode(target)).hexdigest()[:32]
    lock = state_dir / "locks" / f"{name}.lock"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(blocking_lock(lock, LOCK_PATIENCE))
        except TimeoutError:
            reason = f"is being changed by another process for more than {LOCK_PATIENCE:.0f} s"
            raise ConfigError(file=str(target), reason=reason, category="unwritable") from None
        except OSError as exc:
            raise _unwritable(lock.parent, exc) from exc
        yield
