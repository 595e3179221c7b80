"""Owns the verdict on what ended a life: which one of several errors is the cause, and what kind of end that is.

What this is not: the decision what follows from it (`restarts`).
"""

from __future__ import annotations

import errno
from typing import Final

import trio

from mcp_actors.actors.restarts import Exit, ExitKind
from mcp_actors.errors import (
    AuthError,
    ConfigError,
    CredentialsRefused,
    McpActorsError,
    ProtocolError,
    RpcError,
    TransportClosed,
    TransportError,
    UnsupportedRevision,
)
from mcp_actors.groups import causes, leaves

__all__ = ["cause_of", "classify"]

# The first kind that a group holds names its cause; a bug, which is in no row, outranks all of them.
_TELLING: Final[tuple[type[BaseException], ...]] = (
    AuthError,
    ConfigError,
    ProtocolError,
    McpActorsError,
    trio.TooSlowError,
    OSError,
)

# First match decides. Weather is whatever is not listed as something better known.
_KINDS: Final[tuple[tuple[type[BaseException], ExitKind], ...]] = (
    (CredentialsRefused, ExitKind.REFUSED),
    (AuthError, ExitKind.NEEDS_LOGIN),
    (ConfigError, ExitKind.REFUSED),
    (UnsupportedRevision, ExitKind.REFUSED),
    (RpcError, ExitKind.REFUSED),
    (TransportClosed, ExitKind.SHUTDOWN),
    (trio.TooSlowError, ExitKind.TIMEOUT),
    (McpActorsError, ExitKind.CRASH),
    (OSError, ExitKind.CRASH),
)

_SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS})


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


def classify(cause: BaseException | None, *, was_ready: bool = False, was_proven: bool = False) -> Exit:
    """Name the end of a life by its cause; None is an end in order.

    Source:
        conventions, Errors: weather and bugs; S413.
    """
    kind = ExitKind.NORMAL
    if cause is not None:
        kind = next((kind for kinds, kind in _KINDS if isinstance(cause, kinds)), ExitKind.BUG)
    if _is_exhausted(cause):
        kind = ExitKind.EXHAUSTED
    elif isinstance(cause, TransportError):
        if was_ready and cause.exit_status == 0:
            kind = ExitKind.NORMAL
        elif not cause.can_retry:
            kind = ExitKind.REFUSED
    return Exit(kind, cause, was_ready, was_proven)


def _is_exhausted(cause: BaseException | None) -> bool:
    """Whether the system had no more to give, behind whatever error (fault 98)."""
    return any(isinstance(error, OSError) and error.errno in _SCARCE for error in causes(cause))
