"""Servers whose era changes while the fleet lives: each is found anew (A06, spec_client 3.3)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import echo_server, spec

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.specs import RemoteTarget, RestartPolicy, RestartType, ServerSpec
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.http_server import open_http_server
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS

if TYPE_CHECKING:
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.testing.scripted import ScriptedServer

BOTH = MODERN_REVISIONS + LEGACY_REVISIONS
# What it spoke, what it speaks now, and the era that is found then.
CHANGES = {
    "upgraded": (LEGACY_REVISIONS, MODERN_REVISIONS, "modern"),
    "downgraded": (MODERN_REVISIONS, LEGACY_REVISIONS, "legacy"),
    "both to modern": (BOTH, MODERN_REVISIONS, "modern"),
    "both to legacy": (BOTH, LEGACY_REVISIONS, "legacy"),
}
POLICY = RestartPolicy(backoff_first=0.0, max_tries=2)


async def _restart(runtime: Runtime, _server: ScriptedServer) -> None:
    await runtime.restart("one")


async def _switch(runtime: Runtime, _server: ScriptedServer) -> None:
    await runtime.disable("one")
    await runtime.enable("one")


async def _kill(_runtime: Runtime, server: ScriptedServer) -> None:
    for client in list(server.clients):
        client.hang_up()


async def _leave(_runtime: Runtime, _server: ScriptedServer) -> None:
    pass


WAYS = {"restart": _restart, "disable and enable": _switch, "kill": _kill, "call": _leave}
# A process is what it is until it ends; without sessions there is nobody to kill.
CASES = [
    (wire, change, way)
    for wire in ("stream", "http")
    for change in CHANGES
    for way in WAYS
    if (wire, way) not in {("stream", "call"), ("http", "kill")}
]


def _specced(server: ScriptedServer, url: str | None, **changes: object) -> ServerSpec:
    known = spec("one", server) if url is None else ServerSpec("one", RemoteTarget(url))
    return evolve(known, restart_type=RestartType.PERMANENT, restart_policy=POLICY, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("wire", "change", "way"), CASES, ids=[", ".join(case) for case in CASES])
async def test_a_changed_era_is_found(wire: str, change: str, way: str) -> None:
    """After whatever made us notice, the next call is answered in the era that the server speaks by then."""
    before, after, era = CHANGES[change]
    server = echo_server(revisions=before)

    with trio.fail_after(30):
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(open_http_server(server)) if wire == "http" else None
            runtime = await stack.enter_async_context(open_runtime([_specced(server, url)]))
            await runtime.wait_ready()
            await runtime.call_tool("one.echo", {"text": "before"})
            server.revisions = after
            await WAYS[way](runtime, server)
            if way == "kill":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_await_generation, runtime, 2)
            result = await runtime.call_tool("one.echo", {"text": "after"})
            status = runtime.status()["one"]

    assert (result.text, status.state, status.era) == ("after", ServerState.CONNECTED, era)


async def _await_generation(runtime: Runtime, number: int) -> None:
    while runtime.status()["one"].generation < number:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("way", ["restart", "disable and enable"])
@pytest.mark.parametrize("wire", ["stream", "http"])
async def test_a_pinned_era_is_never_left(wire: str, way: str) -> None:
    """A server that leaves the era that its entry pins fails, and says that the entry is to be corrected."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    with trio.fail_after(30):
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(open_http_server(server)) if wire == "http" else None
            runtime = await stack.enter_async_context(open_runtime([_specced(server, url, era="legacy")]))
            await runtime.wait_ready()
            server.revisions = MODERN_REVISIONS
            await WAYS[way](runtime, server)
            status = (await runtime.wait_ready())["one"]

    assert (status.state, status.remedy) == (ServerState.FAILED, "correct its entry")
    assert not [message for message in server.received if message.get("method") == "server/discover"]
