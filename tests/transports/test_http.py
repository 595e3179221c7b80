"""Streamable HTTP on a real loopback peer: headers, both eras, odd answers, the wire session, leaving."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import ConfigError, ConnectFailed, TransportBroken, TransportClosed
from mcp_actors.origins import place_of
from mcp_actors.protocol.types import Era, Frame, ServerInfo
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.http_headers import user_headers
from mcp_actors.transports.http_stream import Reopening
from tests.transports.http_peer import CUT, HOLD, Reply, event, json_reply, open_peer, sse_reply
from tests.transports.rig import Rig

LEGACY = ServerInfo("2025-11-25", Era.LEGACY)
MODERN = ServerInfo("2026-07-28", Era.MODERN)
QUICK = Reopening(first=0.01, longest=0.08)
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ANSWER_2 = ANSWER.replace(b'"id":1', b'"id":2')
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'


def request(request_id=1, method="tools/call", headers=()):
    data = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method}).encode()
    return Frame(data, request_id=request_id, method=method, headers=headers)


def notification(method="notifications/initialized"):
    return Frame(json.dumps({"jsonrpc": "2.0", "method": method}).encode(), method=method)


class HttpRig(Rig):
    """One with a handshake."""

    async def initialize(self, info=LEGACY):
        await self.ask(request(0, "initialize"))
        self.transport.session_ready(info)


@asynccontextmanager
async def open_rig(script, *, headers=None, settings=None, reopening=QUICK, path=""):
    with trio.fail_after(10):
        async with open_peer(script) as peer, trio.open_nursery() as nursery:
            spec = ServerSpec("s", RemoteTarget(peer.url + path, headers=headers or {}))
            transport = HttpTransport(spec, settings or Settings(), reopening=reopening)
            rig = HttpRig(transport, peer)
            await nursery.start(lambda task_status: transport.run(rig.sink, task_status=task_status))
            rig.leave = nursery.cancel_scope.cancel
            yield rig
            nursery.cancel_scope.cancel()


def answering(reply):
    """A script that gives each POST this reply and has no GET stream."""
    return lambda asked: reply if asked.method == "POST" else Reply(405)


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

HEADER_CASES = {
    "accept": ({}, (), "accept", "application/json, text/event-stream"),
    "accept-stays": ({"ACCEPT": "text/html"}, (), "accept", "application/json, text/event-stream"),
    "content-type-stays": ({"content-type": "text/plain"}, (), "content-type", "application/json"),
    "session-is-ours": ({"Mcp-Session-Id": "stolen"}, (), "mcp-session-id", None),
    "user": ({"X-Team": " blue "}, (), "x-team", "blue"),
    "user-unicode": ({"X-Team": "blå"}, (), "x-team", "blå"),
    "authorization": ({"Authorization": "Bearer t"}, (), "authorization", "Bearer t"),
    "mirrored": ({}, (("Mcp-Method", "tools/call"), ("Mcp-Name", "a")), "mcp-name", "a"),
    "revision": ({}, (("MCP-Protocol-Version", "2026-07-28"),), "mcp-protocol-version", "2026-07-28"),
    "length": ({"Content-Length": "1", "Transfer-Encoding": "chunked"}, (), "content-length", str(len(request().data))),
    "identity": ({}, (), "accept-encoding", "identity"),
    "cookie-less": ({}, (), "cookie", None),
}


@pytest.mark.parametrize(("configured", "mirrored", "name", "expected"), HEADER_CASES.values(), ids=HEADER_CASES)
async def test_headers(configured, mirrored, name, expected):
    """A POST carries our headers, the frame's and the user's, in this order of force (S078, B02, C01)."""
    async with open_rig(answering(json_reply(ANSWER)), headers=configured) as rig:
        await rig.ask(request(headers=mirrored))

        assert expected == rig.peer.asked[0].headers.get(name)
        assert len(rig.peer.asked[0].names) == len({name.lower() for name in rig.peer.asked[0].names})


def test_headers_of_url():
    """A user and password in the URL become an Authorization header, unless one is configured."""
    url = "http://me:p%40ss@h/mcp"

    assert user_headers({}, url=url) == [(b"Authorization", b"Basic bWU6cEBzcw==")]
    assert user_headers({"authorization": "Bearer t"}, url=url) == [(b"authorization", b"Bearer t")]


@pytest.mark.parametrize(
    ("name", "value"), [("X\nY", "v"), ("", "v"), ("X Y", "v"), ("X", "CANARY\r\nY: z"), ("X", "CANARY\0")]
)
def test_headers_unsendable(name, value):
    """A header that HTTP cannot carry is a configuration error that does not show its value."""
    with pytest.raises(ConfigError) as caught:
        user_headers({name: value}, url="http://h/", server="s")

    assert "CANARY" not in str(caught.value)


async def test_frame_sent_as_is():
    """The body of a POST is the frame, byte for byte."""
    frame = Frame('{"id":1,"é":"\u2028"}'.encode(), request_id=1, method="m")
    async with open_rig(answering(json_reply(ANSWER))) as rig:
        await rig.ask(frame)

        assert rig.peer.asked[0].body == frame.data


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DELIVERED = {
    "json": (json_reply(ANSWER), [ANSWER]),
    "json-odd-type": (Reply(200, [("content-type", "Application/JSON; charset=utf-8")], [ANSWER]), [ANSWER]),
    "json-202": (json_reply(ANSWER, 202), [ANSWER]),
    "sse": (sse_reply(event(NOTICE), event(NOTICE), event(ANSWER)), [NOTICE, NOTICE, ANSWER]),
    "sse-odd-type": (Reply(200, [("Content-Type", "TEXT/Event-Stream;x=y")], [event(ANSWER)]), [ANSWER]),
    "sse-named": (sse_reply(event(ANSWER, "message")), [ANSWER]),
    "sse-crlf": (sse_reply(b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n"), [ANSWER]),
    "sse-cr": (sse_reply(b"data: " + ANSWER + b"\r\r"), [ANSWER]),
    "sse-noise": (
        sse_reply(b": ping\n\n", b"id: 7\ndata:\n\n", event(b"{}", "ping"), b"retry: 1\n\n", event(ANSWER)),
        [ANSWER],
    ),
    "sse-bytes": (sse_reply(*(bytes([byte]) for byte in event(ANSWER))), [ANSWER]),
    "sse-then-cut": (sse_reply(event(ANSWER), is_whole=False), [ANSWER]),
    "untyped": (Reply(200, [], [ANSWER]), [ANSWER]),
    "untyped-spaced": (Reply(200, [], [b"\n", b" \r\n " + ANSWER[:1], ANSWER[1:]]), [ANSWER]),
    "untyped-bytes": (Reply(200, [("Content-Type", "")], [bytes([byte]) for byte in ANSWER]), [ANSWER]),
}


@pytest.mark.parametrize(("reply", "expected"), DELIVERED.values(), ids=DELIVERED)
async def test_answer_delivered(reply, expected):
    """JSON and event streams give the same messages, notifications before the answer (S077, C01, faults 36, 39-41)."""
    async with open_rig(answering(reply)) as rig:
        await rig.ask(request())

        assert expected == rig.sink.delivered
        assert rig.sink.lost == rig.sink.refused == []


@pytest.mark.parametrize(
    "reply", [json_reply(ANSWER), sse_reply(event(ANSWER)), Reply(404), Reply(202)], ids=["json", "sse", "404", "202"]
)
async def test_first_byte(reply):
    """The sink learns once that an answer to a request has begun, whatever it is, and of no other frame (S076)."""
    async with open_rig(answering(reply)) as rig:
        await rig.transport.send(notification())
        await rig.ask(request())

        assert [frame.request_id for frame in rig.sink.begun] == [1]


async def test_first_byte_before_the_answer():
    """An answer that begins and goes on later has begun at once."""
    async with open_rig(answering(sse_reply(b": hold on\n\n", HOLD))) as rig, trio.open_nursery() as calls:
        calls.start_soon(rig.ask, request())
        await rig.sink.until(lambda sink: sink.begun)
        calls.cancel_scope.cancel()

    assert [frame.request_id for frame in rig.sink.begun] == [1]


REFUSED = {
    "html": (Reply(200, [("Content-Type", "Text/HTML; charset=x")], [b"<h1>Sign in</h1>"]), 200, "text/html"),
    "untyped": (Reply(200, [], [b"hello"]), 200, ""),
    "untyped-sse": (Reply(200, [], [event(ANSWER)]), 200, ""),
    "text": (Reply(200, [("Content-Type", "text/plain")], [b"Accepted"]), 200, "text/plain"),
    "text-json": (Reply(200, [("Content-Type", "text/plain")], [ANSWER]), 200, "text/plain"),
    "404": (json_reply(b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"m"}}', 404), 404, "application/json"),
    "400-empty": (Reply(400), 400, ""),
    "500-cut": (Reply(500, [("Content-Type", "text/html")], [b"<h1>"], is_whole=False), 500, "text/html"),
}


@pytest.mark.parametrize(("reply", "status", "kind"), REFUSED.values(), ids=REFUSED)
async def test_answer_refused(reply, status, kind):
    """An answer that is no message is handed on with status, type and body for the session to judge (C10, fault 37)."""
    async with open_rig(answering(reply), path="/CANARY?key=CANARY") as rig:
        await rig.ask(request())

        [(frame, refusal)] = rig.sink.refused
        assert (status, kind, 1) == (refusal.status, refusal.content_type, frame.request_id)
        assert refusal.body == b"".join(reply.chunks)
        assert refusal.url == place_of(rig.peer.url)
        assert rig.sink.delivered == rig.sink.lost == []


async def test_a_missing_type_is_noted_once():
    """An answer without a content type is taken for what it looks like, and the server's slip is noted (fault 36)."""
    async with open_rig(answering(Reply(200, [], [ANSWER]))) as rig:
        await rig.ask(request())
        await rig.ask(request())

        assert rig.transport.diagnostics().notes == ("an answer came without a content type",)


