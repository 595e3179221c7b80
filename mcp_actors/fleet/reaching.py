"""Owns the second asking of a server that changed its era: over the connection that follows.

What this is not: finding that out (`protocol.recovery`), ending the connection (`actors.connection`), or a retry of
what may have run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from mcp_actors.errors import RpcError, UnsupportedRevision
from mcp_actors.protocol.recovery import is_outgrown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.actors.connection import Connection
    from mcp_actors.protocol.budget import Budget
    from mcp_actors.protocol.types import Era

__all__ = ["ask_over"]


async def ask_over(
    reach: Callable[[str, float | None], Awaitable[tuple[Connection, float | None]]],
    server: str,
    timeout: float | None,
    ask: Callable[[Connection, Budget], Awaitable[bytes]],
) -> bytes:
    """Ask over a server's connection; once more where it turned the request away because its era changed.

    Args:
        reach: gives the connection that takes calls, and what is left of the seconds.
        server: its name.
        timeout: seconds for all of it; None: as the server's calls.
        ask: asks over a connection, within a budget.

    Raises:
        As `reach` and `ask`.

    Cancellation:
        As `ask`.

    Source:
        A06; spec_client 3.3.
    """
    connection, left = await reach(server, timeout)
    budget, era = connection.budget(left), _era_of(connection)
    try:
        return await ask(connection, budget)
    except (RpcError, UnsupportedRevision) as error:
        if era is None or not is_outgrown(error, era):
            raise
        connection, _ = await reach(server, budget.left(trio.current_time()))
        if _era_of(connection) is era:  # then it was about something else, and may have run
            raise
    return await ask(connection, budget)


def _era_of(connection: Connection) -> Era | None:
    return None if connection.info is None else connection.info.era
