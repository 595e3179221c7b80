"""Owns how a program is found and its arguments are quoted on Windows, as pure functions under table tests.

What this is not: tried. These rules were never run on Windows; nothing in the package calls them on POSIX.

Theory. Process creation on Windows takes one string and does not look at PATHEXT; ``npx`` and ``uvx`` are batch files
there, and a batch file is run by the command interpreter, which reads the string by rules of its own before the program
splits it again. Quoting has to survive both readers; what cannot is refused (fault 15).
"""

from __future__ import annotations

import ntpath
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["quote_argument", "quote_batch_argument", "resolve_windows_command", "windows_command_line"]

_DEFAULT_PATHEXT: Final = ".COM;.EXE;.BAT;.CMD"
_BATCH: Final = (".bat", ".cmd")
# Characters of a batch argument that no reader gives a meaning to; every other one is put in quotes.
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#$*+-./:?@\\_")
# No quoting carries these through the command interpreter.
_FORBIDDEN: Final = frozenset("\0\r\n")


def resolve_windows_command(
    command: str, *, environ: Mapping[str, str], cwd: str, is_file: Callable[[str], bool]
) -> str:
    """Find the file that `command` starts, through PATH and PATHEXT of the child's environment.

    Args:
        command: a name or a path, with or without extension.
        environ: the child's whole environment; names are compared without regard to case.
        cwd: absolute directory that the child starts in.
        is_file: whether a path names a file.

    Raises:
        ConnectFailed: nothing was found; names the command and the PATH searched.

    Source:
        Fault 15.
    """
    folded = {name.upper(): value for name, value in environ.items()}
    search = folded.get("PATH", "")
    extensions = [ext for ext in folded.get("PATHEXT", _DEFAULT_PATHEXT).split(";") if ext]
    suffix = ntpath.splitext(command)[1].lower()
    endings = ["", *extensions] if suffix in {ext.lower() for ext in extensions} else extensions
    is_path = any(mark in command for mark in "\\/:")
    # The child's directory is not searched for bare names: a file dropped there must not take the place of npx.
    directories = [cwd] if is_path else [ntpath.join(cwd, part.strip('"')) for part in search.split(";") if part]
    for directory in directories:
        for ending in endings:
            path = ntpath.normpath(ntpath.join(directory, command + ending))
            if is_file(path):
                return path
    raise ConnectFailed(
        reason=f"command {command!r} not found with PATHEXT {';'.join(extensions)} on the PATH of the server's "
        f"environment: {search or '(empty)'} (check the spelling, or write the full path of the program)"
    )


def windows_command_line(program: str, args: Sequence[str], *, comspec: str = "cmd.exe") -> str:
    """Write the one string that starts `program` (a resolved path) with exactly these arguments.

    Raises:
        ConnectFailed: an argument cannot be passed unchanged.

    Source:
        Fault 15.
    """
    if not program.lower().endswith(_BATCH):
        return " ".join([quote_argument(program), *(quote_argument(arg) for arg in args)])
    if '"' in program or "%" in program:
        raise ConnectFailed(
            reason=f"batch file {program!r} cannot be started safely: its path holds a quote or percent"
        )
    inner = " ".join([f'"{program}"', *(quote_batch_argument(arg) for arg in args)])
    # /e:ON so that the percent trick works, /v:OFF so that ! is plain, /d against AutoRun, outer quotes for /c.
    return f'{quote_argument(comspec)} /e:ON /v:OFF /d /c "{inner}"'


def quote_argument(arg: str) -> str:
    """Quote for a program that splits its line by the usual C rules: backslashes matter before quotes only."""
    if "\0" in arg:
        raise ConnectFailed(reason="an argument holds a NUL character")
    if arg and not any(mark in arg for mark in ' \t\n\v"'):
        return arg
    return f'"{_escape(arg, quote=chr(92) + chr(34))}"'


def quote_batch_argument(arg: str) -> str:
    """Quote for a batch file: first the command interpreter reads it, then the program by the C rules."""
    if _FORBIDDEN & set(arg):
        raise ConnectFailed(reason="an argument with a line end or NUL cannot be passed to a batch file")
    is_plain = bool(arg) and set(arg) <= _PLAIN and not arg.endswith("\\")
    if is_plain:
        return arg
    # A percent sign inside a variable's name that expands to nothing: %PATH% stays the six characters it was.
    return '"' + _escape(arg, quote='""').replace("%", "%%cd:~,%") + '"'


def _escape(arg: str, *, quote: str) -> str:
    out: list[str] = []
    backslashes = 0
    for char in arg:
        if char == "\\":
            backslashes += 1
            continue
        # Twice as many before a quote, as many as there were before anything else.
        out.append("\\" * (2 * backslashes if char == '"' else backslashes))
        backslashes = 0
        out.append(quote if char == '"' else char)
    # The closing quote follows.
    out.append("\\" * (2 * backslashes))
    return "".join(out)