async def test_refusal_fields():
    """A refusal carries all challenges, the wanted pause, and at most 64 KiB of the body."""
    headers = [("WWW-Authenticate", 'Bearer a="b"'), ("WWW-Authenticate", "DPoP"), ("Retry-After", "7")]
    async with open_rig(answering(Reply(401, headers, [b"x" * 50_000, b"y" * 50_000]))) as rig:
        await rig.ask(request())

        [(_, refusal)] = rig.sink.refused
        assert refusal.challenge == 'Bearer a="b", DPoP'
        assert refusal.retry_after == 7.0
        assert len(refusal.body) == 65536
        assert not refusal.had_session


LOST = {
    "202": Reply(202),
    "200-empty": Reply(200, [("Content-Length", "0")]),
    "204": Reply(204),
    "json-empty": json_reply(b""),
    "json-other": json_reply(b'{"jsonrpc":"2.0","id":99,"result":{}}'),
    "json-null": json_reply(b"null"),
    "sse-empty": sse_reply(),
    "sse-progress-only": sse_reply(event(NOTICE)),
    "sse-cut": sse_reply(event(NOTICE), is_whole=False),
    "sse-half-event": sse_reply(event(ANSWER)[:-1]),
    "json-cut": Reply(200, [("Content-Type", "application/json"), ("Content-Length", "99")], [ANSWER], is_whole=False),
    "json-long": json_reply(b" " * 3000),
    "json-long-chunked": Reply(200, [("Content-Type", "application/json")], [b" " * 600] * 3),
    "json-length-lies": Reply(
        200, [("Content-Type", "application/json"), ("Content-Length", "9" * 15)], [], is_whole=False
    ),
    "sse-long": sse_reply(*[b"data: " + b"x" * 600] * 3),
}


