"""HTTP+SSE on a real loopback peer: the endpoint, the stream, the POSTs, the ends."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import AuthRequired, ConnectFailed, TransportBroken, TransportClosed
from mcp_actors.protocol.types import Frame
from mcp_actors.testing.contracts import RecordingSink
from mcp_actors.transports.legacy_sse import SseTransport, request_seconds, resolve_endpoint
from tests.transports.http_peer import CUT, HOLD, Reply, event, json_reply, open_peer, sse_reply
from tests.transports.rig import Rig
from tests.transports.sse_peer import endpoint_event, open_sse_peer
from tests.transports.test_http import ANSWER, NOTICE, notification


def request(request_id=1, method="tools/call", headers=()):
    """A frame whose echo is its answer."""
    data = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % request_id
    return Frame(data, request_id=request_id, method=method, headers=headers)


def spec_of(url, headers=None, **times):
    return ServerSpec("s", RemoteTarget(url, transport=TransportName.SSE, headers=headers or {}), **times)


@asynccontextmanager
async def open_rig(*, headers=None, auth=None, settings=None, times=None, **options):
    with trio.fail_after(5):
        async with open_sse_peer(**options) as server, trio.open_nursery() as nursery:
            spec = spec_of(server.url, headers, **(times or {}))
            rig = Rig(SseTransport(spec, settings or Settings(), auth=auth), server.peer)
            rig.server = server
            rig.leave = nursery.cancel_scope.cancel
            await nursery.start(rig.serve)
            yield rig
            nursery.cancel_scope.cancel()


async def refused(reply, *, url=None, seconds=5.0, settings=None):
    """Run against a server that answers every GET with `reply`; the error of `run`, and what was asked."""
    with trio.fail_after(10):
        async with open_peer(lambda asked: reply) as peer:
            transport = SseTransport(spec_of(url or f"{peer.url}?key=CANARY"), settings or Settings())
            with trio.move_on_after(seconds), pytest.raises(Exception) as caught:
                await transport.run(RecordingSink())
            return caught.value, peer


# ── the endpoint ─────────────────────────────────────────────────────────────────────────────────────────────────────

BASE = "https://h/base/sse?k=1"
ENDPOINTS = {
    "path": ("/messages?sid=1", "https://h/messages?sid=1"),
    "relative": ("messages?sid=1", "https://h/base/messages?sid=1"),
    "query": ("?sid=1", "https://h/base/sse?sid=1"),
    "absolute": ("https://h/base/messages?sid=1", "https://h/base/messages?sid=1"),
    "default-port": ("https://h:443/m", "https://h:443/m"),
    "case": ("HTTPS://H/m", "https://H/m"),
    "up": ("../m?sid=a/b", "https://h/m?sid=a/b"),
    "network": ("//h/m", "https://h/m"),
    "padded": (" /m?sid=1 ", "https://h/m?sid=1"),
    "fragment": ("/m?sid=1#x", "https://h/m?sid=1"),
    "empty-path": ("https://h", "https://h"),
}


@pytest.mark.parametrize(("data", "expected"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_endpoint(data, expected):
    """The endpoint is resolved by RFC 3986 against the stream's URL; its query is kept (fault 47, S072)."""
    assert resolve_endpoint(BASE, data.encode()) == expected


FOREIGN = [
    "https://evil/m",
    "http://h/m",
    "https://h:8443/m",
    "//evil/m",
    "https://h@evil/m",
    "https://h.evil/m",
    "javascript:alert(1)",
    "https://[::1/m",
    "/m" * 9000,
]


@pytest.mark.parametrize("data", FOREIGN, ids=range(len(FOREIGN)))
def test_endpoint_foreign(data):
    """An endpoint of another origin, or that is no URL, is refused without its query in words (C13, E02)."""
    with pytest.raises(ConnectFailed) as caught:
        resolve_endpoint(BASE, f"{data}?CANARY".encode())

    assert "CANARY" not in str(caught.value)
    assert not caught.value.can_retry


