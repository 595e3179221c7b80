"""ScriptedServer serves what was declared, over any link, to any number of clients."""

from __future__ import annotations

import pytest
import trio
from plain_client import connected
from trio.testing import wait_all_tasks_blocked

from mcp_actors.errors import RpcError, TransportBroken
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.testing.words import META


async def slow(call):
    await trio.sleep(5)
    return "slept"


async def sleep_forever(call):
    await trio.sleep_forever()


async def raise_value_error(call):
    raise ValueError("bad luck")


def raise_rpc_error(call):
    raise RpcError(code=-1, message="no", data={"why": 1})


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (lambda call: call["text"], {"content": [{"type": "text", "text": "hi"}]}),
        (lambda call: 7, {"content": [{"type": "text", "text": "7"}]}),
        (lambda call: [{"type": "x", "y": 1}], {"content": [{"type": "x", "y": 1}]}),
        (lambda call: {"content": [], "structuredContent": 5}, {"content": [], "structuredContent": 5}),
        (raise_value_error, {"content": [{"type": "text", "text": "ValueError: bad luck"}], "isError": True}),
        (lambda call: call["none"], {"content": [{"type": "text", "text": "KeyError: 'none'"}], "isError": True}),
        (slow, {"content": [{"type": "text", "text": "slept"}]}),
    ],
)
async def test_tool_value_becomes_a_result(autojump_clock, is_modern, handler, expected):
    """Text, a content list and a whole result are taken; what a handler raises is a failed result, not an error."""
    server = ScriptedServer()
    server.add_tool("t", handler)
    dressed = {"resultType": "complete", "_meta": {META + "serverInfo": server.info}} if is_modern else {}

    async with connected(server, is_modern=is_modern) as client:
        result = await client.call("tools/call", {"name": "t", "arguments": {"text": "hi"}})

    assert {**dressed, **expected} == result
    assert server.violations == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "t"}, -1),
        ({"name": "none"}, -32602),
        ({"name": ["t"]}, -32602),
        ({}, -32602),
        ({"name": "t", "arguments": [1]}, -32602),
    ],
)
async def test_call_that_cannot_be_made_is_an_error(autojump_clock, params, code):
    """RpcError and unknown names are JSON-RPC errors."""
    server = ScriptedServer()
    server.add_tool("t", raise_rpc_error)

    async with connected(server) as client:
        error = await client.call("tools/call", params)

    assert code == error["code"]


async def test_resources_prompts_and_completions_are_served(autojump_clock):
    """Each kind answers with the shape that its method has."""
    server = ScriptedServer()
    server.add_resource("a://text", "words", mimeType="text/plain")
    server.add_resource("a://bytes", b"\x00\x01")
    server.add_resource("a://made", lambda call: "of " + call.params["uri"])
    server.add_template("a://{x}")
    server.add_prompt("p", lambda call: f"say {call['what']}", description="d")
    server.add_completion(lambda call: ["one", "two"])

    async with connected(server) as client:
        listed = await client.call("resources/list")
        assert listed["resources"][:1] == [{"uri": "a://text", "name": "a://text", "mimeType": "text/plain"}]
        assert await client.call("resources/templates/list") == {
            "resourceTemplates": [{"uriTemplate": "a://{x}", "name": "a://{x}"}]
        }
        for uri, content in {
            "text": {"text": "words"},
            "bytes": {"blob": "AAE="},
            "made": {"text": "of a://made"},
        }.items():
            read = await client.call("resources/read", {"uri": f"a://{uri}"})
            assert {"contents": [{"uri": f"a://{uri}", **content}]} == read
        prompt = await client.call("prompts/get", {"name": "p", "arguments": {"what": "hi"}})
        assert prompt == {"messages": [{"role": "user", "content": {"type": "text", "text": "say hi"}}]}
        assert await client.call("completion/complete", {}) == {"completion": {"values": ["one", "two"]}}
    assert server.violations == []


@pytest.mark.parametrize(("is_modern", "code"), [(False, -32002), (True, -32602)])
async def test_missing_resource_has_the_code_of_its_era(autojump_clock, is_modern, code):
    """An unknown resource is -32002 in the legacy era and -32602 in the modern one (C-table of spec_client 8.2)."""
    server = ScriptedServer()
    server.add_resource("a://b", "")

    async with connected(server, is_modern=is_modern) as client:
        assert (await client.call("resources/read", {"uri": "a://none"}))["code"] == code


async def test_failing_reader_is_an_internal_error(autojump_clock):
    """What a resource's handler raises is -32603: only tools have failed results."""
    server = ScriptedServer()
    server.add_resource("a://b", raise_value_error)

    async with connected(server) as client:
        assert (await client.call("resources/read", {"uri": "a://b"}))["code"] == -32603


