"""Owns the two ways out: data on standard output, everything else on standard error.

What this is not: what the data looks like; that is `render`.

A reader that goes away (``mcp-actors tools | head -1``) is no error worth a traceback: it surfaces as `OutputClosed`.
So does data where there never was a standard output (``mcp-actors list >&-``).
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from typing import Final

from mcp_actors.cli.exits import OutputClosed
from mcp_actors.cli.render import clean

__all__ = [
    "close_quietly",
    "emit",
    "emit_bytes",
    "emit_exactly",
    "has_colour",
    "is_terminal",
    "note",
    "open_missing",
    "width",
]

# Name of a standard stream -> its descriptor, and how the null device is opened for it: what is data must fail there.
STREAMS: Final = {"stdin": (0, os.O_RDONLY), "stdout": (1, os.O_RDONLY), "stderr": (2, os.O_WRONLY)}
NOBODY_READS: Final = frozenset({errno.EPIPE, errno.EBADF})


def open_missing() -> None:
    """Put the null device where we were started without a standard stream.

    Else whatever is opened next, the pipe of a server for one, would get its descriptor.
    """
    for name, (descriptor, flags) in STREAMS.items():
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, flags)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
        setattr(sys, name, open(descriptor, "w" if descriptor else "r", closefd=False))  # noqa: SIM115


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """Columns of the terminal; None when standard output is none."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def has_colour() -> bool:
    """Whether standard output is a terminal that nobody asked to stay plain (NO_COLOR)."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def emit(text: str) -> None:
    """Write `text` and a line end to standard output, at once.

    Raises:
        OutputClosed: nobody reads any more.
    """
    emit_bytes(text.encode("utf-8", "replace"))


def emit_bytes(data: bytes) -> None:
    """Write `data` and a line end to standard output, byte for byte, at once.

    Raises:
        OutputClosed: nobody reads any more.
    """
    emit_exactly(data + b"\n")


def emit_exactly(data: bytes) -> None:
    """Write `data` to standard output and nothing else, at once.

    Raises:
        OutputClosed: nobody reads any more.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        if error.errno not in NOBODY_READS:
            raise
        _silence(sys.stdout.fileno())
        raise OutputClosed from None


def note(text: str, *, prefix: str = "mcp-actors: ") -> None:
    """Tell the person at the terminal something that is not data.

    It is lost without a word where standard error is closed, or cannot take it now: a full disk under a unit's log ends
    no fleet. Nothing in it steers the terminal: names and words of files and servers stand in it.
    """
    try:
        print(f"{prefix}{clean(text)}", file=sys.stderr, flush=True)
    except UnicodeEncodeError:
        _silence(2)
    except OSError as error:
        if error.errno in NOBODY_READS:
            _silence(2)


def close_quietly() -> None:
    """Flush both streams and leave none that could fail while the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _silence(stream.fileno())


def _silence(descriptor: int) -> None:
    """Point a descriptor whose reader is gone at the null device, so that later flushes succeed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
