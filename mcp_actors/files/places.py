"""Owns where configuration lies on this machine, and the bounded reading of one file.

What this is not: which of the files count, and in which order (`loading`).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mcp_actors.config.formats import NATIVE
from mcp_actors.config.sources import SourceReading, SourceText
from mcp_actors.errors import ConfigError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_actors.config.specs import Scope

__all__ = [
    "CHOICES_FILE",
    "MANAGED_FILE",
    "MAX_ENV_FILE_BYTES",
    "MAX_FILE_BYTES",
    "PROJECT_FILE",
    "ConfigInput",
    "Places",
    "is_json_text",
    "is_missing",
    "leads_below",
    "managed_directory",
    "read_bounded",
    "read_named_file",
    "source_at",
    "unreadable",
    "where_it_leads",
    "working_directory",
]

PROJECT_FILE = ".mcp.json"
# In our own state directory: what was approved and switched (`config.remembered`).
CHOICES_FILE = "choices.json"
MANAGED_FILE = "managed-mcp.json"
# What a word of the command line may be: a path, or the text itself.
ConfigInput: TypeAlias = "str | Path"

# A thousand servers take 300 kB; `~/.claude.json` of a long-time user a few MB.
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_ENV_FILE_BYTES = 1024 * 1024

# S014, by platform; everything else is as Linux.
MANAGED_DIRECTORIES = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": "C:\\Program Files\\ClaudeCode",
}
STATE_NAME = "mcp-actors"
# Below the home directory, by platform; everything else is as Linux.
STATE_DIRECTORIES = {"darwin": "Library/Application Support", "win32": "AppData/Local"}


@frozen
class Places:
    """Where to look. Every directory may be another one, for tests and for hosts."""

    cwd: Path
    home: Path
    # `~/.claude`, or what CLAUDE_CONFIG_DIR names (S042).
    config_dir: Path
    claude_json: Path
    managed_dir: Path
    # Where we keep what we remember between runs; the only directory that is ours.
    state_dir: Path
    # Last directory of the upward search; None: the root.
    stop_at: Path | None = None

    @classmethod
    def of(
        cls,
        environ: Mapping[str, str],
        *,
        cwd: Path | None = None,
        home: Path | None = None,
        managed_dir: Path | None = None,
        stop_at: Path | None = None,
    ) -> Places:
        """The places of this user on this machine, but for those that are given."""
        home = Path(environ.get("HOME") or Path.home()) if home is None else home
        override = environ.get("CLAUDE_CONFIG_DIR")
        return cls(
            cwd=working_directory(environ) if cwd is None else cwd,
            home=home,
            config_dir=Path(override) if override else home / ".claude",
            claude_json=(Path(override) if override else home) / ".claude.json",
            managed_dir=managed_dir or Path(managed_directory(sys.platform)),
            state_dir=_state_dir(environ, home),
            stop_at=stop_at,
        )

    @property
    def project(self) -> Path:
        """The repository that holds the working directory, else that directory itself."""
        return next((path for path in self.upward() if (path / ".git").exists()), self.cwd)

    def upward(self) -> Iterator[Path]:
        """The working directory and those above it, nearest first."""
        for directory in (self.cwd, *self.cwd.parents):
            yield directory
            if directory == self.stop_at:
                return

    def project_directories(self) -> tuple[Path, ...]:
        """The working directory and its parents up to the repository that holds it; outside of one only itself."""
        upward = list(self.upward())
        top = next((index for index, directory in enumerate(upward) if (directory / ".git").exists()), 0)
        resolved = self.cwd.resolve()
        found = upward[: top + 1]
        return tuple(found if resolved == self.cwd else [*found, resolved])


def managed_directory(platform: str) -> str:
    """Where an administrator's files are; only read, never written (S014).

    Args:
        platform: as ``sys.platform`` names it.
    """
    return MANAGED_DIRECTORIES.get(platform, "/etc/claude-code")


def working_directory(environ: Mapping[str, str]) -> Path:
    """Where we run; where that was, when it is gone: then nothing is found there, and nothing else suffers."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        was = Path(environ.get("PWD", "/"))
        return was if was.is_absolute() else Path("/")


def _state_dir(environ: Mapping[str, str], home: Path) -> Path:
    """As the platform has it; a relative path would let a repository bring its own memory along, and is ignored."""
    given = environ.get("MCP_ACTORS_STATE_DIR", "")
    if Path(given).is_absolute():
        return Path(given)
    xdg = environ.get("XDG_STATE_HOME", "")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / STATE_NAME
    return home / STATE_DIRECTORIES.get(sys.platform, ".local/state") / STATE_NAME


def unreadable(path: Path, exc: Exception) -> ConfigError:
    reason = (exc.strerror if isinstance(exc, OSError) else None) or "not a usable path"
    return ConfigError(file=str(path), reason=f"cannot be read: {reason.lower()}", category="unreadable")


def is_missing(path: Path) -> bool:
    """True: nothing stands there. A dangling link or a folder that we may not enter is not nothing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def where_it_leads(path: Path) -> Path:
    """Follow all links of a path, whose end need not exist.

    Raises:
        OSError: its links go round in a circle, or it is no usable path.
    """
    try:
        return path.resolve()
    except RuntimeError as exc:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from exc
    except ValueError as exc:  # a NUL, a lone surrogate
        raise FileNotFoundError(0, "not a usable path") from exc


def leads_below(path: Path, root: Path) -> bool:
    """Whether a path leads to the directory `root` or what is in it, through whatever links."""
    try:
        return where_it_leads(path).is_relative_to(where_it_leads(root))
    except OSError:
        return False


def read_bounded(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file of at most `limit` bytes; a pipe or a device is refused before it can block.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(0, f"larger than {limit} bytes")
    return data


def read_named_file(path: str, directory: str) -> bytes:
    """Read what an entry names (`envFile`), relative to its configuration's directory."""
    try:
        return read_bounded(Path(directory) / Path(path).expanduser(), limit=MAX_ENV_FILE_BYTES)
    except (ValueError, RuntimeError) as exc:  # a NUL in the path; a ~user that nobody is
        raise FileNotFoundError(0, "not a usable path") from exc


def source_at(
    path: Path, scope: Scope, *, rank: int = 0, directory: str = "", must_have_servers: bool = True
) -> SourceText | SourceReading:
    """Read a file of servers; a reading with a problem when that fails."""
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as exc:
        return SourceReading(scope, str(path), rank, problems=(unreadable(path, exc),))
    return SourceText(data, str(path), scope, rank, NATIVE, directory, must_have_servers=must_have_servers)


def is_json_text(item: ConfigInput) -> bool:
    """Whether a word of the command line is the text itself: it begins like an object (S039)."""
    return isinstance(item, str) and item.lstrip("\ufeff \t\r\n").startswith("{")
