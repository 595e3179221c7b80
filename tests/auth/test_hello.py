"""The harmless request by which a server tells what it demands."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.auth.hello import HELLO_SECONDS, ask_demand
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import ConnectFailed, RemoteProtocolError

TARGET = RemoteTarget("https://mcp.example.com/mcp", headers={"X-Team": "t"})


@pytest.mark.parametrize(
    ("status", "scope"), [(200, None), (404, None), (500, None), (401, ("read",)), (403, ("read",))]
)
async def test_a_refusal_is_a_demand(status, scope):
    """Only 401 and 403 demand something; the entry's own headers go along."""
    sent = []

    async def exchange(method, url, headers, body, *, address, max_bytes):
        sent.append((method, url, dict(headers)["X-Team"]))
        return status, {"www-authenticate": 'Bearer scope="read"'}, b""

    demand = await ask_demand(exchange, TARGET)

    assert (None if demand is None else demand.scope) == scope
    assert sent == [("POST", "https://mcp.example.com/mcp", "t")]


async def test_an_answer_that_is_no_http_demands_nothing():
    """What breaks the rules here is found when the server is used."""

    async def exchange(*_, **__):
        raise RemoteProtocolError(reason="too large")

    assert await ask_demand(exchange, TARGET) is None


async def test_a_mute_server_is_not_waited_for(autojump_clock):
    """After the bound it counts as out of order."""

    async def exchange(*_, **__):
        await trio.sleep_forever()

    start = trio.current_time()
    with pytest.raises(ConnectFailed, match="in time"):
        await ask_demand(exchange, TARGET)

    assert trio.current_time() - start == HELLO_SECONDS
