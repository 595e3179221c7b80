"""Owns the two ways out: data on standard output, everything else on standard error.

What this is not: what the data looks like; that is `render`.

What cannot be written to standard output is an error: `OutputClosed` when the reader went away
(``mcp-actors tools | head -1``), which is worth no word, or when there never was one (``mcp-actors list >&-``);
`Refused` on a full disk. What cannot be written to standard error is lost: nobody is left to be told, and what runs
goes on.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from typing import Final

from mcp_actors.cli.exits import OutputClosed, Refused
from mcp_actors.cli.render import clean

__all__ = [
    "close_quietly",
    "draw",
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
# Why nobody reads standard output any more -> what is said about it.
NOBODY_READS: Final = {errno.EPIPE: "", errno.EBADF: "standard output is closed"}


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
        Refused: it cannot be written.
    """
    emit_bytes(text.encode("utf-8", "replace"))


def emit_bytes(data: bytes) -> None:
    """Write `data` and a line end to standard output, byte for byte, at once.

    Raises:
        OutputClosed: nobody reads any more.
        Refused: it cannot be written.
    """
    emit_exactly(data + b"\n")


def emit_exactly(data: bytes) -> None:
    """Write `data` to standard output and nothing else, at once.

    Raises:
        OutputClosed: nobody reads any more.
        Refused: it cannot be written.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        if error.errno not in NOBODY_READS:
            raise Refused(f"standard output: {error.strerror}") from error
        _silence(sys.stdout.fileno())
        raise OutputClosed(NOBODY_READS[error.errno]) from None


def note(text: str, *, prefix: str = "mcp-actors: ") -> None:
    """Tell the person at the terminal something that is not data; lost without a word when it cannot be written.

    Nothing in it steers the terminal: names and words of files and servers stand in it.
    """
    draw(f"{prefix}{clean(text)}\n")


def draw(text: str) -> None:
    """Write `text` to standard error as it is, at once; lost without a word when it cannot be written.

    A terminal that went away, a full disk: what runs goes on, and what is said later is tried again.
    """
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
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
