"""Owns the way out of an exception group: which one of its errors is the cause.

What this is not: the decision what follows from it (`restarts`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import AuthError, ConfigError, McpActorsError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bare_errors", "cause_of", "lone_error"]

# The first kind that a group holds names its cause; a bug, which is in no row, outranks all of them.
_TELLING: Final[tuple[type[BaseException], ...]] = (
    AuthError,
    ConfigError,
    ProtocolError,
    McpActorsError,
    trio.TooSlowError,
    OSError,
)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def cause_of(error: BaseException) -> BaseException:
    """The one error to tell of: bugs before weather, then the most telling kind, then the first.

    Source:
        S419; conventions, Errors.
    """
    leaves = list(_leaves(error))
    bugs = [leaf for leaf in leaves if not isinstance(leaf, _TELLING)]
    ranked = bugs or [leaf for kind in _TELLING for leaf in leaves if isinstance(leaf, kind)]
    return (ranked or leaves)[0]


def lone_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The single error inside nested groups, or the group where it holds several.

    For the public border: a nursery wraps even one failure of its body (S419).
    """
    leaves = list(_leaves(group))
    return leaves[0] if len(leaves) == 1 else group


@contextmanager
def bare_errors() -> Iterator[None]:
    """Raise the single error inside nested groups in their stead; a group of several goes on as it is."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = lone_error(group)
        if error is group:
            raise
        raise error from error.__cause__