async def test_nothing_before_endpoint():
    """Nothing is sent before the endpoint event; comments and messages before it are no endpoint (fault 48)."""
    early = (b": hello\n\n", event(NOTICE), b"id: 1\nretry: 5\n\n")
    with trio.fail_after(10):
        async with open_sse_peer(opening=early) as server, trio.open_nursery() as nursery:
            rig = Rig(SseTransport(spec_of(server.url), Settings()), server.peer)
            started = trio.Event()

            async def start():
                await nursery.start(rig.serve)
                started.set()

            nursery.start_soon(start)
            await rig.sink.until(lambda sink: sink.delivered == [NOTICE])
            with pytest.raises(TransportClosed):
                await rig.transport.send(request())
            assert not started.is_set()
            assert "no endpoint event" in rig.transport.diagnostics().notes[0]
            server.say(endpoint_event())
            await started.wait()
            await rig.answered(request())
            nursery.cancel_scope.cancel()

    assert [(asked.method, asked.target) for asked in rig.peer.asked] == [
        ("GET", "/sse?k=1"),
        ("POST", "/messages?sid=1"),
    ]


async def test_endpoint_never_comes():
    """A server that never names its endpoint is waited for until the caller's timeout; nothing is left (fault 48)."""
    with trio.fail_after(10):
        async with open_sse_peer(opening=(b": hello\n\n",)) as server:
            transport = SseTransport(spec_of(server.url), Settings())
            with trio.move_on_after(0.05) as patience:
                await transport.run(RecordingSink())
            await server.peer.until(lambda peer: peer.connections == 0)

    assert patience.cancelled_caught
    assert server.peer.of("POST") == []


async def test_endpoint_in_pieces():
    """The stream may be cut into any pieces: the endpoint and all messages are the same (S082)."""
    whole = b"\xef\xbb\xbf" + endpoint_event() + event(NOTICE, "message")
    for cut in range(1, len(whole)):
        async with open_rig(opening=(whole[:cut], 0.001, whole[cut:])) as rig:
            await rig.sink.until(lambda sink: sink.delivered == [NOTICE])
            await rig.transport.send(notification())

            assert rig.peer.asked[-1].target == "/messages?sid=1"


async def test_second_endpoint_ignored():
    """The first endpoint stays."""
    async with open_rig(opening=(endpoint_event(), endpoint_event(b"/other"))) as rig:
        await rig.answered(request())

        assert rig.peer.asked[-1].target == "/messages?sid=1"


REFUSALS = {
    "404": (Reply(404), ConnectFailed, "may be wrong", False),
    "400": (Reply(400), ConnectFailed, "a newer server is of type http", False),
    "405": (Reply(405), ConnectFailed, "a newer server is of type http", False),
    "503": (Reply(503, [("Retry-After", "7")]), ConnectFailed, "503", True),
    "401": (Reply(401, [("WWW-Authenticate", "Bearer")]), AuthRequired, "", None),
    "403": (Reply(403), AuthRequired, "", None),
    "html": (Reply(200, [("Content-Type", "text/html")], [b"<h1>Sign in"]), ConnectFailed, "text/html", False),
    "json-error": (json_reply(b'{"error":{"code":-32000,"message":"no"}}', 400), ConnectFailed, "no", False),
    "ended": (sse_reply(b": hi\n\n"), ConnectFailed, "no endpoint event", True),
    "cut": (sse_reply(b": hi\n\n", is_whole=False), ConnectFailed, "no endpoint event", True),
    "hung-up": (CUT, ConnectFailed, "no answer from", True),
    "foreign": (sse_reply(endpoint_event(b"https://evil/m?CANARY"), HOLD), ConnectFailed, "another origin", False),
    "redirect": (Reply(302, [("Location", "/login")]), ConnectFailed, "redirects", False),
    "long": (sse_reply(b"data: " + b"x" * 5000, HOLD), ConnectFailed, "too large", True),
}


