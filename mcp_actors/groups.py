"""Owns the ways through errors: what a group holds, what lies behind an error, how a lone one leaves a nursery bare.

What this is not: a verdict; which of several errors is the cause is `actors.exits`' to say.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bare_errors", "causes", "leaves"]

# How deep an error may lie behind others; httpx, httpcore and trio make six.
MAX_CAUSES: Final = 10


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield what a group holds, flattened, in order; an exception that is no group is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what lies behind it, outermost first, at most `MAX_CAUSES`.

    HTTP libraries raise in `except` blocks without a cause, and a host of several addresses fails as a group, of which
    the first stands for all.
    """
    for _ in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = error.__cause__ or inner or error.__context__


@contextmanager
def bare_errors() -> Iterator[None]:
    """Raise the single error inside nested groups in their stead; a group of several goes on as it is.

    Around a nursery: it wraps even one failure of its body (S419). What was cancelled beside that failure adds nothing:
    without a nursery, too, an error takes the place of the cancellation that it meets. Nor does that an actor is gone:
    somebody asked it while it ended of the other.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        # Here, where a nursery must have been: a verb that has none starts sooner.
        import trio

        from mcp_actors.errors import ActorGone

        found = list(leaves(group))
        told = [leaf for leaf in found if not isinstance(leaf, trio.Cancelled)] or found
        told = [leaf for leaf in told if not isinstance(leaf, ActorGone)] or told
        if len(told) > 1:
            raise
        raise told[0] from told[0].__cause__
