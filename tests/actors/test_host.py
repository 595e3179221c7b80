"""What a program offers to servers is declared to them, where a handler exists and nowhere else."""

from __future__ import annotations

import pytest
from scripted_fleet import echo_server, spec

from mcp_actors.actors.host import Host, ServerRequest, WiredHost, wire_host
from mcp_actors.errors import LocalProtocolError, RpcError
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS


async def roots(request: ServerRequest) -> dict[str, object]:
    return {"roots": [{"uri": "file:///work", "name": request.server}]}


def declared(server) -> object:
    return server.seen("initialize")[0]["params"]["capabilities"]


async def test_capabilities_follow_from_handlers(autojump_clock: object) -> None:
    """S110, S133: what no handler exists for is not advertised, and asked all the same it is refused."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    host = Host({"roots/list": roots}, {"roots": {"listChanged": True}})

    async with open_runtime([spec("one", server)], host=host) as runtime:
        await runtime.wait_ready()
        answer = await server.ask("roots/list")
        with pytest.raises(RpcError) as refused:
            await server.ask("sampling/createMessage")

    assert declared(server) == {"roots": {"listChanged": True}}
    assert answer == {"roots": [{"uri": "file:///work", "name": "one"}]}
    assert refused.value.code == -32601


async def test_nothing_is_offered_by_default(autojump_clock: object) -> None:
    """Without a host no capability is declared; ping is answered all the same (fault 75)."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        pong = await server.ask("ping")

    assert (declared(server), pong) == ({}, {})


def test_a_handler_that_no_server_can_ask_is_refused() -> None:
    """S133: a method that does not exist, or is misspelt, would never be declared."""
    with pytest.raises(LocalProtocolError, match="elicitation/creat;"):
        Host({"elicitation/creat": roots})


def test_what_one_server_is_told_of_stands_beside_what_all_are() -> None:
    """S281: extensions of one server join those of the host; the others hear nothing of them."""

    def extensions(server: str) -> dict[str, dict[str, object]]:
        return {"com.example/word": {}} if server == "one" else {}

    tasks = {"io.modelcontextprotocol/tasks": {}}
    host = wire_host(Host(wants_tasks=True), extensions)

    assert host.capabilities_for("one") == {"extensions": {**tasks, "com.example/word": {}}}
    assert host.capabilities_for("two") == {"extensions": tasks}
    assert wire_host(None, extensions).capabilities_for("one") == {"extensions": {"com.example/word": {}}}
    assert wire_host(None, extensions).capabilities_for("two") == {}


def test_what_is_wired_to_a_host_stays() -> None:
    """A program's host gets what the actors need beside it; one that came wired keeps what it came with."""
    plain = wire_host(Host({"roots/list": roots}, {"roots": {"listChanged": True}}), lambda _: {})
    wired = WiredHost({"roots/list": roots}, page_done=print)

    assert (plain.capabilities_for("one"), plain.page_done) == ({"roots": {"listChanged": True}}, None)
    assert wire_host(wired, plain.extensions) == WiredHost(wired.handlers, page_done=print, extensions=plain.extensions)
