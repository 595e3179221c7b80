"""What servers ask is answered by the host's handlers, once each, without holding up the reader."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from scripted_fleet import echo_server, spec

from mcp_actors.actors.hosting import Host, ServerRequest, WiredHost, wire_host
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


async def test_a_slow_handler_holds_up_nothing(autojump_clock: object) -> None:
    """Fault 76, A16: while a person thinks, a hundred calls and a ping are served."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    answers: list[object] = []

    async def slow(request: ServerRequest) -> dict[str, object]:
        await trio.sleep(60 - 1)
        return {"roots": []}

    async with open_runtime([spec("one", server)], host=Host({"roots/list": slow})) as runtime:
        await runtime.wait_ready()

        async def ask() -> None:
            answers.append(await server.ask("roots/list"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            began = trio.current_time()
            for number in range(100):
                await runtime.call_tool("one.echo", {"text": str(number)})
            await server.ask("ping")
            took = trio.current_time() - began

    assert took < 1
    assert answers == [{"roots": []}]


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [(RpcError(code=-1, message="user said no"), -1, "user said no"), (ValueError("secret"), -32603, "could not")],
)
async def test_a_handler_that_raises_gives_an_error_answer(
    failure: Exception, code: int, message: str, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 76: the answer says no more than it must; the connection goes on."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async def fail(request: ServerRequest) -> dict[str, object]:
        raise failure

    async with open_runtime([spec("one", server)], host=Host({"roots/list": fail})) as runtime:
        await runtime.wait_ready()
        with pytest.raises(RpcError) as refused:
            await server.ask("roots/list")
        after = await runtime.call_tool("one.echo", {"text": "on"})

    assert refused.value.code == code
    assert message in refused.value.message
    assert "secret" not in refused.value.message
    assert after.text == "on"


async def test_a_withdrawn_request_ends_its_handler_and_gets_no_answer(autojump_clock: object) -> None:
    """Fault 76: the server's cancellation ends the handler."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    ended = trio.Event()

    async def wait(request: ServerRequest) -> dict[str, object]:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        return {}

    async with open_runtime([spec("one", server)], host=Host({"roots/list": wait})) as runtime:
        await runtime.wait_ready()
        before = len(server.received)
        await server.send_raw(b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}')
        await trio.testing.wait_all_tasks_blocked()
        await server.send_raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}')
        await ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        answers = [message for message in server.received[before:] if message.get("id") == "q"]

    assert answers == []


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
