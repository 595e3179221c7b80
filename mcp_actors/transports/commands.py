"""Owns the command that is started on POSIX: in which words, which file that is, or a clear reason why there is none.

What this is not: Windows, whose rules are `windows_commands`; nor starting it (`process`). The file system is asked
through one function that is passed in, so the rules themselves are pure.

Rule 1: the PATH is the child's, not ours, and relative names start at the child's directory (fault 15).
Rule 2: an error names the command, the PATH that was searched, and what to do.
Rule 3: a user may have every program started by another one, such as a sandbox (S068).
"""

from __future__ import annotations

import enum
import errno
import os
import posixpath
import shlex
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.errors import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "SHELL_PREFIX",
    "FileKind",
    "LookUp",
    "final_command",
    "look_up",
    "resolve_command",
    "resolve_final",
    "spawn_hint",
]

# Variable of ours: the program, with its first arguments, that starts every server's.
SHELL_PREFIX: Final = "CLAUDE_CODE_SHELL_PREFIX"


# What the system's own words leave out when it refuses a file that is there and executable.
_SPAWN_HINTS: Final[Mapping[int | None, str]] = {
    errno.ENOENT: "the interpreter that its first line (#!) names, or its loader, does not exist",
    errno.ENOEXEC: "its first line names no interpreter (#!), or it is a program for another machine",
}


class FileKind(enum.Enum):
    """What stands at a path, as far as starting it is concerned."""

    MISSING = "does not exist"
    DIRECTORY = "is a directory"
    NOT_EXECUTABLE = "is not executable"
    EXECUTABLE = "is executable"


# Path -> what stands there.
LookUp: TypeAlias = Callable[[str], FileKind]

# What execvp takes when the environment has no PATH.
_DEFAULT_PATH: Final = "/bin:/usr/bin"

_REMEDIES: Final[Mapping[FileKind, str]] = {
    FileKind.MISSING: "check the spelling, or write the full path of the program",
    FileKind.DIRECTORY: "write the path of the program inside it",
    FileKind.NOT_EXECUTABLE: "make it executable with chmod +x, or start it through its interpreter",
}


def look_up(path: str) -> FileKind:
    """Ask the file system what stands at `path`."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  a Path costs more than the call
    except (OSError, ValueError):
        return FileKind.MISSING
    if stat.S_ISDIR(mode):
        return FileKind.DIRECTORY
    return FileKind.EXECUTABLE if os.access(path, os.X_OK) else FileKind.NOT_EXECUTABLE


def final_command(command: str, args: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The words that are started in the end.

    Args:
        command: as the entry has it.
        args: its arguments.
        environ: ours, where a user says what starts every program.

    Returns:
        Command and arguments; behind a prefix both as one argument, quoted so that a shell reads these very words.

    Raises:
        ConnectFailed: the prefix cannot be taken apart.

    Source:
        S068.
    """
    own = [command, *args]
    if not (written := environ.get(SHELL_PREFIX)):
        return own
    try:
        prefix = shlex.split(written)
    except ValueError as error:
        raise ConnectFailed(reason=f"{SHELL_PREFIX} has a quote that does not end", can_retry=False) from error
    return [*prefix, shlex.join(own)] if prefix else own


def resolve_final(
    command: str, args: Sequence[str], ours: Mapping[str, str], *, environ: Mapping[str, str], cwd: str
) -> tuple[list[str], str]:
    """The words that are started in the end (`final_command`), and the file that they start (`resolve_command`).

    Raises:
        ConnectFailed: as these two; where it is about the prefix it says so.
    """
    words = final_command(command, args, ours)
    try:
        return words, resolve_command(words[0], environ=environ, cwd=cwd)
    except ConnectFailed as error:
        if len(words) != len(args) + 1 or words[0] != command:
            error.reason = f"{SHELL_PREFIX}: {error.reason}"
        raise


def resolve_command(command: str, *, environ: Mapping[str, str], cwd: str, look_up: LookUp = look_up) -> str:
    """Find the file that `command` starts.

    Args:
        command: a name to look up on the PATH, or a path.
        environ: the child's whole environment.
        cwd: absolute directory that the child starts in.
        look_up: tells what stands at a path.

    Returns:
        An absolute path.

    Raises:
        ConnectFailed: there is no such file or it cannot be started.

    Source:
        fault 15.
    """
    if not command.strip():
        raise ConnectFailed(
            reason="the command is empty: set `command` to the program that starts the server", can_retry=False
        )
    if "/" in command:
        path = posixpath.join(cwd, command)
        kind = look_up(path)
        if kind is FileKind.EXECUTABLE:
            return path
        place = "" if command.startswith("/") else f", seen from {cwd}"
        raise ConnectFailed(
            reason=f"command {command!r} {kind.value}{place} ({_remedy(command, kind, look_up)})", can_retry=False
        )
    search = environ.get("PATH", _DEFAULT_PATH)
    best = FileKind.MISSING
    for directory in search.split(":"):
        path = posixpath.join(cwd, directory, command)
        kind = look_up(path)
        if kind is FileKind.EXECUTABLE:
            return path
        if kind is FileKind.NOT_EXECUTABLE:
            best = kind
    what = "not found" if best is FileKind.MISSING else "found, but not executable"
    raise ConnectFailed(
        # What to do stands before the PATH, which is long: where a line is cut, it is cut there.
        reason=f"command {command!r} {what}: {_remedy(command, best, look_up)}; the PATH of the server's environment "
        f"is {search or '(empty)'}",
        can_retry=False,
    )


def _remedy(command: str, kind: FileKind, look_up: LookUp) -> str:
    if "://" in command:
        return "it is an address: write it as `url`, and no command"
    if command.startswith("~"):
        return "~ is not expanded here: write ${HOME} instead"
    first, *rest = command.split()
    if rest and look_up(command) is FileKind.MISSING:
        return f"the command holds a space: put {first!r} in `command` and the rest in `args`"
    return _REMEDIES[kind]


def spawn_hint(error: OSError) -> str | None:
    """What the system's own words leave out when a program could not be started; None where they say enough."""
    if error.errno == errno.EMFILE:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"this process may have {limit} of them at once (ulimit -n)"
    return _SPAWN_HINTS.get(error.errno)
