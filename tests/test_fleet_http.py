"""The fleet over streamable HTTP on loopback: sessions that are lost, peers that never answer (faults 32, 88)."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import trio
import trio.testing
from scripted_fleet import echo_server

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, RestartPolicy, ServerSpec, TransportName
from mcp_actors.elicitation.handlers import Root
from mcp_actors.errors import AuthRequired, RpcError, TransportBroken, TransportError
from mcp_actors.fleet.questions import Questions
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.http_server import HttpAnswer, HttpOptions, HttpRequest, open_http_server
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS
from mcp_actors.testing.sse_server import open_sse_server
from tests.transports.http_peer import open_peer, sse_reply

SETTINGS = Settings()
ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS, "both": MODERN_REVISIONS + LEGACY_REVISIONS}


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_of_any_era_is_connected_and_called(era: str) -> None:
    """The journeys over HTTP; the judge on the other side finds nothing to complain of."""
    server = echo_server(revisions=ERAS[era])

    with trio.fail_after(30):
        async with (
            open_http_server(server) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime,
        ):
            status = (await runtime.wait_ready())["one"]
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(runtime.call_tool, "one.echo", {"text": str(number)})
            result = await runtime.call_tool("one.echo", {"text": "hi"})

    assert (status.state, status.tools) == (ServerState.CONNECTED, 3)
    assert status.era == ("legacy" if era == "legacy" else "modern")
    assert result.text == "hi"
    assert server.violations == []


async def test_a_lost_session_is_renewed_once_and_each_refused_call_sent_once_more() -> None:
    """Fault 32: three concurrent calls meet a 404; one initialize serves them all, and callers see results only."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    texts: list[str] = []

    with trio.fail_after(30):
        async with (
            open_http_server(server) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime,
        ):
            await runtime.wait_ready()
            await runtime.call_tool("one.echo", {"text": "before"})
            server.hang_up()

            async def call(text: str) -> None:
                texts.append((await runtime.call_tool("one.echo", {"text": text})).text)

            async with trio.open_nursery() as nursery:
                for text in "abc":
                    nursery.start_soon(call, text)
            status = runtime.status()["one"]

    assert sorted(texts) == ["a", "b", "c"]
    assert len(server.seen("initialize")) == 2
    assert len(server.seen("tools/call")) == 1 + 3 + 3
    assert (status.state, status.generation, status.restarts) == (ServerState.CONNECTED, 1, 0)


@pytest.mark.slow  # the pause before a stream is opened again
async def test_a_session_lost_while_nobody_calls_is_renewed_by_itself() -> None:
    """Fault 32, S205: the GET stream that is refused finds it out; one ping, one initialize, then calls work."""
    server, streams = echo_server(revisions=LEGACY_REVISIONS), []

    def look(request: HttpRequest) -> None:
        if request.method == "GET":
            streams.append(request)

    with trio.fail_after(30):
        async with (
            open_http_server(server, options=HttpOptions(intercept=look)) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime,
        ):
            await runtime.wait_ready()
            while not streams:  # a first one that is refused would be one that the server does not offer
                await trio.testing.wait_all_tasks_blocked(0.01)
            await trio.testing.wait_all_tasks_blocked(0.05)
            server.hang_up()
            while len(server.seen("initialize")) < 2:
                await trio.testing.wait_all_tasks_blocked(0.05)
            result = await runtime.call_tool("one.echo", {"text": "after"})
            status = runtime.status()["one"]

    assert result.text == "after"
    assert len(server.seen("tools/call")) == 1
    assert len(server.seen("initialize")) == 2
    assert (status.state, status.generation) == (ServerState.CONNECTED, 1)


