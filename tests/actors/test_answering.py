"""What servers ask is answered by the host's handlers, once each, without holding up the reader."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from scripted_fleet import echo_server, spec

from mcp_actors.actors.host import Host, ServerRequest
from mcp_actors.config.specs import InProcessTarget, ServerSpec
from mcp_actors.errors import RpcError
from mcp_actors.protocol.jsonrpc import decode_object, encode
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS

WELCOME = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "deaf", "version": "1"}}


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


@pytest.mark.parametrize("is_at_once", [False, True])
async def test_a_withdrawn_request_ends_its_handler_and_gets_no_answer(
    is_at_once: bool, autojump_clock: object
) -> None:
    """Fault 76: the server's cancellation ends the handler, also one that had not begun."""
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
        asked = b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}'
        withdrawn = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}'
        for message in [b"[%b,%b]" % (asked, withdrawn)] if is_at_once else [asked, withdrawn]:
            await server.send_raw(message)
            await trio.testing.wait_all_tasks_blocked()
        await ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        answers = [message for message in server.received[before:] if message.get("id") == "q"]

    assert answers == []


@pytest.mark.parametrize(("size", "is_cut"), [(100, False), (1_000_000, True)])
async def test_a_server_that_does_not_read_what_it_asks_for_is_cut(
    size: int, is_cut: bool, autojump_clock: object
) -> None:
    """Invariant 5: answers wait within a bound of bytes, however few they are; other servers go on."""
    asked = trio.Event()

    async def serve(link) -> None:
        while True:
            message = decode_object(await link.receive())
            if message["method"] == "notifications/initialized":
                break
            refused, welcome = {"error": {"code": -32601, "message": "no"}}, {"result": WELCOME}
            outcome = welcome if message["method"] == "initialize" else refused
            await link.send(encode({"jsonrpc": "2.0", "id": message["id"], **outcome}))
        try:
            for number in range(200):
                await link.send(encode({"jsonrpc": "2.0", "id": number, "method": "roots/list"}))
        finally:  # or it is cut
            asked.set()
        await trio.sleep_forever()

    async def answer(request: ServerRequest) -> dict[str, object]:
        return {"roots": [], "_meta": {"x": "x" * size}}

    specs = [ServerSpec("deaf", InProcessTarget(serve)), spec("two", echo_server())]
    async with open_runtime(specs, host=Host({"roots/list": answer})) as runtime:
        await asked.wait()
        await trio.sleep(1)  # on the virtual clock: it is judged and told
        status = runtime.status()["deaf"]
        echoed = await runtime.call_tool("two.echo", {"text": "on"})

    assert ("does not read our answers" in (status.error or "")) is is_cut
    assert echoed.text == "on"
