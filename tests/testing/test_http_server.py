"""The HTTP face serves both eras as their texts say, on one endpoint or on many."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from contextlib import asynccontextmanager

import pytest
import trio
from plain_http import HELLO, POSTING, events_of, greet, modern, open_wire, request

from mcp_actors.testing.http_server import HttpAnswer, HttpOptions, open_http_server
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from mcp_actors.testing.synthetic import synthetic_server
from mcp_actors.testing.words import META

ECHO = {"name": "echo", "arguments": {"text": "hi"}}
PROGRESS = {"name": "progress", "arguments": {"steps": 2, "seconds": 0}}


@asynccontextmanager
async def served(server=None, **options):
    with trio.fail_after(10):
        async with open_http_server(server or synthetic_server(), options=HttpOptions(**options)) as url:
            async with open_wire(url) as wire:
                yield wire


# ── format ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/mcp", {**POSTING, "accept": "application/json"}, 406),
        ("POST", "/mcp", {**POSTING, "accept": "text/event-stream"}, 406),
        ("POST", "/mcp", {**POSTING, "accept": None}, 406),
        ("POST", "/mcp", {**POSTING, "content-type": "text/plain"}, 415),
        ("POST", "/mcp", POSTING, 400),
        ("POST", "/other", POSTING, 404),
        ("PUT", "/mcp", {}, 405),
        ("GET", "/mcp", {"accept": "text/event-stream"}, 400),
        ("GET", "/mcp", {"accept": "text/event-stream", "mcp_session_id": "x"}, 404),
        ("DELETE", "/mcp", {}, 400),
        ("DELETE", "/mcp", {"mcp_session_id": "x"}, 404),
    ],
)
async def test_exchange_of_wrong_form_has_its_status(method, path, headers, status):
    """Method, path, Accept, Content-Type and session id are checked before anything else (spec_client 5.1)."""
    async with served() as wire:
        assert status == (await wire.ask(method, path, b"{}" if method == "POST" else b"", **headers)).status


# ── modern ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answers", "is_stream"), [("json", (False, False)), ("auto", (False, True)), ("sse", (True, True))]
)
async def test_modern_answers_come_as_ordered(answers, is_stream):
    """An answer is JSON or an event stream, by option; by itself it is a stream when something goes before it."""
    async with served(answers=answers) as wire:
        for is_event, params in zip(is_stream, (ECHO, PROGRESS), strict=True):
            message, headers = modern("tools/call", params, 5, progressToken="p")
            answer = await wire.post(message, **headers)

            assert answer.status == 200
            last = answer.events[-1] if is_event else answer.json
            assert (last["id"], last["result"]["resultType"]) == (5, "complete")
            reported = [event["params"]["progress"] for event in answer.events[:-1]] if is_event else []
            assert reported == ([1, 2] if is_event and params is PROGRESS else [])


@pytest.mark.parametrize(
    ("method", "changes", "status", "code"),
    [
        ("tools/list", {}, 200, None),
        ("tools/list", {"mcp_method": "tools/call"}, 400, -32020),
        ("tools/list", {"mcp_method": None}, 400, -32020),
        ("tools/list", {"mcp_protocol_version": "2025-11-25"}, 400, -32020),
        ("tools/list", {"mcp_protocol_version": None}, 400, -32020),
        ("ping", {}, 404, -32601),
        ("made/up", {}, 404, -32601),
        ("resources/list", {}, 404, -32601),
    ],
)
async def test_modern_refusals_have_their_status(method, changes, status, code):
    """Header mismatches are 400, unknown methods 404, and the error keeps the id (spec_client 5.2)."""
    async with served() as wire:
        message, headers = modern(method, None, "an id")
        answer = await wire.post(message, **{**headers, **changes})

    assert (status, code, "an id") == (answer.status, answer.json.get("error", {}).get("code"), answer.json["id"])


async def test_modern_revision_and_envelope_are_checked_first():
    """A missing envelope is -32602 and a wrong revision -32022, both 400, whatever the headers say."""
    async with served(synthetic_server(era="modern")) as wire:
        bare = await wire.post(request("tools/list"))
        message, headers = modern("tools/list", **{META + "protocolVersion": "2030-01-01"})
        unknown = await wire.post(message, **headers)

    assert (bare.status, bare.json["error"]["code"]) == (400, -32602)
    assert (
        unknown.status,
        unknown.json["error"]["code"],
        unknown.json["error"]["data"]["supported"],
    ) == (400, -32022, ["2026-07-28"])


async def test_modern_server_has_no_sessions_and_no_notifications():
    """GET and DELETE are 405, no session id is given, and a posted notification is held against the client."""
    server = synthetic_server(era="modern")
    async with served(server) as wire:
        message, headers = modern("tools/list")
        assert "mcp-session-id" not in (await wire.post(message, **headers)).headers
        assert server.violations == []
        for method in ("GET", "DELETE"):
            assert (await wire.ask(method, accept="text/event-stream", mcp_session_id="x")).status == 405
        answer = await wire.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    assert (answer.status, len(server.violations)) == (202, 1)


async def test_modern_client_that_hangs_up_cancels_its_call():
    """A lost connection is a cancel (spec_client 5.2)."""
    ended = trio.Event()

    async def wait(call):
        try:
            await call.progress(1)
            await trio.sleep_forever()
        finally:
            ended.set()

    server = ScriptedServer()
    server.add_tool("wait", wait)
    async with served(server) as wire:
        message, headers = modern("tools/call", {"name": "wait"}, progressToken=1)
        await wire.send_message(message, **headers)
        await wire.head()
        assert json.loads((await wire.part()).removeprefix(b"data: "))["params"]["progress"] == 1

        await wire.stream.aclose()

        await ended.wait()
        while server.clients:  # the rest of the exchange unwinds
            await trio.lowlevel.checkpoint()


async def test_modern_subscription_is_a_stream_of_its_own():
    """A listen is acknowledged, hears what it asked for, is kept alive, and ends with a result."""
    server = synthetic_server()
    async with served(server, keep_alive=0.01) as wire:
        message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l")
        await wire.send_message(message, **headers)
        await wire.head()
        body = await wire.part()
        while b": keep-alive" not in body:
            body += await wire.part()
        assert await server.notify("notifications/tools/list_changed") == 1
        await server.end_listens()
        while (part := await wire.part()) is not None:
            body += part

    events = events_of(body)
    assert [event.get("method") for event in events] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        None,
    ]
    assert events[-1]["id"] == "l"
    assert server.clients == []


# ── legacy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_legacy_session_lives_from_initialize_to_delete():
    """A session id is given, wanted on every later message, and gone after DELETE (spec_client 5.3)."""
    server = synthetic_server()
    async with served(server) as wire:
        session = await greet(wire)
        answer = await wire.post(request("tools/call", ECHO), **session)
        assert (answer.status, answer.json["result"]["content"][0]["text"]) == (200, "hi")
        assert server.violations == []

        without = await wire.post(request("tools/list"), mcp_protocol_version="2025-11-25")
        assert (without.status, without.json["error"]["code"]) == (400, -32000)
        unknown = await wire.post(request("tools/list", None, 9), mcp_session_id="x")
        assert (unknown.status, unknown.json["error"]["code"], unknown.json["id"]) == (404, -32001, 9)

        assert (await wire.ask("DELETE", **session)).status == 200
        gone = await wire.post(request("tools/list", None, 3), **session)
        assert (gone.status, gone.json["error"]["code"]) == (404, -32001)
        assert (await wire.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)).status == 404

    assert server.clients == []


async def test_legacy_server_answers_the_probe_with_400():
    """A modern probe of a legacy endpoint is a 400 that is no modern error, and no violation (spec_client 3.5)."""
    server = synthetic_server(era="legacy")
    async with served(server) as wire:
        message, headers = modern("server/discover")
        answer = await wire.post(message, **headers)

    assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
    assert server.violations == []


@pytest.mark.parametrize(
    ("revision", "status", "violations"),
    [("2025-11-25", 200, 0), ("2025-06-18", 200, 1), (None, 200, 1), ("1", 400, 1)],
)
async def test_legacy_revision_header_is_checked(revision, status, violations):
    """After initialize the negotiated revision is wanted; an unknown one is 400."""
    server = synthetic_server()
    async with served(server) as wire:
        session = await greet(wire)
        answer = await wire.post(request("ping"), **{**session, "mcp_protocol_version": revision})

    assert (status, violations) == (answer.status, len(server.violations))


async def test_legacy_get_stream_carries_what_belongs_to_no_request():
    """Notifications and questions go to the GET stream, also those from before it; it ends with the session."""
    server = synthetic_server()
    answered = []
    async with served(server, keep_alive=0.01) as wire, open_wire_like(wire) as stream, trio.open_nursery() as nursery:
        session = await greet(wire)
        await server.notify("notifications/tools/list_changed")
        assert (await wire.ask("GET", accept="application/json", **session)).status == 406
        await stream.send("GET", accept="text/event-stream", **session)
        assert (await stream.head())[0] == 200
        assert b"list_changed" in await stream.part()
        assert (await wire.ask("GET", accept="text/event-stream", **session)).status == 409

        async def ask():
            answered.append(await server.ask("roots/list"))

        nursery.start_soon(ask)
        question = b""
        while b"roots/list" not in question:
            question = await stream.part()
        answer = {"jsonrpc": "2.0", "id": events_of(question)[0]["id"], "result": {"roots": []}}
        assert (await wire.post(answer, **session)).status == 202
        assert (await wire.ask("DELETE", **session)).status == 200
        while await stream.part() is not None:
            pass

    assert answered == [{"roots": []}]


@asynccontextmanager
async def open_wire_like(wire):
    host, port = wire.stream.socket.getpeername()[:2]
    async with open_wire(f"http://{host}:{port}") as other:
        yield other


@pytest.mark.parametrize("answers", ["auto", "sse"])
async def test_legacy_question_comes_on_the_stream_of_its_call(answers):
    """A question in the middle of a call makes it a stream, and the answer comes in a POST of its own."""
    server = ScriptedServer()

    async def ask(call):
        return str(await call.ask("roots/list"))

    server.add_tool("ask", ask)
    async with served(server, answers=answers) as wire, open_wire_like(wire) as other:
        session = await greet(wire)
        await wire.send_message(request("tools/call", {"name": "ask"}), **session)
        await wire.head()
        [question] = events_of(await wire.part())
        await other.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [1]}}, **session)
        [answer] = events_of(await wire.part())

        assert answer["result"]["content"][0]["text"] == "{'roots': [1]}"
        assert await wire.part() is None
    assert server.violations == []


async def test_legacy_json_server_asks_on_the_get_stream():
    """Where answers are JSON only, what comes before one goes to the GET stream."""
    server = synthetic_server()
    async with served(server, answers="json") as wire, open_wire_like(wire) as stream:
        session = await greet(wire)
        params = {**PROGRESS, "_meta": {"progressToken": 1}}
        answer = await wire.post(request("tools/call", params), **session)
        await stream.send("GET", accept="text/event-stream", **session)
        await stream.head()

        assert answer.json["result"]["content"][0]["text"] == "done"
        assert [events_of(await stream.part())[0]["params"]["progress"] for _ in range(2)] == [1, 2]


async def test_legacy_call_outlives_its_connection_and_obeys_its_cancel():
    """A lost connection is no cancel in the legacy era; a notification is, and ends the stream without an answer."""
    server = ScriptedServer()
    ends = []

    async def wait(call):
        try:
            await trio.sleep_forever()
        finally:
            ends.append(call.request_id)

    server.add_tool("wait", wait)
    async with served(server) as wire:
        session = await greet(wire)
        async with open_wire_like(wire) as lost:
            await lost.send_message(request("tools/call", {"name": "wait"}, 1), **session)
            await server.wait_seen("tools/call")
        async with open_wire_like(wire) as kept:
            await kept.send_message(request("tools/call", {"name": "wait"}, 2), **session)
            await server.wait_seen("tools/call", 2)
            assert ends == []
            for number in (1, 2):
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
                assert (await wire.post(cancel, **session)).status == 202

            assert (await kept.read()).body == b""

    assert ends == [1, 2]


async def test_legacy_call_survives_a_connection_that_breaks_under_its_words():
    """A handler that floods a client which resets the connection runs on, and the server with it."""
    server = ScriptedServer()

    async def flood(call):
        for step in range(40):
            await call.progress(step, message="x" * 1_000_000)
        return "done"

    server.add_tool("flood", flood)
    async with served(server) as wire:
        session = await greet(wire)
        async with open_wire_like(wire) as lost:
            params = {"name": "flood", "_meta": {"progressToken": 1}}
            await lost.send_message(request("tools/call", params), **session)
            await lost.head()
            lost.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        assert (await wire.post(request("ping", None, 2), **session)).json["result"] == {}


async def test_legacy_server_without_sessions_serves_every_post_alone():
    """No session id is given or wanted, and there is no GET stream to have."""
    server = synthetic_server()
    async with served(server, has_sessions=False) as wire:
        assert "mcp-session-id" not in (await wire.post(HELLO)).headers
        answer = await wire.post(request("tools/call", ECHO), mcp_protocol_version="2025-11-25")
        assert answer.json["result"]["content"][0]["text"] == "hi"
        assert (await wire.ask("GET", accept="text/event-stream")).status == 405


async def test_forgotten_session_is_a_404():
    """`hang_up` forgets the wire sessions, as a restart of the server would."""
    server = synthetic_server()
    async with served(server) as wire:
        session = await greet(wire)

        server.hang_up()

        assert (await wire.post(request("ping"), **session)).status == 404


# ── what a test orders ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revisions", [MODERN_REVISIONS, LEGACY_REVISIONS])
async def test_orders_hold_over_http(revisions):
    """Refusals, raw answers and death are carried out before any check of the era."""
    server = ScriptedServer(revisions=revisions)
    server.refuse("server/discover", -32000, "busy", times=1)
    server.answer_raw("server/discover", b"rubbish", times=1)
    server.die_on("server/discover", times=1)
    message, headers = modern("server/discover", None, 4)
    async with served(server) as wire:
        assert (await wire.post(message, **headers)).json["error"] == {"code": -32000, "message": "busy"}
        assert (await wire.post(message, **headers)).body == b"rubbish"
        await wire.send_message(message, **headers)
        assert await wire.stream.receive_some() == b""


async def test_silence_lasts_until_the_client_goes():
    """A silenced method is not answered, and the exchange ends with its client."""
    server = ScriptedServer()
    server.silence("server/discover")
    message, headers = modern("server/discover")
    async with served(server) as wire:
        await wire.send_message(message, **headers)
        await server.wait_seen("server/discover")
        listing, mirror = modern("tools/list")
        async with open_wire_like(wire) as other:
            await other.post(listing, **mirror)
        with trio.move_on_after(0) as scope:
            await wire.stream.receive_some()
        assert scope.cancelled_caught


async def test_intercepted_request_goes_no_further():
    """An intercept answers in place of the server: a login page, an outage, a redirect."""
    server = ScriptedServer()

    def intercept(http_request):
        if "authorization" not in http_request.headers:
            return HttpAnswer(401, headers=(("www-authenticate", "Bearer"),))
        return None

    message, headers = modern("server/discover")
    async with served(server, intercept=intercept) as wire:
        refused = await wire.post(message, **headers)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert server.received == []
        assert (await wire.post(message, **headers, authorization="x")).status == 200


async def test_one_port_serves_many():
    """A factory makes the server of each path once; a path that it does not know is 404."""
    made = {}

    def factory(server_id):
        if server_id == "none":
            return None
        made[server_id] = ScriptedServer(server_id)
        return made[server_id]

    with trio.fail_after(10):
        async with open_http_server(factory) as url, open_wire(url) as wire:
            message, headers = modern("server/discover")
            for server_id in ("a", "b", "a"):
                answer = await wire.post(message, f"/m/{server_id}", **headers)
                assert answer.json["result"]["_meta"][META + "serverInfo"]["name"] == server_id
            assert (await wire.post(message, "/m/none", **headers)).status == 404
            assert (await wire.post(message, "/x/a", **headers)).status == 404

    assert list(made) == ["a", "b"]
    assert len(made["a"].received) == 2


async def test_leaving_ends_sessions_and_streams():
    """After the block no client is left, whatever was open."""
    server = synthetic_server()
    with trio.fail_after(10):
        async with contextlib.AsyncExitStack() as stack:
            async with open_http_server(server) as url:
                wire = await stack.enter_async_context(open_wire(url))
                session = await greet(wire)
                await wire.send("GET", accept="text/event-stream", **session)
                await wire.head()

            assert server.clients == []
            assert await wire.stream.receive_some() == b""


async def test_exception_of_the_block_leaves_bare():
    """What the block raises is not wrapped into a group."""
    with trio.fail_after(10), pytest.raises(KeyError):
        async with open_http_server(ScriptedServer()):
            raise KeyError
