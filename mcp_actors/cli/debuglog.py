"""Owns what the log looks like at a door, on standard error or in a file: each line starts with ``[MCP:<server>]``.

What this is not: what is logged; rooms with a clock say that. The library itself never configures logging.

Source:
    S349, S350, S351, S352, S353.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcp_actors.cli import output
from mcp_actors.cli.exits import UsageError
from mcp_actors.cli.render import clean, clean_line

__all__ = ["MomentFormatter", "PrefixFormatter", "close_log", "install_log"]

ROOT: Final = "mcp_actors"
_LEFTOVERS: Final = f"{ROOT}.transports.leftovers"
# Stands where no single server is meant.
FLEET: Final = "*"
# A message that names its server itself.
_TAGGED: Final = re.compile(r"\[MCP:(.*?)\] ?")


class PrefixFormatter(logging.Formatter):
    """Writes ``[MCP:<server>] message``, and the same prefix before each further line, tracebacks included."""

    has_moments = False

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one or more lines, cleaned."""
        text = super().format(record)
        tagged = _TAGGED.match(text)
        if tagged is not None:
            server, text = tagged.group(1), text[tagged.end() :]
        else:
            server = str(getattr(record, "server", None) or FLEET)
        prefix = f"[MCP:{clean_line(server)}]"
        level = "" if record.levelno < logging.WARNING else f"{record.levelname}: "
        moment = f"{self.formatTime(record)} " if self.has_moments else ""
        return "\n".join(f"{prefix} {moment}{line}" for line in clean(level + text).splitlines() or [""])


class MomentFormatter(PrefixFormatter):
    """Writes the moment behind the prefix, for a log that is read later."""

    has_moments = True


def install_log(*, is_debug: bool, place: str | None = None) -> None:
    """Send the package's log to standard error or a file: all of it when debugging, else errors alone.

    What fails without being an error of ours is told by each verb, so a quieter level would say it twice; but for the
    journal of children, which no verb knows of. The handler belongs to the package's own logger: a program's logging is
    left alone.

    Args:
        is_debug: log everything.
        place: a file, which is appended to, or a directory, in which a new file is made; None: standard error.

    Raises:
        UsageError: it cannot be written there.

    Source:
        S349-S353.
    """
    close_log()
    logger = logging.getLogger(ROOT)
    handler = _StandardError(sys.stderr) if place is None else _open_file(place)
    handler.setFormatter((PrefixFormatter if place is None else MomentFormatter)("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if is_debug else logging.ERROR)
    logging.getLogger(_LEFTOVERS).setLevel(logging.DEBUG if is_debug else logging.WARNING)
    logger.propagate = False


def close_log() -> None:
    """Undo `install_log`; a file is closed."""
    logger = logging.getLogger(ROOT)
    for old in [handler for handler in logger.handlers if isinstance(handler.formatter, PrefixFormatter)]:
        logger.removeHandler(old)
        old.close()
        logging.getLogger(_LEFTOVERS).setLevel(logging.NOTSET)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]  # it takes one for type checkers only
    """A log that loses what cannot be written, a full disk for one: nobody is left to be told."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Tell of bugs of ours alone."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _LogFile(logging.FileHandler):
    """A log that gives up when it cannot be written, a full disk for one, and says so once: what is logged goes on."""

    def __init__(self, path: Path, place: str) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._place = place

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Take no more, but for what is a bug of ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif self.level <= logging.CRITICAL:
            self.setLevel(logging.CRITICAL + 1)
            output.note(f"--debug-file {self._place}: {error.strerror}: nothing more is logged")

    def close(self) -> None:
        """Close it; what cannot be written then was told before."""
        with suppress(OSError):
            super().close()


def _open_file(place: str) -> logging.FileHandler:
    """Open the file for this user alone: what servers say is in it."""
    path = Path(place)
    try:
        if place.endswith(os.sep) or path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # No colon in it: some file systems take none.
            path /= f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{os.getpid()}.txt"
        # Of a pipe that nobody reads the opening would wait for its reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        os.close(os.open(path, flags, 0o600))
        return _LogFile(path, place)
    except OSError as exc:
        raise UsageError(f"--debug-file {place}: {os.strerror(exc.errno) if exc.errno else exc}") from exc
