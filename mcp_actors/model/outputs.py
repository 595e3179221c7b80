"""Owns the files that results leave behind: made new, for this user alone, under names that nobody can foresee.

What this is not: the choice of what is saved (`tools.blocks`), nor their end: whoever was told of a path may still read
it. What is older than a week is swept when the next one is written.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.files.private import create_file, make_private_directory
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_actors.tools.plans import SaveFile

__all__ = ["Outputs", "save_files"]

KEPT_SECONDS: Final = 7 * 24 * 3600.0


def save_files(directory: Path, files: Sequence[SaveFile], *, prefix: str = "") -> list[str | None]:
    """Write files, each under a random name. Blocking.

    Args:
        directory: made, for this user alone, when it is missing.
        files: what to write; an extension comes from our own table, never from a server (S218).
        prefix: begins each name.

    Returns:
        The absolute path of each, in order; None where it could not be written.
    """
    with suppress(OSError):
        make_private_directory(directory)
    return [_save(directory, file, prefix) for file in files]


def _save(directory: Path, file: SaveFile, prefix: str) -> str | None:
    path = directory.absolute() / f"{prefix}{secrets.token_hex(8)}.{file.extension}"
    try:
        with create_file(path) as out:
            out.write(file.data)
    except OSError:
        # Half a file is none.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    return str(path)


@frozen
class Outputs:
    """A directory for outputs."""

    directory: Path

    async def save(self, files: Sequence[SaveFile]) -> list[str | None]:
        """Write files in a thread, as `save_files`. Cancellation: safe; a file that is being written is written."""
        if not files:
            return []
        return await trio.to_thread.run_sync(self._save, files)

    def _save(self, files: Sequence[SaveFile]) -> list[str | None]:
        self._sweep()
        return save_files(self.directory, files)

    def _sweep(self) -> None:
        """Remove what is old; nothing else lies in this directory."""
        oldest = time.time() - KEPT_SECONDS
        with suppress(OSError):
            for path in self.directory.iterdir():
                with suppress(OSError):
                    if path.lstat().st_mtime < oldest:
                        path.unlink()