@pytest.mark.parametrize(("reply", "kind", "words", "can_retry"), REFUSALS.values(), ids=REFUSALS)
async def test_open_refused(reply, kind, words, can_retry):
    """A stream that is refused, ends early or names a foreign endpoint fails the connect with the reason."""
    error, peer = await refused(reply, settings=Settings(max_message_bytes=1000))

    assert type(error) is kind
    assert words in str(error)
    assert "CANARY" not in str(error)
    assert getattr(error, "can_retry", None) is can_retry
    assert peer.of("POST") == []


async def test_open_unreachable():
    """A server that is not there is told in the system's words."""
    with pytest.raises(ConnectFailed, match="Connection refused"):
        await SseTransport(spec_of("http://127.0.0.1:9/sse"), Settings()).run(RecordingSink())


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_headers():
    """Both clients carry the configured headers; a POST the frame's as well (S078)."""
    async with open_rig(headers={"X-Team": "blue", "accept": "text/html"}) as rig:
        await rig.answered(request(headers=(("MCP-Protocol-Version", "2024-11-05"),)))

    get, post = rig.peer.asked
    assert {asked.headers["x-team"] for asked in (get, post)} == {"blue"}
    assert get.headers["accept"] == "text/event-stream"
    assert (post.headers["content-type"], post.headers["mcp-protocol-version"]) == ("application/json", "2024-11-05")
    assert "mcp-session-id" not in post.headers


class CountingAuth(httpx.Auth):
    """Gives each request the next token."""

    def __init__(self):
        self.count = 0

    async def async_auth_flow(self, request):
        self.count += 1
        request.headers["Authorization"] = f"Bearer {self.count}"
        yield request


async def test_token_read_each_time():
    """The token is read again for the stream and for each POST (S074)."""
    async with open_rig(auth=CountingAuth()) as rig:
        await rig.answered(request(1))
        await rig.answered(request(2))

        assert [asked.headers["authorization"] for asked in rig.peer.asked] == ["Bearer 1", "Bearer 2", "Bearer 3"]


async def test_probe_answered_here():
    """A modern probe is not sent: this transport is of the legacy era (spec_client 6)."""
    async with open_rig() as rig:
        await rig.ask(request(1, "server/discover"))

        [(_, refusal)] = rig.sink.refused
        assert (refusal.status, refusal.body) == (405, b"")
        assert rig.peer.of("POST") == []


RECEIPTS = {
    "202": Reply(202),
    "200": Reply(200),
    "202-text": Reply(202, [("Content-Type", "text/plain")], [b"Accepted"]),
    "200-json": json_reply(b"{}"),
    "204": Reply(204),
    "cut": Reply(202, [], [b"Acc"], is_whole=False),
    "slow": Reply(202, [], [b"Acc", 0.02, b"epted"]),
}


@pytest.mark.parametrize("receipt", RECEIPTS.values(), ids=RECEIPTS)
async def test_receipts(receipt):
    """Whatever a POST is received with is ignored; the answer comes over the stream (C13, fault 35, S072)."""
    async with open_rig(receipt=receipt) as rig:
        await rig.answered(request())

        assert rig.sink.delivered == [request().data]
        assert rig.sink.lost == rig.sink.refused == []


async def test_answer_before_receipt():
    """A POST that is answered only after the message was carried out delays nothing."""
    async with open_rig(receipt=Reply(202, [], [HOLD])) as rig, trio.open_nursery() as calls:
        calls.start_soon(rig.ask, request())
        await rig.sink.until(lambda sink: len(sink.delivered) == 1)

        assert rig.sink.delivered == [request().data]
        calls.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', True),
        (b' {"id":1,"error":{"code":-32000,"message":"no"}}\n', True),
        (b'{"jsonrpc":"2.0","id":2,"result":{}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', False),
        (b'{"status":"accepted"}', False),
        (b"Accepted", False),
        (b"", False),
        (b'{"jsonrpc":"2.0","id":1,"result":{}', False),
    ],
)
@pytest.mark.parametrize("status", [200, 202])
async def test_an_answer_in_the_body_of_its_post_is_taken(status, body, is_taken):
    """With a note; whatever else stands there is nobody's message, and the stream is waited for."""
    async with open_rig(echoes=False, receipt=Reply(status, [], [body])) as rig:
        await rig.ask(request())

        assert rig.sink.delivered == ([body] if is_taken else [])
        assert [note[:24] for note in rig.transport.diagnostics().notes] == ["answers come in the body"] * is_taken
        assert rig.sink.lost == rig.sink.refused == []


