"""What passes between a server and one living client: progress, logs, questions, subscriptions."""

from __future__ import annotations

import pytest
import trio
from plain_client import Client, connected, text_of

from mcp_actors.errors import LocalProtocolError, RpcError, TransportBroken
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.testing.words import META


def asking(outcomes) -> ScriptedServer:
    server = ScriptedServer()

    async def ask(call):
        try:
            answer = await call.ask("roots/list")
        except (RpcError, LocalProtocolError) as exc:
            outcomes.append(type(exc))
            return "refused"
        return str(answer["roots"])

    server.add_tool("ask", ask)
    return server


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("token", ["t", 7, None])
async def test_progress_is_sent_to_those_who_asked(autojump_clock, is_modern, token):
    """Progress carries the caller's token, of its type; without a token there is none."""
    server = ScriptedServer()

    async def work(call):
        await call.progress(0.5)
        await call.progress(1, 2, "half")
        return "done"

    server.add_tool("work", work)
    async with connected(server, is_modern=is_modern) as client:
        meta = {} if token is None else {"progressToken": token}
        await client.ask("tools/call", {"name": "work"}, **meta)
        messages = []
        while not messages or "id" not in messages[-1]:
            messages.append(await client.read())

    reports = [{"progress": 0.5}, {"progress": 1, "total": 2, "message": "half"}] if token is not None else []
    assert [{"progressToken": token, **report} for report in reports] == [note["params"] for note in messages[:-1]]


@pytest.mark.parametrize(("wanted", "expected"), [(None, []), ("debug", ["info", "error"]), ("error", ["error"])])
async def test_modern_log_needs_a_level_on_the_request(autojump_clock, wanted, expected):
    """Without a level on the request a modern server says nothing (spec_client 7.6)."""
    server = ScriptedServer()

    async def talk(call):
        await call.log("info", "a", "logger")
        await call.log("error", {"b": 1})

    server.add_tool("talk", talk)
    async with connected(server, is_modern=True) as client:
        await client.ask("tools/call", {"name": "talk"}, **({META + "logLevel": wanted} if wanted else {}))
        levels = []
        while "id" not in (message := await client.read()):
            levels.append(message["params"]["level"])

    assert expected == levels


async def test_legacy_log_level_lasts(autojump_clock):
    """logging/setLevel holds for the rest of the session."""
    server = ScriptedServer()

    async def talk(call):
        await call.log("info", "a")
        await call.log("error", "b")

    server.add_tool("talk", talk)
    async with connected(server) as client:
        await client.call("logging/setLevel", {"level": "error"})
        await client.ask("tools/call", {"name": "talk"})

        assert (await client.read())["params"] == {"level": "error", "data": "b"}
        assert "result" in await client.read()


async def test_server_asks_in_the_middle_of_a_call(autojump_clock):
    """A question waits for its answer, by id, and the call goes on with it."""
    server = asking([])
    async with connected(server) as client:
        await client.ask("tools/call", {"name": "ask"})
        question = await client.read()
        await client.link.send(b'{"jsonrpc":"2.0","id":"%s","result":{"roots":[1]}}' % question["id"].encode())

        assert text_of((await client.read())["result"]) == "[1]"
    assert server.violations == []


async def test_refused_question_is_an_error_of_the_asker(autojump_clock):
    """A client that answers with an error makes `ask` raise RpcError."""
    outcomes = []
    async with connected(asking(outcomes)) as client:
        await client.ask("tools/call", {"name": "ask"})
        question = await client.read()
        error = b'{"code":-32601,"message":"no"}'
        await client.link.send(b'{"jsonrpc":"2.0","id":"%s","error":%s}' % (question["id"].encode(), error))
        await client.read()

    assert outcomes == [RpcError]


async def test_modern_server_never_asks(autojump_clock):
    """A question in a modern call is a mistake of the test, and no request goes out."""
    outcomes = []
    async with connected(asking(outcomes), is_modern=True) as client:
        assert text_of(await client.call("tools/call", {"name": "ask"})) == "refused"

    assert outcomes == [LocalProtocolError]


async def test_answer_nobody_asked_for_is_noted(autojump_clock):
    """An answer with an unknown id is held against the client."""
    server = ScriptedServer()
    async with connected(server) as client:
        await client.link.send(b'{"jsonrpc":"2.0","id":"x","result":{}}')
        await client.call("ping")

    assert server.violations == ["answered 'x', which was not asked"]


async def test_question_fails_when_the_client_goes(autojump_clock):
    """Nobody waits for a client that is gone."""
    server = ScriptedServer()
    outcomes = []

    async def ask():
        with pytest.raises(TransportBroken):
            await server.ask("roots/list")
        outcomes.append("failed")

    async with trio.open_nursery() as nursery:
        async with connected(server) as client:
            await client.call("ping")
            nursery.start_soon(ask)
            assert (await client.read())["method"] == "roots/list"

    assert outcomes == ["failed"]


async def listen(client: Client, **wanted):
    request_id = await client.ask("subscriptions/listen", {"notifications": wanted})
    acknowledged = await client.read()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {META + "subscriptionId": request_id}
    return request_id, acknowledged["params"]["notifications"]


async def test_subscription_hears_what_it_asked_for(autojump_clock):
    """Modern notifications are opt-in, tagged with the subscription, and the honoured subset is named (7.8)."""
    server = ScriptedServer()
    server.add_tool("t", lambda call: "")
    server.add_resource("a://b", "")

    async with connected(server, is_modern=True) as client:
        assert await server.notify("notifications/tools/list_changed") == 0
        request_id, honoured = await listen(
            client, toolsListChanged=True, promptsListChanged=True, resourceSubscriptions=["a://b"]
        )
        assert honoured == {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}

        assert await server.notify("notifications/resources/list_changed") == 0
        assert await server.notify("notifications/resources/updated", {"uri": "a://c"}) == 0
        assert await server.notify("notifications/resources/updated", {"uri": "a://b"}) == 1
        assert await server.notify("notifications/tools/list_changed") == 1

        tag = {"_meta": {META + "subscriptionId": request_id}}
        assert (await client.read())["params"] == {"uri": "a://b", **tag}
        assert (await client.read())["params"] == tag


async def test_subscription_ends_by_either_side(autojump_clock):
    """A cancel ends a subscription silently; the server ends one with a result."""
    server = ScriptedServer()
    server.add_tool("t", lambda call: "")

    async with connected(server, is_modern=True) as client:
        first, _ = await listen(client, toolsListChanged=True)
        second, _ = await listen(client, toolsListChanged=True)
        await client.write("notifications/cancelled", {"requestId": first})
        await client.call("tools/list")

        assert await server.notify("notifications/tools/list_changed") == 1
        await client.read()
        await server.end_listens()

        ended = await client.read()
        assert (second, "complete") == (ended["id"], ended["result"]["resultType"])
        assert await server.notify("notifications/tools/list_changed") == 0