@pytest.mark.parametrize("reply", LOST.values(), ids=LOST)
async def test_answer_lost(reply):
    """A request whose answer cannot come any more is lost at once, never an empty success (C10, faults 36, 42)."""
    async with open_rig(answering(reply), settings=Settings(max_message_bytes=1000)) as rig:
        await rig.ask(request())

        [(frame, reason)] = rig.sink.lost
        assert frame.request_id == 1
        assert reason
        assert rig.sink.refused == []


WIDE = '{"jsonrpc":"2.0","id":1,"result":{"é":"\u2028"}}'.encode()
SPLIT = b"\xef\xbb\xbf: hi\r\nretry: 5\r\n\r\nid: 1\rdata:" + NOTICE + b"\r\r"
SPLIT += b"data: " + WIDE[:17] + b"\ndata: " + WIDE[17:] + b"\n\n"


@pytest.mark.parametrize("split", range(1, len(SPLIT), 4))
async def test_split_sweep(split):
    """A stream in two pieces, cut at any byte, gives the same messages (S082, faults 39-41)."""
    stream = [chunk for at in range(split, min(split + 4, len(SPLIT))) for chunk in [SPLIT[:at], SPLIT[at:]]]
    replies = [sse_reply(first, 0.0, second) for first, second in zip(stream[::2], stream[1::2], strict=True)]
    count = len(replies)
    async with open_rig(lambda asked: replies.pop(0)) as rig:
        for _ in range(count):
            await rig.ask(request())

        assert rig.sink.delivered == [NOTICE, WIDE[:17] + b"\n" + WIDE[17:]] * count
        assert rig.sink.lost == []


