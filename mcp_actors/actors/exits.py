"""Owns the verdict on an exception group: which one of its errors is the cause.

What this is not: the decision what follows from it (`restarts`).
"""

from __future__ import annotations

from typing import Final

import trio

from mcp_actors.errors import AuthError, ConfigError, McpActorsError, ProtocolError, TransportClosed
from mcp_actors.groups import leaves

__all__ = ["cause_of"]

# The first kind that a group holds names its cause; a bug, which is in no row, outranks all of them.
_TELLING: Final[tuple[type[BaseException], ...]] = (
    AuthError,
    ConfigError,
    ProtocolError,
    McpActorsError,
    trio.TooSlowError,
    OSError,
)


def cause_of(error: BaseException) -> BaseException:
    """The one error to tell of: bugs before weather, then the most telling kind, then the first.

    That we closed the wire is told where nothing else was: beside another error it is what followed.

    Source:
        S419; conventions, Errors.
    """
    every = list(leaves(error))
    found = [leaf for leaf in every if not isinstance(leaf, TransportClosed)] or every
    bugs = [leaf for leaf in found if not isinstance(leaf, _TELLING)]
    ranked = bugs or [leaf for kind in _TELLING for leaf in found if isinstance(leaf, kind)]
    return (ranked or found)[0]