async def test_a_body_that_repeats_what_the_stream_said_is_not_taken():
    """Nobody waits for it any more."""
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    feed, pouring = trio.open_memory_channel(1)
    async with open_rig(echoes=False, receipt=Reply(200, [], [pouring])) as rig:
        async with trio.open_nursery() as calls:
            calls.start_soon(rig.ask, request())
            await rig.peer.until(lambda peer: len(peer.asked) == 2)
            rig.server.say(event(answer))
            await rig.sink.until(lambda sink: len(sink.delivered) == 1)
            feed.send_nowait(answer)
            feed.close()

        assert rig.sink.delivered == [answer]


@pytest.mark.parametrize("status", [400, 401, 413, 429, 500])
async def test_post_refused(status):
    """A refused request is told with its status; a refused notification is noted; the wire goes on."""
    async with open_rig(receipt=Reply(status, [], [b"no"])) as rig:
        await rig.ask(request())
        await rig.transport.send(notification())
        rig.server.receipt = Reply(202)
        await rig.answered(request(2))

        [(_, refusal)] = rig.sink.refused
        assert (refusal.status, refusal.body, refusal.had_session) == (status, b"no", False)
        assert rig.transport.diagnostics().notes == (f"notifications/initialized was refused: HTTP {status}",)


async def test_post_unanswered():
    """A POST whose answer does not begin in time breaks this send alone (S073, S076)."""

    async def mute():
        await trio.sleep_forever()

    async with open_rig(times={"request_timeout": 0.05}) as rig:
        echo, rig.peer.script = rig.peer.script, lambda asked: mute()
        with pytest.raises(TransportBroken, match=r"did not begin to answer within 0\.05 s"):
            await rig.ask(request())
        rig.peer.script = echo
        await rig.answered(request(2))

        assert rig.failures == []


@pytest.mark.parametrize(
    ("times", "runtime", "expected"),
    [
        ({}, None, 60),
        ({"request_timeout": 5.0}, None, 5),
        ({"request_timeout": 500.0, "call_timeout": 90.0}, None, 500),
        ({"call_timeout": 90.0}, None, 90),
        ({"call_timeout": 5.0}, None, 60),
        ({}, 90.0, 90),
        ({}, 5.0, 60),
        ({"call_timeout": 70.0}, 90.0, 70),
    ],
)
def test_request_seconds(times, runtime, expected):
    """The first byte has a minute; longer limits of a call raise it, shorter ones do not shorten it (S076)."""
    settings = Settings() if runtime is None else Settings(call_timeout=runtime)

    assert request_seconds(spec_of("http://h/", **times), settings) == expected


async def test_stream_events():
    """Events that are no messages are skipped; data lines are joined; line ends of any kind do (faults 39-41)."""
    async with open_rig(echoes=False) as rig:
        rig.server.say(b": ping\n\n" + event(b"{}", "ping") + b"id: 7\ndata:\n\nretry: 1\n\n")
        rig.server.say(b'data: {"a":1,\ndata:  "b":2}\n\n' + b"event: message\r\ndata:" + NOTICE + b"\r\n\r\n")
        rig.server.say(b"data: " + NOTICE + b"\r\r")
        await rig.sink.until(lambda sink: len(sink.delivered) == 3)

        assert rig.sink.delivered == [b'{"a":1,\n "b":2}', NOTICE, NOTICE]


@pytest.mark.slow
async def test_bulk():
    """Five thousand notifications and ten megabytes come over the stream, whole and in order."""
    large = ANSWER.replace(b"{}", b'{"x":"' + b"z" * 10_000_000 + b'"}')
    async with open_rig(opening=(endpoint_event(), *[event(NOTICE)] * 5000, event(large))) as rig:
        await rig.sink.until(lambda sink: len(sink.delivered) == 5001)

        assert rig.sink.delivered == [*[NOTICE] * 5000, large]


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