@pytest.mark.slow
async def test_bulk():
    """Five thousand notifications and ten megabytes come over one answer, whole and in order (C01)."""
    large = ANSWER.replace(b"{}", b'{"x":"' + b"z" * 10_000_000 + b'"}')
    async with open_rig(answering(sse_reply(*[event(NOTICE)] * 5000, event(large)))) as rig:
        await rig.ask(request())

        assert rig.sink.delivered == [*[NOTICE] * 5000, large]


@pytest.mark.parametrize("cut", range(0, len(event(ANSWER)) - 1, 5))
async def test_cut_sweep(cut):
    """An event stream that breaks at any byte before the answer's end loses the request, and only once."""
    async with open_rig(answering(sse_reply(event(ANSWER)[:cut], is_whole=False))) as rig:
        await rig.ask(request())

        assert len(rig.sink.lost) == 1
        assert rig.sink.delivered == []


async def test_no_answer_at_all():
    """A connection that ends before an answer began breaks this send, without the query in words; the next works."""
    replies = [CUT, json_reply(ANSWER)]
    async with open_rig(lambda asked: replies.pop(0), path="?key=CANARY") as rig:
        with pytest.raises(TransportBroken) as caught:
            await rig.ask(request())
        await rig.ask(request())

        assert "CANARY" not in str(caught.value)
        assert rig.sink.delivered == [ANSWER]


async def test_connection_refused():
    """A server that is not there fails the send with the reason in the system's words."""
    async with open_rig(answering(json_reply(ANSWER))) as rig:
        rig.peer.stop()
        with pytest.raises(ConnectFailed, match=r"cannot reach http://127.0.0.1:\d+: Connection refused"):
            await rig.ask(request())


async def test_stream_left_after_answer():
    """Reading stops once the request is answered, although the server keeps the stream open (fault 42)."""
    async with open_rig(answering(sse_reply(event(ANSWER), HOLD))) as rig:
        await rig.ask(request())
        await rig.ask(request())

        assert rig.sink.delivered == [ANSWER, ANSWER]
        rig.leave()
    assert rig.peer.hung_up == 2


async def test_stream_left_when_nobody_waits():
    """Reading stops when nobody waits for the answer any more (B17)."""
    async with open_rig(answering(sse_reply(event(NOTICE), HOLD))) as rig:
        await rig.transport.send(request())  # not expected by the sink

        assert rig.sink.delivered == [NOTICE]
        assert rig.sink.lost == []


async def test_connection_reused_after_late_end():
    """A stream that ends a little after the answer gives its connection back."""
    async with open_rig(answering(sse_reply(event(ANSWER), 0.02))) as rig:
        for _ in range(3):
            await rig.ask(request())
            await trio.testing.wait_all_tasks_blocked(0.05)

        assert rig.peer.accepted == 1


@pytest.mark.parametrize(
    "reply", [sse_reply(event(NOTICE), HOLD), json_reply(b"", slow="1"), sse_reply(HOLD)], ids=["sse", "json", "mute"]
)
async def test_cancel_closes_stream(reply):
    """A cancelled send closes its response stream, which tells a modern server to stop; others go on (B17, B20)."""
    if reply.is_sized:
        reply = Reply(200, [("Content-Type", "application/json"), ("Content-Length", "9")], [b"{", HOLD])

    async with open_rig(lambda asked: reply if b'"id": 1' in asked.body else json_reply(ANSWER_2)) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.ask, request(1))
            await rig.peer.until(lambda peer: len(peer.asked) == 1)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        await rig.peer.until(lambda peer: peer.hung_up == 1)
        await rig.ask(request(2))

        assert rig.sink.delivered[-1] == ANSWER_2
        assert rig.sink.lost == []


