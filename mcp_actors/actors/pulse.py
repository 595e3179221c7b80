"""Owns the checks whether a connection still lives: pings where the era has them, and a count of errors in a row.

What this is not: the restart that follows (`child`).

Rules.

1. A ping is sent only into silence: whatever was heard lately proves as much (fast-agent's habit; S127, F07).
2. An unanswered ping, or an exchange that the network ended, is one strike; any answer wipes them out (S121, S122).
3. Three strikes are the end: pending calls fail, and the reconnect follows (S123).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.slots import Request
from mcp_actors.errors import ConnectFailed, McpActorsError, RpcError, TransportBroken
from mcp_actors.protocol.budget import Budget
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.actors.wire import Wire

__all__ = ["PINGED", "Strikes", "keep_pinging"]

# Transports whose connection can die unnoticed (S127). A WebSocket has pings of its own, in any era, which tell of a
# dead wire sooner; that the program behind a living one hangs, only an answer of its own can disprove.
PINGED: Final = frozenset({"sse", "ws"})
MAX_STRIKES: Final = 3


@define(eq=False)
class Strikes:
    """Consecutive terminal errors of one connection."""

    count: int = 0

    def note(self, error: BaseException | None) -> bool:
        """Learn how an exchange ended, None: well. True when that was one strike too many.

        An answer with an error is an answer; only what the network did is a strike.
        """
        if error is None or isinstance(error, RpcError):
            self.count = 0
        elif isinstance(error, ConnectFailed | TransportBroken):
            self.count += 1
        return self.count >= MAX_STRIKES


async def keep_pinging(wire: Wire, strikes: Strikes, *, interval: float, timeout: float) -> None:
    """Ping into silence. Runs until cancelled, or until three pings in a row had no answer: the wire is given up."""
    while True:
        due = wire.heard_at + interval
        if trio.current_time() < due:
            await trio.sleep_until(due)
            continue
        try:
            await wire.calls.ask(Request("ping", None, Budget(timeout, trio.current_time())))
        except (McpActorsError, trio.TooSlowError) as error:
            lost = TransportBroken(reason=f"no answer to a ping within {timeout:g} s")
            if strikes.note(error if isinstance(error, RpcError) else lost):
                wire.give_up(lost.reason)
                return
            await trio.sleep(interval)
        else:
            strikes.note(None)