ENDS = {
    "closed": (lambda rig: rig.server.end_stream(), "closed its event stream"),
    "gone": (lambda rig: rig.peer.stop(), "broke off"),
    "long": (lambda rig: rig.server.say(b"data: " + b"x" * 5000), "too large"),
}


@pytest.mark.parametrize(("end", "words"), ENDS.values(), ids=ENDS)
async def test_stream_loss(end, words):
    """The stream's end is the session's: `run` raises, the sink knows before, POSTs under way fail (C13)."""
    async with open_rig(echoes=False, receipt=Reply(202), settings=Settings(max_message_bytes=1000)) as rig:
        held = rig.peer.script

        async def hold():
            await trio.sleep_forever()

        rig.peer.script = lambda asked: hold() if asked.method == "POST" else held(asked)
        failures = []

        async def post():
            try:
                await rig.transport.send(request())
            except TransportBroken as exc:
                failures.append(exc)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(post)
            await rig.peer.until(lambda peer: peer.of("POST"))
            end(rig)
        await rig.ended.wait()
        with pytest.raises(TransportBroken):
            await rig.transport.send(request(2))

    assert len(failures) == 1
    assert [words in str(error) for error in (*rig.failures, *rig.sink.endings)] == [True] * 2


@pytest.mark.parametrize("status", [404, 410])
async def test_session_forgotten(status):
    """An endpoint that is not known any more breaks the wire: its session is gone."""
    async with open_rig(receipt=Reply(status)) as rig:
        with pytest.raises(TransportBroken, match=f"HTTP {status}"):
            await rig.ask(request())
        await rig.ended.wait()

    assert len(rig.failures) == len(rig.sink.endings) == 1
    assert rig.sink.refused == []


async def test_leave():
    """Leaving closes every connection and fails POSTs under way; later sends say that it is closed (fault 93)."""
    ends = []

    with trio.fail_after(10):
        async with open_sse_peer(receipt=Reply(202, [], [HOLD])) as server, trio.open_nursery() as callers:
            rig = Rig(SseTransport(spec_of(server.url), Settings()), server.peer)
            async with trio.open_nursery() as nursery:
                await nursery.start(rig.serve)
                for _ in range(5):
                    callers.start_soon(rig.ask_until_closed, request(), ends)
                await rig.peer.until(lambda peer: len(peer.of("POST")) == 5)
                await trio.testing.wait_all_tasks_blocked(0.01)
                nursery.cancel_scope.cancel()
            await rig.peer.until(lambda peer: peer.connections == 0)

        with pytest.raises(TransportClosed):
            await rig.transport.send(request(2))
    assert rig.failures == []


async def test_secrets():
    """The endpoint's query, which holds the session, and all paths are in no repr or diagnostic (S030, E07)."""
    async with open_rig(opening=(endpoint_event(b"/m?CANARY"),), receipt=Reply(500), headers={"X": "CANARY"}) as rig:
        await rig.ask(request())
        await rig.transport.send(notification())

        shown = f"{rig.transport!r} {rig.transport.diagnostics()!r} {rig.sink.refused!r}"
        assert "CANARY" not in shown
        assert "/sse" not in shown
        assert " open " in shown


@pytest.mark.parametrize("cut", range(0, len(endpoint_event() + event(ANSWER)), 3))
async def test_cut_sweep(cut):
    """Cut after any byte, the wire ends once and says so: a failed connect before the endpoint, broken after it."""
    whole = endpoint_event() + event(ANSWER)
    with trio.fail_after(10):
        async with open_peer(lambda asked: sse_reply(whole[:cut], is_whole=False)) as peer:
            sink = RecordingSink()
            kind = TransportBroken if cut >= len(endpoint_event()) else ConnectFailed
            with pytest.raises(kind):
                await SseTransport(spec_of(peer.url), Settings()).run(sink)

    assert sink.delivered == []
    assert len(sink.endings) == (kind is TransportBroken)