async def test_unencodable_result_is_an_internal_error(autojump_clock):
    """A handler that returns what is no JSON does not take the server down."""
    server = ScriptedServer()
    server.add_tool("t", lambda call: {"content": object()})

    async with connected(server) as client:
        assert (await client.call("tools/call", {"name": "t"}))["code"] == -32603
        assert await client.call("ping") == {}


async def test_calls_run_side_by_side(autojump_clock):
    """A quick call overtakes a slow one, and ten slow ones take the time of one."""
    server = ScriptedServer()
    server.add_tool("slow", slow)
    server.add_tool("quick", lambda call: "quick")

    async with connected(server) as client:
        start = trio.current_time()
        slow_ids = [await client.ask("tools/call", {"name": "slow"}) for _ in range(10)]
        quick_id = await client.ask("tools/call", {"name": "quick"})
        answered = [(await client.read())["id"] for _ in range(11)]

    assert answered[0] == quick_id
    assert set(answered[1:]) == set(slow_ids)
    assert trio.current_time() - start == 5


async def test_cancelled_request_is_stopped_and_not_answered(autojump_clock):
    """A cancel stops the handler; neither it nor a late or unknown one is answered."""
    server = ScriptedServer()
    ends = []

    async def wait(call):
        try:
            await trio.sleep_forever()
        finally:
            ends.append(call.request_id)

    server.add_tool("wait", wait)
    async with connected(server) as client:
        request_id = await client.ask("tools/call", {"name": "wait"})
        await server.wait_seen("tools/call")
        await wait_all_tasks_blocked()
        for cancelled in (request_id, request_id, 999):
            await client.write("notifications/cancelled", {"requestId": cancelled})

        assert await client.call("ping") == {}

    assert [request_id] == ends


@pytest.mark.parametrize("has_closed", [True, False])
async def test_leaving_stops_everything(autojump_clock, has_closed):
    """When the client goes, or a script says die, handlers are cancelled and `serve` returns."""
    server = ScriptedServer()
    server.add_tool("wait", sleep_forever)
    server.die_on("ping", status=4)

    async with connected(server) as client:
        await client.ask("tools/call", {"name": "wait"})
        await server.wait_seen("tools/call")
        if has_closed:
            client.link.close()
        else:
            await client.ask("ping")
            with pytest.raises(trio.EndOfChannel):
                await client.read()

    assert server.clients == []
    assert (None if has_closed else 4) == server.died_with


async def test_hang_up_ends_every_link(autojump_clock):
    """`hang_up` ends the wire of each client that is there."""
    server = ScriptedServer()

    async with connected(server) as one, connected(server) as two:
        assert len(server.clients) == 2

        server.hang_up()

        for client in (one, two):
            with pytest.raises(trio.EndOfChannel):
                await client.read()


async def test_tools_come_and_go(autojump_clock):
    """A tool that is added or removed is seen in the next list, and clients can be told."""
    server = ScriptedServer()

    @server.tool
    def first(call):
        """Does nothing."""

    async with connected(server) as client:
        assert (await client.call("tools/list"))["tools"] == [
            {"name": "first", "inputSchema": {"type": "object"}, "description": "Does nothing."}
        ]
        server.add_tool("second", first, title="T")
        server.remove_tool("first")

        assert await server.notify("notifications/tools/list_changed") == 1
        assert (await client.read())["method"] == "notifications/tools/list_changed"
        assert (await client.call("tools/list"))["tools"] == [
            {"name": "second", "inputSchema": {"type": "object"}, "title": "T"}
        ]


async def test_server_without_tools_has_no_tools_method(autojump_clock):
    """What was not declared is -32601, and asking for it is held against the client (fault 69)."""
    server = ScriptedServer()

    async with connected(server) as client:
        assert (await client.call("tools/list"))["code"] == -32601

    assert server.violations == ["sent tools/list to a server without tools"]


async def test_asking_without_a_client_fails():
    """`ask` says that there is nobody."""
    with pytest.raises(TransportBroken):
        await ScriptedServer().ask("ping")


async def test_seen_messages_can_be_waited_for(autojump_clock):
    """`wait_seen` returns when enough messages of a method have come."""
    server = ScriptedServer()

    async with connected(server) as client:
        with trio.move_on_after(1) as scope:
            await server.wait_seen("ping", 2)
        assert scope.cancelled_caught

        await client.ask("ping")
        await client.ask("ping")

        assert [message["id"] for message in await server.wait_seen("ping", 2)] == [2, 3]


async def test_received_messages_are_bounded(monkeypatch):
    """A long run keeps the newer messages only."""
    monkeypatch.setattr("mcp_actors.testing.scripted.MAX_RECEIVED", 10)
    server = ScriptedServer()

    for number in range(25):
        server.record({"id": number})

    assert len(server.received) <= 10
    assert server.received[-1] == {"id": 24}


async def test_raw_bytes_reach_every_client(autojump_clock):
    """`send_raw` writes what no honest server would."""
    server = ScriptedServer()

    async with connected(server) as client:
        await server.send_raw(b"not json")

        assert await client.link.receive() == b"not json"