async def test_roots_may_change_while_a_session_is_renewed_and_its_calls_learn_how_that_ended() -> None:
    """S132, S205: nobody is told between two sessions, and no error comes of that; a renewal that fails says so."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    questions = Questions(roots=[])
    errors: list[TransportError] = []
    at_once = RestartPolicy(backoff_first=0.0)

    with trio.fail_after(30):
        async with (
            open_http_server(server) as url,
            open_runtime(
                [ServerSpec("one", RemoteTarget(url), restart_policy=at_once)],
                settings=Settings(connect_timeout=1.0),
                host=questions.host,
            ) as runtime,
        ):
            await runtime.wait_ready()
            server.silence("initialize", times=1)
            server.hang_up()

            async def call() -> None:
                with pytest.raises(TransportError) as lost:
                    await runtime.call_tool("one.echo")
                errors.append(lost.value)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                while len(server.seen("initialize")) < 2:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                questions.set_roots([Root("file:///tmp")])
            result = await runtime.call_tool("one.echo", {"text": "after"})

    assert [error.reason for error in errors] == ["the server forgot the session and begins no other"]
    assert server.seen("notifications/roots/list_changed") == []
    assert result.text == "after"


@pytest.mark.parametrize(("rule", "is_renewed"), [("dual", False), ("spec", True)])
async def test_a_bare_404_is_a_lost_session_where_the_host_says_so(rule, is_renewed) -> None:
    """S407: under "spec" a 404 to a request with our session id renews the session, by default it tells of the URL."""
    server, has_lost = echo_server(revisions=LEGACY_REVISIONS), [False]

    def forget(request: HttpRequest) -> HttpAnswer | None:
        if request.method == "POST" and b"tools/call" in request.body and has_lost[0]:
            has_lost[0] = False
            return HttpAnswer(404)
        return None

    with trio.fail_after(30):
        async with (
            open_http_server(server, options=HttpOptions(intercept=forget)) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=Settings(session_expiry=rule)) as runtime,
        ):
            await runtime.wait_ready()
            has_lost[0] = True
            try:
                text = (await runtime.call_tool("one.echo", {"text": "a"})).text
            except TransportBroken as broken:
                text = str(broken.http_status)

    assert text == ("a" if is_renewed else "404")
    assert len(server.seen("initialize")) == 1 + is_renewed


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (HttpAnswer(400, b"Bad Request: No valid session ID provided", ""), "a"),
        (HttpAnswer(401, b"Unauthorized: Session not found", ""), "a"),
        (HttpAnswer(401, b"Unauthorized", ""), "mcp-actors login one"),
    ],
    ids=["python-sdk", "rust-sdk", "no-words"],
)
async def test_a_lost_session_is_renewed_whatever_status_says_it(answer: HttpAnswer, expected: str) -> None:
    """Field 24 and 25: in bare words, amid a session that served; a 401 without them asks for a login, and how."""
    server, has_lost = echo_server(revisions=LEGACY_REVISIONS), [False]

    def forget(request: HttpRequest) -> HttpAnswer | None:
        if request.method == "POST" and b"tools/call" in request.body and has_lost[0]:
            has_lost[0] = False
            return answer
        return None

    with trio.fail_after(30):
        async with (
            open_http_server(server, options=HttpOptions(intercept=forget)) as url,
            open_runtime({"mcpServers": {"one": {"type": "http", "url": url}}}, settings=SETTINGS) as runtime,
        ):
            await runtime.wait_ready()
            has_lost[0] = True
            try:
                said = (await runtime.call_tool("one.echo", {"text": "a"})).text
            except AuthRequired as required:
                said = str(required)

    assert expected in said
    assert len(server.seen("initialize")) == 1 + (expected == "a")


async def test_a_second_loss_in_a_row_is_an_error_and_no_loop() -> None:
    """Fault 32: the second 404 of one call is told to its caller."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.refuse("tools/call", -32001, "Session not found")

    with trio.fail_after(30):
        async with (
            open_http_server(server) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime,
        ):
            await runtime.wait_ready()
            with pytest.raises(RpcError) as refused:
                await runtime.call_tool("one.echo", {"text": "a"})

    assert refused.value.code == -32001
    assert len(server.seen("initialize")) <= 2