async def test_no_socket_left_by_cancels():
    """Sends cancelled at every turn leave the client able to work, and no connection behind (fault 95)."""
    async with open_rig(answering(json_reply(ANSWER))) as rig:
        for turns in range(60):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(rig.ask, request())
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        await rig.ask(request())
        await trio.testing.wait_all_tasks_blocked(0.05)

        assert rig.sink.delivered[-1] == ANSWER
        assert rig.peer.connections <= 16  # at most one pool's worth of what httpcore forgot
        rig.leave()
    assert rig.peer.connections == 0


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────

RECEIPTS = {
    "200-empty": Reply(200),
    "null": json_reply(b"null"),
    "object": json_reply(b"{}"),
    "text": Reply(200, [("Content-Type", "text/plain")], [b"Accepted"]),
    "202-body": Reply(202, [], [b"thanks"]),
    "204": Reply(204),
    "202-json-0": json_reply(b"", 202),
    "error-in-200": json_reply(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}'),
    "sse": sse_reply(event(NOTICE)),
    "cut": Reply(202, [], [b"tha"], is_whole=False),
}


@pytest.mark.parametrize("reply", RECEIPTS.values(), ids=RECEIPTS)
async def test_notification_accepted(reply):
    """Whatever a notification is received with is accepted, and its body ignored (fault 35, S077)."""
    async with open_rig(answering(reply)) as rig:
        await rig.transport.send(notification())

        assert rig.sink.delivered == rig.sink.lost == rig.sink.refused == []
        assert rig.transport.diagnostics().notes == ()


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
async def test_notification_refused(status):
    """A refused notification is noted and does not end the session (fault 35)."""
    async with open_rig(lambda asked: Reply(status) if b'"id"' not in asked.body else json_reply(ANSWER)) as rig:
        await rig.transport.send(notification())
        await rig.ask(request())

        assert rig.transport.diagnostics().notes == (f"notifications/initialized was refused: HTTP {status}",)
        assert rig.sink.delivered == [ANSWER]


# ── the wire session ─────────────────────────────────────────────────────────────────────────────────────────────────


def session_server(session="sess-1", get=405, name="mcp-session-id"):
    def script(asked):
        if asked.method == "GET":
            return Reply(get) if isinstance(get, int) else get
        if asked.method == "DELETE":
            return Reply(200)
        if b'"initialize"' in asked.body:
            return Reply(200, [("Content-Type", "application/json"), (name, session)], [b'{"id":0,"result":{}}'])
        return json_reply(ANSWER) if b'"id"' in asked.body else Reply(202)

    return script


async def test_session_legacy():
    """The id of an initialize answer goes with every later POST, GET and DELETE, with the revision on the last two."""
    async with open_rig(session_server(name="MCP-SESSION-ID")) as rig:
        await rig.initialize()
        await rig.transport.send(notification())
        await rig.ask(request())
        await rig.peer.until(lambda peer: peer.of("GET"))
        rig.leave()

    first, *later = rig.peer.asked
    assert "mcp-session-id" not in first.headers
    assert {asked.method for asked in later} == {"POST", "GET", "DELETE"}
    assert {asked.headers["mcp-session-id"] for asked in later} == {"sess-1"}
    bare = [asked for asked in later if asked.method != "POST"]
    assert {asked.headers["mcp-protocol-version"] for asked in bare} == {"2025-11-25"}
    assert rig.peer.of("GET")[0].headers["accept"] == "text/event-stream"


async def test_session_modern():
    """The modern era has no session: an id in an answer is ignored, there is no GET and no DELETE (C11)."""
    reply = json_reply(ANSWER, Mcp_Session_Id="nosy")
    async with open_rig(answering(reply)) as rig:
        await rig.ask(request(1, "server/discover"))
        rig.transport.session_ready(MODERN)
        await rig.ask(request(1))
        await trio.testing.wait_all_tasks_blocked(0.02)
        rig.leave()

    assert [asked.method for asked in rig.peer.asked] == ["POST", "POST"]
    assert all("mcp-session-id" not in asked.headers for asked in rig.peer.asked)


