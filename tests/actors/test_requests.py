"""One request is seen through: kept answers, and repetitions that do no harm."""

from __future__ import annotations

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.errors import RpcError, TransportBroken
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

# ── kept answers ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deadline(1000)
async def test_a_fresh_answer_is_kept_and_a_notification_wipes_it_out(autojump_clock: object) -> None:
    """F05, F06: ttlMs is honoured for the same params only; resources/updated makes it stale at once."""
    server = ScriptedServer(revisions=MODERN_REVISIONS, ttl_ms=60_000)
    server.add_resource("note://one", "first")
    server.add_resource("note://two", "second")

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        async with lib.watch_resource("note://one") as changes:
            for uri in ("note://one", "note://one", "note://two"):
                await lib.read_resource(uri)
            kept = len(server.seen("resources/read"))
            await server.notify("notifications/resources/updated", {"uri": "note://one"})
            await anext(changes)
            await lib.read_resource("note://one")
            renewed = len(server.seen("resources/read"))
            await trio.sleep(61)
            await lib.read_resource("note://two")
            expired = len(server.seen("resources/read"))

    assert (kept, renewed, expired) == (2, 3, 4)


async def test_a_refused_cursor_drops_the_pages(autojump_clock: object) -> None:
    """F05, spec_client 7.5: a kept page whose cursor was refused is fetched anew, not served till its time is over."""
    server = ScriptedServer(revisions=MODERN_REVISIONS)
    server.add_resource("note://one", "first")
    method = "resources/templates/list"
    page = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public", "resourceTemplates": []}
    server.answer_with(method, {**page, "nextCursor": "gone"}, times=1)
    server.refuse(method, -32602, "unknown cursor", times=1)
    server.answer_with(method, page)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        with pytest.raises(RpcError, match="unknown cursor"):
            await lib.templates()
        again = await lib.templates()

    assert again == ()
    assert [message.get("params", {}).get("cursor") for message in server.seen(method)] == [None, "gone", None]


async def test_without_a_hint_nothing_is_kept(autojump_clock: object) -> None:
    """F05: an absent ttl is none."""
    server = ScriptedServer(revisions=MODERN_REVISIONS)
    server.add_resource("note://one", "first")

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        for _ in range(2):
            await runtime.server("lib").read_resource("note://one")

    assert len(server.seen("resources/read")) == 2


# ── repetitions ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("may_repeat", [True, False])
async def test_a_call_that_a_dead_wire_lost_is_not_made_again(may_repeat: bool, autojump_clock: object) -> None:
    """Fault 17: where the connection itself is gone the caller is told, whatever it allowed."""
    server = echo_server()
    server.die_on("tools/call", times=1)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        with pytest.raises(TransportBroken):
            await runtime.call_tool("one.echo", may_repeat=may_repeat)

    assert len(server.seen("tools/call")) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b'{"jsonrpc":"2.0","id":0,"result":{}}', "; meanwhile unknown-id: nobody waits for the id 0"),
        (b'{"jsonrpc":"2.0","id":"x","result":{}}', "; meanwhile unknown-id: nobody waits for the id 'x'"),
        (b'{"jsonrpc":"2.0","method":"notifications/x"}', "; meanwhile unknown-notification: notifications/x"),
        (b'{"jsonrpc":"2.0","method":"ping","id":7}', ""),
    ],
)
async def test_a_silence_tells_what_came_instead(answer: bytes, told: str, autojump_clock: object) -> None:
    """Fault 72: answers with ids that nobody sent are told with the clock that ran out, earlier ones are not."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.answer_raw("tools/call", answer, times=1)
    server.silence("tools/call")

    async with open_runtime([spec("srv", server)]) as runtime:
        await runtime.wait_ready()
        errors = []
        for _ in range(2):
            with pytest.raises(trio.TooSlowError) as caught:
                await runtime.call_tool("srv.echo", {"text": "hi"}, timeout=5)
            errors.append(str(caught.value))

    assert errors == [f"the wall clock ran out after 5 s{told}", "the wall clock ran out after 5 s"]
