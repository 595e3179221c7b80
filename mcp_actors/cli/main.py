"""Owns the command `mcp-actors`: words in, exit code out, and the outermost line that catches everything.

What this is not: a verb. Each family of verbs has its own file, imported when one of them is asked for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_actors.cli import exits, output
from mcp_actors.cli.options import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: the words after the program's name; None: those of this process.

    Returns:
        The exit code (see `exits`).

    Raises:
        SystemExit: help or the version was asked for.
    """
    output.open_missing()
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Until the line is understood this is the best guess; a failure to understand it is no bug.
    is_debug = "--debug" in words
    try:
        understood = parse(words)
        is_debug = understood.shared.is_debug
        return understood.run(understood.shared, understood.own)
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:  # noqa: BLE001 - the door's outermost line
        for text in exits.explain(error, is_debug=is_debug):
            output.note(text)
        return exits.code_of(error)
    finally:
        if any(word.startswith("--debug-file") for word in words):
            from mcp_actors.cli.debuglog import close_log

            close_log()
        output.close_quietly()


if __name__ == "__main__":
    sys.exit(main())
