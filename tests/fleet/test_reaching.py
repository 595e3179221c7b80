"""A server that turned a request away: who is asked again, and in how much time."""

from __future__ import annotations

import pytest
import trio
from attrs import define

from mcp_actors.errors import RpcError, UnsupportedRevision
from mcp_actors.fleet.reaching import ask_over
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.types import Era, ServerInfo

TURNED_AWAY = RpcError(code=-32000, message="Unsupported protocol version", http_status=400)


@define
class Reached:
    """The part of a connection that is asked over."""

    info: ServerInfo | None

    def budget(self, timeout: float | None) -> Budget:
        return Budget(60.0 if timeout is None else timeout, trio.current_time())


def reached(era: Era) -> Reached:
    return Reached(ServerInfo("r", era))


@pytest.mark.parametrize(
    ("first", "second", "error", "asked"),
    [
        (Era.LEGACY, Era.MODERN, TURNED_AWAY, 2),
        (Era.MODERN, Era.LEGACY, TURNED_AWAY, 2),
        (Era.MODERN, Era.LEGACY, UnsupportedRevision(), 2),
        (Era.LEGACY, Era.LEGACY, TURNED_AWAY, 1),
        (Era.MODERN, Era.MODERN, TURNED_AWAY, 1),
        (Era.LEGACY, Era.MODERN, RpcError(code=-32000, message="no"), 1),
    ],
)
async def test_only_another_era_is_asked_again(first, second, error, asked, autojump_clock):
    """A06: words prove nothing; what may have run is not sent twice to a server of the era that it was of."""
    connections, budgets = [reached(first), reached(second)], []

    async def reach(server, timeout):
        return connections[min(len(budgets), 1)], timeout

    async def ask(connection, budget):
        budgets.append(budget)
        if len(budgets) == 1:
            raise error
        return b"{}"

    if asked == 2:
        assert await ask_over(reach, "s", None, ask) == b"{}"
    else:
        with pytest.raises(type(error)):
            await ask_over(reach, "s", None, ask)

    assert len(budgets) == asked
    assert all(budget is budgets[0] for budget in budgets)


async def test_what_a_person_takes_is_no_part_of_the_second_asking(autojump_clock):
    """S202: the budget of the call goes on where it stood; it is one for both."""
    lefts: list[float] = []

    async def reach(server, timeout):
        lefts.append(timeout)
        return reached(Era.MODERN if len(lefts) == 1 else Era.LEGACY), timeout

    async def ask(connection, budget):
        if len(lefts) == 2:
            return b"{}"
        await trio.sleep(1)
        budget.pause(trio.current_time())
        await trio.sleep(20)
        budget.resume(trio.current_time())
        raise UnsupportedRevision

    await ask_over(reach, "s", 6.0, ask)

    assert lefts == [6.0, 5.0]
