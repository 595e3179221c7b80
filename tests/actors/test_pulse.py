"""A connection that died unnoticed is found out by pings and strikes."""

from __future__ import annotations

import pytest
import trio
from scripted_fleet import PERMANENT, echo_server, spec

from mcp_actors.actors.lifecycle import Phase
from mcp_actors.actors.pulse import Strikes
from mcp_actors.errors import ConnectFailed, RemoteProtocolError, RpcError, TransportBroken
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS
from mcp_actors.transports.memory import MemoryTransport

GOOD, BAD = None, TransportBroken(reason="reset")
ROWS = [
    ([BAD, BAD, BAD], True),
    ([BAD, BAD, GOOD, BAD, BAD], False),
    ([BAD, BAD, RpcError(code=-1, message="no"), BAD], False),
    ([BAD, RemoteProtocolError(reason="odd"), BAD, ConnectFailed(reason="refused")], True),
]


@pytest.mark.parametrize(("outcomes", "is_out"), ROWS)
def test_three_strikes_without_an_answer_are_out(outcomes: list[BaseException | None], is_out: bool) -> None:
    """S121, S122: any answer wipes strikes out; what is no terminal error leaves them as they are."""
    strikes = Strikes()

    assert [strikes.note(outcome) for outcome in outcomes][-1] is is_out


def like(kind):
    def build(one):
        wire = MemoryTransport(one.target.serve)
        wire.kind = kind
        return wire

    return build


@pytest.mark.parametrize("kind", ["sse", "ws"])
@pytest.mark.deadline(1000)
async def test_a_connection_that_answers_no_ping_is_replaced(kind: str, autojump_clock: object) -> None:
    """S123, S127: after three unanswered pings the pending call fails and the connection is made anew."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.silence("ping", times=3)

    async with open_runtime([spec("one", server, **PERMANENT)], transports=like(kind)) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with pytest.raises(TransportBroken, match="no answer to a ping"):
            await runtime.call_tool("one.slow", {"seconds": 10_000})
        failed_after = trio.current_time() - began
        result = await runtime.call_tool("one.echo", {"text": "anew"})
        status = runtime.status()["one"]

    assert len(server.seen("ping")) == 3
    assert failed_after == pytest.approx(30 + 10 + 30 + 10 + 30 + 10, abs=0.1)
    assert (result.text, status.generation, status.phase) == ("anew", 2, Phase.READY)


@pytest.mark.deadline(1000)
async def test_nothing_is_pinged_while_it_is_heard(autojump_clock: object) -> None:
    """A server that answers calls needs no ping."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async with open_runtime([spec("one", server)], transports=like("sse")) as runtime:
        await runtime.wait_ready()
        for _ in range(10):
            await trio.sleep(20)
            await runtime.call_tool("one.echo")
        busy = len(server.seen("ping"))
        await trio.sleep(65)
        quiet = len(server.seen("ping")) - busy

    assert (busy, quiet) == (0, 2)


@pytest.mark.deadline(1000)
async def test_a_modern_server_is_never_pinged(autojump_clock: object) -> None:
    """F07: ping does not exist in the modern era."""
    server = echo_server(revisions=MODERN_REVISIONS)

    async with open_runtime([spec("one", server)], transports=like("sse")) as runtime:
        await runtime.wait_ready()
        await trio.sleep(500)

    assert server.seen("ping") == []
    assert server.violations == []


@pytest.mark.deadline(1000)
async def test_a_process_is_never_pinged(autojump_clock: object) -> None:
    """S127: what has an end that is seen, or a clock for each call, needs no ping."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async with open_runtime([spec("one", server)], transports=like("stdio")) as runtime:
        await runtime.wait_ready()
        await trio.sleep(500)

    assert server.seen("ping") == []
