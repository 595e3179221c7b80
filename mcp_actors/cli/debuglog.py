"""Owns what the log looks like at a door: a handler on standard error whose every line starts with ``[MCP:<server>]``.

What this is not: what is logged; rooms with a clock say that. The library itself never configures logging.

Source:
    S349-S352.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Final

from mcp_actors.cli.render import clean, clean_line

__all__ = ["PrefixFormatter", "install_log"]

ROOT: Final = "mcp_actors"
# Stands where no single server is meant.
FLEET: Final = "*"
# A message that names its server itself.
_TAGGED: Final = re.compile(r"\[MCP:(.*?)\] ?")


class PrefixFormatter(logging.Formatter):
    """Writes ``[MCP:<server>] message``, and the same prefix before each further line, tracebacks included."""

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
        return "\n".join(f"{prefix} {line}" for line in clean(level + text).splitlines() or [""])


def install_log(*, is_debug: bool) -> None:
    """Send the package's log to standard error: all of it when debugging, else errors alone.

    What fails without being an error of ours is told by each verb, so a quieter level would say it twice. The handler
    belongs to the package's own logger: a program's logging is left alone.
    """
    logger = logging.getLogger(ROOT)
    for old in [handler for handler in logger.handlers if isinstance(handler.formatter, PrefixFormatter)]:
        logger.removeHandler(old)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrefixFormatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if is_debug else logging.ERROR)
    logger.propagate = False