@pytest.mark.parametrize("session", ["a b", "é", "x" * 5000], ids=["space", "latin", "long"])
async def test_session_id_invalid(session):
    """A session id that is not visible ASCII is noted and not used (S079)."""
    async with open_rig(session_server(session.encode() if session.isascii() else session.encode("latin-1"))) as rig:
        await rig.initialize(MODERN)
        await rig.ask(request())

        assert "mcp-session-id" not in rig.peer.asked[-1].headers
        assert "session id" in rig.transport.diagnostics().notes[0]


async def test_session_not_of_a_failure():
    """A refused initialize gives no session."""
    async with open_rig(answering(Reply(400, [("Mcp-Session-Id", "x")]))) as rig:
        await rig.ask(request(0, "initialize"))
        await rig.ask(request())

        assert "mcp-session-id" not in rig.peer.asked[-1].headers


async def test_session_renewed():
    """A new initialize goes without the old session and brings the new one (C04)."""
    script = [session_server("one"), session_server("two")]
    async with open_rig(lambda asked: script[0](asked)) as rig:
        await rig.initialize(MODERN)
        script.pop(0)
        await rig.ask(request(0, "initialize"))
        await rig.ask(request())

        first, second, third = rig.peer.asked
        assert "mcp-session-id" not in second.headers
        assert third.headers["mcp-session-id"] == "two"
        assert first.headers.get("mcp-session-id") is None


async def test_session_is_secret():
    """The session id, path, query and configured values are in no repr, note or diagnostic (S030, E07)."""
    async with open_rig(session_server("CANARY"), headers={"X": "CANARY"}, path="/CANARY?key=CANARY") as rig:
        await rig.initialize()
        await rig.peer.until(lambda peer: peer.of("GET"))
        await trio.testing.wait_all_tasks_blocked(0.01)

        shown = f"{rig.transport!r} {rig.transport.diagnostics()!r} {rig.transport._client!r}"
        assert "CANARY" not in shown


# ── the GET stream ───────────────────────────────────────────────────────────────────────────────────────────────────

NO_STREAM = {
    "405": Reply(405),
    "404": Reply(404),
    "406": Reply(406),
    "400": Reply(400),
    "401": Reply(401),
    "html": Reply(200, [("Content-Type", "text/html")], [b"<h1>hello"]),
    "json": json_reply(b"{}"),
    "302": Reply(302, [("Location", "/login")]),
}


@pytest.mark.parametrize("reply", NO_STREAM.values(), ids=NO_STREAM)
async def test_stream_refused(reply):
    """A server without a GET stream is connected all the same; it is noted, and not asked again (C06, fault 33)."""
    async with open_rig(session_server(get=reply)) as rig:
        await rig.initialize()
        await rig.peer.until(lambda peer: peer.of("GET"))
        await trio.testing.wait_all_tasks_blocked(0.15)
        await rig.ask(request())

        assert len(rig.peer.of("GET")) == 1
        assert rig.transport.diagnostics().notes[0].startswith("no GET stream")
        assert rig.sink.delivered[-1] == ANSWER


async def test_stream_delivers():
    """Messages of the GET stream are delivered, in pieces of any size."""
    stream = sse_reply(b": hi\n\n", *(bytes([byte]) for byte in event(NOTICE)), HOLD)
    async with open_rig(session_server(get=stream)) as rig:
        await rig.initialize()
        await rig.sink.until(lambda sink: NOTICE in sink.delivered)
        await rig.ask(request())

        assert rig.sink.delivered.count(NOTICE) == 1


@pytest.mark.parametrize("status", [409, 429, 502, 503])
async def test_stream_reopened_after_refusal(status):
    """A passing refusal is tried again with delay, without hurting calls (fault 45)."""
    replies = [Reply(status), Reply(status), sse_reply(event(NOTICE), HOLD)]
    script = session_server()
    async with open_rig(lambda asked: replies.pop(0) if asked.method == "GET" else script(asked)) as rig:
        await rig.initialize()
        await rig.ask(request())
        await rig.sink.until(lambda sink: NOTICE in sink.delivered)

        assert len(rig.peer.of("GET")) == 3


