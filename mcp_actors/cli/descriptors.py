"""Owns how many files this process may have open: as many as its fleet needs, where the system lets it.

What this is not: what happens when there are too few; a server that gets none says so and is tried again (fault 98).

Rule 1: only a door changes a limit: it belongs to whoever owns the process, so the library leaves it alone.
Rule 2: it is raised as far as the fleet needs and no further. Children inherit it, and with a limit of a million those
that close every descriptor they might have stand still, and those that call ``select`` break. Up to a hundred servers
the usual limit stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

__all__ = ["AT_REST", "PER_SERVER", "RESERVE", "make_room", "missing_room", "wanted_limit"]

# A child takes three pipes, the descriptor of its end and one to hear them by; five more while it is started.
AT_REST: Final = 5
PER_SERVER: Final = 8
# For all else: files, logins, listeners, and whoever is started at the same moment.
RESERVE: Final = 224


def wanted_limit(servers: int, soft: int, hard: int, *, unlimited: int = -1) -> int | None:
    """Decide on another soft limit.

    Args:
        servers: how many there may be at once.
        soft: the limit that holds.
        hard: how far it may be raised.
        unlimited: the number that means that there is no limit.

    Returns:
        The limit to set; None: leave it.
    """
    needed = RESERVE + PER_SERVER * servers
    reachable = needed if hard == unlimited else min(needed, hard)
    return None if soft == unlimited or soft >= reachable else reachable


def make_room(servers: int) -> None:
    """Let this process open as many files as so many servers need, or as many as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = wanted_limit(servers, soft, hard, unlimited=resource.RLIM_INFINITY)
    if limit is not None:
        with suppress(OSError, ValueError):  # Darwin allows less than its hard limit says
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def missing_room(programs: int) -> str | None:
    """Say why so many programs cannot be up at once, whatever this process does about it; None where they can."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= AT_REST * programs:
        return None
    return f"{programs} programs take {AT_REST * programs} descriptors, and a process may have {hard} at most"
