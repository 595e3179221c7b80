"""Owns the exit codes, and what a person reads when something went wrong.

What this is not: the place where exceptions are caught; that is the outermost line of `main`.

========  =========================================================================================
0         done
1         the operation failed: a tool's own error, an unknown name, a server that is not up, a bug
2         usage
3         configuration error
4         a person must log in
5         timed out
130       interrupted (SIGINT; any verb but ``run`` also for SIGTERM)
========  =========================================================================================

Rule 1: this module imports nothing heavy, so that ``--help`` stays fast; the error tree is read by class name.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from mcp_actors.groups import leaves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CONFIG",
    "FAILED",
    "INTERRUPTED",
    "LOGIN",
    "OK",
    "TIMED_OUT",
    "USAGE",
    "OutputClosed",
    "Refused",
    "UsageError",
    "as_one",
    "code_of",
    "code_of_state",
    "explain",
    "leaves",
]

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CONFIG: Final = 3
LOGIN: Final = 4
TIMED_OUT: Final = 5
INTERRUPTED: Final = 130


class UsageError(Exception):
    """The command line cannot be understood; the text says what to write instead."""


class Refused(Exception):
    """What was asked cannot be done as things stand; the text says why, and what can be done."""


class OutputClosed(Exception):
    """Nobody reads our standard output. Without a text nothing is said about it: whoever read it went away."""


# Class name anywhere in an exception's ancestry -> exit code. Rule 1 is why these are names.
_CODES: Final[Mapping[str, int]] = {
    "KeyboardInterrupt": INTERRUPTED,
    "UsageError": USAGE,
    "Refused": FAILED,
    "ConfigError": CONFIG,
    "CredentialsRefused": FAILED,  # there is nothing to log in to
    "AuthError": LOGIN,
    "TooSlowError": TIMED_OUT,
    "McpActorsError": FAILED,
    "OutputClosed": FAILED,
    "OSError": FAILED,
    "MemoryError": FAILED,
}
# When a group holds several, the first of these decides.
_PRECEDENCE: Final = (INTERRUPTED, USAGE, CONFIG, LOGIN, TIMED_OUT, FAILED)


def _known_code(error: BaseException) -> int | None:
    for ancestor in type(error).__mro__:
        if ancestor.__name__ in _CODES:
            return _CODES[ancestor.__name__]
    return None


def as_one(problems: Sequence[Exception]) -> Exception:
    """One error that stands for all of them, at least one: itself, or a group, which `explain` takes apart."""
    return problems[0] if len(problems) == 1 else ExceptionGroup("configuration", list(problems))


def code_of(error: BaseException) -> int:
    """Map an exception, or all that a group holds, to the exit code that says most about it."""
    found = {_known_code(leaf) or FAILED for leaf in leaves(error)}
    return next(code for code in _PRECEDENCE if code in found)


# State or reason code of a server that cannot be called -> exit code.
_STATE_CODES: Final[Mapping[str, int]] = {
    "needs-auth": LOGIN,
    "timeout": TIMED_OUT,
    "invalid-config": CONFIG,
    "policy": CONFIG,
}


def code_of_state(state: str, reason: str) -> int:
    """Map the state and the reason code of a server that is not connected to an exit code."""
    return _STATE_CODES.get(state) or _STATE_CODES.get(reason) or FAILED


def _is_bug(error: BaseException) -> bool:
    return _known_code(error) is None


def explain(error: BaseException, *, is_debug: bool) -> list[str]:
    """Say what happened, for standard error; empty for interrupts and closed pipes.

    Args:
        error: what reached the outermost line; groups are taken apart.
        is_debug: add the traceback.

    Returns:
        Lines or blocks of lines, each once, in order.
    """
    said: dict[str, None] = {}
    for leaf in leaves(error):
        if isinstance(leaf, KeyboardInterrupt) or (isinstance(leaf, OutputClosed) and not str(leaf)):
            continue
        text = str(leaf) or type(leaf).__name__
        if type(leaf).__name__ == "TooSlowError":
            text = "timed out" + (f": {leaf}" if str(leaf) else "")
        elif isinstance(leaf, MemoryError):
            text = "out of memory"
        elif _is_bug(leaf):
            hint = "" if is_debug else " (a bug: --debug shows where)"
            text = f"{type(leaf).__name__}: {text}{hint}"
        notes = getattr(leaf, "__notes__", ())
        said["\n".join([text, *notes])] = None
    if is_debug and said and code_of(error) != USAGE:
        said["".join(traceback.format_exception(error)).rstrip()] = None
    return list(said)