async def test_stream_reopened_after_loss():
    """A cut stream is opened again from the last event id, and calls go on meanwhile (faults 43, 45, C07)."""
    replies = [sse_reply(b"id: e7\n" + event(NOTICE), is_whole=False), sse_reply(event(NOTICE), HOLD)]
    script = session_server()
    async with open_rig(lambda asked: replies.pop(0) if asked.method == "GET" else script(asked)) as rig:
        await rig.initialize()
        await rig.sink.until(lambda sink: sink.delivered.count(NOTICE) == 2)
        await rig.ask(request())

        assert [asked.headers.get("last-event-id") for asked in rig.peer.of("GET")] == [None, "e7"]
        assert rig.sink.delivered[-1] == ANSWER


@pytest.mark.parametrize(
    ("first", "is_told"), [(sse_reply(event(NOTICE)), True), (Reply(503), False)], ids=["was-open", "never-open"]
)
async def test_stream_gone(first, is_told):
    """A stream that was open and is then refused is told to the sink, once: the session may be gone (S205)."""
    replies = [first, Reply(404)]
    script = session_server()
    async with open_rig(lambda asked: replies.pop(0) if asked.method == "GET" else script(asked)) as rig:
        await rig.initialize()
        await rig.peer.until(lambda peer: len(peer.of("GET")) == 2)
        await trio.testing.wait_all_tasks_blocked(0.15)

        told = [(frame.request_id, refusal.status, refusal.had_session) for frame, refusal in rig.sink.refused]
        assert told == [(None, 404, True)] * is_told
        assert len(rig.peer.of("GET")) == 2


async def test_calls_during_open_streams():
    """150 servers with an open GET stream each answer a call each (fault 50)."""
    script = session_server(get=sse_reply(HOLD))
    with trio.fail_after(30):
        async with open_peer(script) as peer, trio.open_nursery() as nursery:
            rigs = []
            for number in range(150):
                spec = ServerSpec(f"s{number}", RemoteTarget(peer.url))
                rig = HttpRig(HttpTransport(spec, Settings()), peer)
                await nursery.start(lambda task_status, rig=rig: rig.transport.run(rig.sink, task_status=task_status))
                rigs.append(rig)
            async with trio.open_nursery() as calls:
                for rig in rigs:
                    calls.start_soon(rig.initialize)
            await peer.until(lambda peer: len(peer.of("GET")) == 150)
            async with trio.open_nursery() as calls:
                for rig in rigs:
                    calls.start_soon(rig.ask, request())

            assert all(rig.sink.delivered[-1] == ANSWER for rig in rigs)
            nursery.cancel_scope.cancel()


# ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LEAVINGS = {
    "200": Reply(200),
    "405": Reply(405),
    "404": Reply(404),
    "500": Reply(500),
    "cut": CUT,
    "never": sse_reply(HOLD),
}


@pytest.mark.parametrize("reply", LEAVINGS.values(), ids=LEAVINGS)
async def test_leave(reply):
    """Leaving sends one DELETE, whatever becomes of it, fails pending calls, leaves no connection (fault 93)."""
    ends = []

    def script(asked):
        if asked.method == "DELETE":
            return reply
        return sse_reply(HOLD) if b'"tools/call"' in asked.body or asked.method == "GET" else session_server()(asked)

    with trio.fail_after(10):
        async with open_peer(script) as peer, trio.open_nursery() as callers:
            rig = HttpRig(HttpTransport(ServerSpec("s", RemoteTarget(peer.url)), Settings()), peer)
            async with trio.open_nursery() as nursery:
                await nursery.start(lambda task_status: rig.transport.run(rig.sink, task_status=task_status))
                await rig.initialize()
                for _ in range(10):
                    callers.start_soon(rig.ask_until_closed, request(), ends)
                await peer.until(lambda peer: len(peer.asked) >= 12)
                started = trio.current_time()
                nursery.cancel_scope.cancel()

            assert trio.current_time() - started < rig.transport.shutdown_bound
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(ends) == 10
            assert [asked.headers["mcp-session-id"] for asked in peer.of("DELETE")] == ["sess-1"]
            assert peer.connections == 0


async def test_leave_when_peer_is_gone():
    """Leaving a server that is gone takes no time and raises nothing (fault 93)."""
    async with open_rig(session_server()) as rig:
        await rig.initialize(MODERN)
        rig.peer.stop()
        rig.leave()

    with pytest.raises(TransportClosed):
        await rig.transport.send(request())
