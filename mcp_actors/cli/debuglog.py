"""Owns what the log looks like at a door: a handler on standard error whose every line starts with ``[MCP:<server>]``.

What this is not: what is logged; rooms with a clock say that. The library itself never configures logging.

Source:
    S349-S352.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

from mcp_actors.cli.render import clean

__all__ = ["PrefixFormatter", "install_log"]

ROOT: Final = "mcp_actors"
# Stands where no single server is meant.
FLEET: Final = "*"


class PrefixFormatter(logging.Formatter):
    """Writes ``[MCP:<server>] message``, and the same prefix before each further line, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one or more lines, cleaned."""
        server = clean(str(getattr(record, "server", None) or FLEET)).replace("\n", " ")
        level = "" if record.levelno < logging.WARNING else f"{record.levelname}: "
        lines = clean(level + super().format(record)).splitlines() or [""]
        return "\n".join(f"[MCP:{server}] {line}" for line in lines)


def install_log(level: int, *, is_debug: bool) -> None:
    """Send the package's log to standard error: all of it when debugging, else from `level` on.

    The handler belongs to the package's own logger, so that a program's logging is left alone.
    """
    logger = logging.getLogger(ROOT)
    for old in [handler for handler in logger.handlers if isinstance(handler.formatter, PrefixFormatter)]:
        logger.removeHandler(old)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrefixFormatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if is_debug else level)
    logger.propagate = False