async def test_a_server_restarted_between_two_calls_is_found_again() -> None:
    """The second call succeeds after one initialize; connections and sessions are gone (S124, S205, fault 97)."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async def serve(port: int, stop: trio.Event, *, task_status: trio.TaskStatus[str]) -> None:
        async with open_http_server(server, port=port) as url:
            task_status.started(url)
            await stop.wait()

    first, second = trio.Event(), trio.Event()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve, 0, first)
            async with open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime:
                await runtime.wait_ready()
                await runtime.call_tool("one.echo", {"text": "before"})
                first.set()
                server.hang_up()
                await trio.testing.wait_all_tasks_blocked(0.05)
                await nursery.start(serve, urlsplit(url).port, second)
                result = await runtime.call_tool("one.echo", {"text": "after"})
            second.set()

    assert result.text == "after"
    assert len(server.seen("initialize")) == 2


@pytest.mark.parametrize(
    ("status", "asked", "tools"),
    [(500, 2, 3), (503, 2, 3), (429, 2, 3), (400, 1, None), (403, 1, None)],
)
async def test_a_list_that_fails_in_passing_is_asked_for_again(status: int, asked: int, tools: int | None) -> None:
    """S154: what the network or an overloaded server did is tried again shortly; what was refused is not."""
    answers = [HttpAnswer(status)]
    seen = 0

    def intercept(request: HttpRequest) -> HttpAnswer | None:
        nonlocal seen
        if b'"tools/list"' not in request.body:
            return None
        seen += 1
        return answers.pop() if answers else None

    with trio.fail_after(30):
        async with (
            open_http_server(echo_server(), options=HttpOptions(intercept=intercept)) as url,
            open_runtime([ServerSpec("one", RemoteTarget(url))], settings=SETTINGS) as runtime,
        ):
            found = (await runtime.wait_ready())["one"]

    assert (seen, found.tools) == (asked, tools)
    assert (found.state, len(found.warnings)) == (ServerState.CONNECTED, tools is None)


async def test_a_black_hole_fails_by_its_clock_and_hurts_no_other() -> None:
    """Fault 88: a server that accepts and never answers times out alone, while others are called."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    server = echo_server()

    async def swallow(stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some():
                pass

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, open_http_server(server) as url:
            nursery.start_soon(trio.serve_listeners, swallow, listeners)
            specs = [
                ServerSpec("hole", RemoteTarget(f"http://127.0.0.1:{port}/mcp"), connect_timeout=1.5),
                ServerSpec("good", RemoteTarget(url)),
            ]
            async with open_runtime(specs, settings=SETTINGS) as runtime:
                await runtime.wait_ready(["good"])
                hole = runtime.status()["hole"].state
                result = await runtime.call_tool("good.echo", {"text": "fine"})
                statuses = await runtime.wait_ready()
            nursery.cancel_scope.cancel()

    assert (hole, result.text) == (ServerState.PENDING, "fine")
    assert "no answer to the handshake within 1.5 s" in (statuses["hole"].error or "")


async def test_a_stream_that_ends_with_its_endpoint_is_a_broken_wire() -> None:
    """A wire that dies between its opening and the handshake is told as that, and as no bug of ours."""
    script = sse_reply(b"event: endpoint\ndata: /messages\n\n")

    with trio.fail_after(30):
        async with open_peer(lambda asked: script) as peer:
            one = ServerSpec("one", RemoteTarget(peer.url, transport=TransportName.SSE))
            async with open_runtime([one], settings=SETTINGS) as runtime:
                while (status := runtime.status()["one"]).error is None:
                    await trio.testing.wait_all_tasks_blocked()

    assert status.error == "the server closed its event stream"


async def test_a_server_that_was_found_to_speak_the_older_transport_is_listed_as_that() -> None:
    """Fault 34: where an entry names no transport, the status names what is spoken, also after its end."""
    server = echo_server(revisions=("2024-11-05",))

    with trio.fail_after(30):
        async with open_sse_server(server) as url:
            one = ServerSpec("one", RemoteTarget(url, is_guess=True))
            async with open_runtime([one], settings=SETTINGS) as runtime:
                before = runtime.status()["one"].transport
                status = (await runtime.wait_ready())["one"]
                await runtime.disable("one")
                after = runtime.status()["one"].transport

    assert (before, status.transport, after) == ("http", "sse", "sse")
    assert status.state is ServerState.CONNECTED
