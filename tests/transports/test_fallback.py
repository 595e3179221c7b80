"""The choice between the two HTTP transports, against loopback peers of both kinds and of neither."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import AuthRequired, ConnectFailed, TransportBroken, TransportClosed
from mcp_actors.transports.fallback import FallbackTransport
from mcp_actors.transports.found import Found
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.opening import open_transport
from tests.transports.http_peer import HOLD, Reply, event, json_reply, open_peer, sse_reply
from tests.transports.rig import Rig
from tests.transports.sse_peer import endpoint_event
from tests.transports.test_http import ANSWER, LEGACY, notification, request

HELLO = b'{"jsonrpc":"2.0","id":0,"result":{}}'
ENDPOINT = sse_reply(endpoint_event(b"/messages?sid=1"), event(HELLO), HOLD)


@asynccontextmanager
async def open_rig(script, found=None):
    with trio.fail_after(5):
        async with open_peer(script) as peer, trio.open_nursery() as nursery:
            # One fingerprint for all: the port is the peer's.
            spec = ServerSpec("s", RemoteTarget(peer.url, is_guess=True))
            rig = Rig(FallbackTransport(spec, Settings(), found=Found() if found is None else found(spec)), peer)
            rig.spec, rig.found = spec, rig.transport._found
            nursery.start_soon(rig.serve)
            await trio.testing.wait_all_tasks_blocked()
            yield rig
            nursery.cancel_scope.cancel()


def older(spec):
    found = Found()
    found.remember(spec, is_older=True)
    return found


def server(posted, got=ENDPOINT):
    """A server whose URL answers POST and GET so; the endpoint takes everything."""

    def script(asked):
        if asked.target.startswith("/messages"):
            return Reply(202)
        return got if asked.method == "GET" else posted

    return script


OLDER = {
    "405": Reply(405),
    "404": Reply(404),
    "400": Reply(400),
    "404-html": Reply(404, [("Content-Type", "text/html")], [b"<h1>Cannot POST /sse</h1>"]),
    "400-rpc": json_reply(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}', 400),
}


@pytest.mark.parametrize("posted", OLDER.values(), ids=OLDER)
async def test_falls_back(posted):
    """A POST refused with 400, 404 or 405 and a GET that names an endpoint make it HTTP+SSE, remembered (fault 34)."""
    async with open_rig(server(posted)) as rig:
        await rig.ask(request(1, "server/discover"))
        await rig.ask(request(0, "initialize"))
        await rig.sink.until(lambda sink: sink.delivered == [HELLO])
        rig.transport.session_ready(LEGACY)
        await rig.transport.send(notification())

        assert [(asked.method, asked.target.partition("?")[0]) for asked in rig.peer.asked] == [
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("POST", "/messages"),
            ("POST", "/messages"),
        ]
        assert [frame.method for frame, _ in rig.sink.refused] == ["server/discover"]
        assert rig.transport.kind == "sse"
        assert rig.transport.diagnostics().notes[0].startswith("fell back to HTTP+SSE")
        assert rig.found.is_older(rig.spec)


KEPT = {
    "401": Reply(401),
    "403": Reply(403),
    "429": Reply(429),
    "500": Reply(500),
    "502": Reply(502),
    "503": Reply(503),
    "406": Reply(406),
    "html": Reply(200, [("Content-Type", "text/html")], [b"<h1>Sign in"]),
    "-32022": json_reply(b'{"id":0,"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}}', 400),
    "-32020": json_reply(b'{"id":0,"error":{"code":-32020,"message":"m"}}', 400),
    "-32021": json_reply(b'{"id":0,"error":{"code":-32021,"message":"m"}}', 404),
    "supported": json_reply(b'{"id":0,"error":{"code":-32602,"message":"m","data":{"supported":["2025-03-26"]}}}', 400),
}


@pytest.mark.parametrize("posted", KEPT.values(), ids=KEPT)
async def test_stays(posted):
    """Any other refusal, and a word on revisions, is the session's to judge; no GET is made (fault 34)."""
    async with open_rig(server(posted)) as rig:
        await rig.ask(request(0, "initialize"))

        assert rig.peer.of("GET") == []
        assert len(rig.sink.refused) == 1
        assert rig.transport.kind == "http"
        assert not rig.found.is_older(rig.spec)


async def test_stays_with_working_http():
    """A server that said anything over streamable HTTP is that, whatever it answers later."""
    replies = [json_reply(ANSWER), Reply(404)]
    async with open_rig(lambda asked: replies.pop(0)) as rig:
        await rig.ask(request(1, "server/discover"))
        await rig.ask(request(0, "initialize"))

        assert rig.peer.of("GET") == []
        assert [refusal.status for _, refusal in rig.sink.refused] == [404]


BOTH = {
    "404": (Reply(404), "404", False),
    "500": (Reply(500), "500", True),
    "html": (Reply(200, [("Content-Type", "text/html")], [b"<h1>"]), "text/html", False),
    "no-endpoint": (sse_reply(b": hi\n\n"), "no endpoint event", True),
    "foreign": (sse_reply(endpoint_event(b"https://evil/m"), HOLD), "another origin", False),
    "other-events": (sse_reply(event(b"{}", "hello")), "no endpoint event", True),
}


@pytest.mark.parametrize(("got", "words", "can_retry"), BOTH.values(), ids=BOTH)
async def test_both_fail(got, words, can_retry):
    """When neither works the error shows both attempts, and nothing is remembered (fault 34)."""
    async with open_rig(server(Reply(405), got)) as rig:
        with pytest.raises(ConnectFailed) as caught:
            await rig.ask(request(0, "initialize"))

        text = str(caught.value)
        assert "POST: " in text
        assert "405" in text
        assert "GET, as HTTP+SSE: " in text
        assert words in text
        assert (caught.value.http_status, caught.value.can_retry) == (405, can_retry)
        assert not rig.found.is_older(rig.spec)
        assert len(rig.peer.of("GET")) == 1


async def test_login_for_the_stream():
    """A GET that asks for a login is told as that."""
    async with open_rig(server(Reply(405), Reply(401))) as rig:
        with pytest.raises(AuthRequired):
            await rig.ask(request(0, "initialize"))


async def test_explicit_never_falls_back():
    """A target of type http, or with no guess, is streamable HTTP and nothing else (fault 34)."""
    spec = ServerSpec("s", RemoteTarget("http://h/mcp"))

    assert type(open_transport(spec, Settings(), environ={})) is HttpTransport


async def test_remembered():
    """A server that is remembered is opened as HTTP+SSE at once."""
    async with open_rig(server(Reply(500)), older) as rig:
        await rig.sink.until(lambda sink: sink.delivered == [HELLO])
        await rig.ask(request(1, "server/discover"))
        await rig.ask(request(0, "initialize"))

        assert [asked.method for asked in rig.peer.asked] == ["GET", "POST"]
        assert [refusal.status for _, refusal in rig.sink.refused] == [405]


@pytest.mark.parametrize(("got", "is_kept"), [(Reply(503), False), (Reply(401), True)], ids=["503", "401"])
async def test_forgotten(got, is_kept):
    """A remembered server whose stream is not to be had fails once and is forgotten; a login is no evidence."""
    async with open_rig(server(Reply(500), got), older) as rig:
        await rig.ended.wait()

        assert len(rig.failures) == 1
        assert rig.found.is_older(rig.spec) is is_kept


async def test_moved_to_the_newer_transport():
    """A remembered server that has no such stream any more is served over HTTP in the same life (A06)."""
    async with open_rig(server(Reply(500), Reply(405)), older) as rig:
        await rig.ask(request(0, "initialize"))

        assert [asked.method for asked in rig.peer.asked] == ["GET", "POST"]
        assert [refusal.status for _, refusal in rig.sink.refused] == [500]
        assert (rig.transport.kind, rig.found.is_older(rig.spec)) == ("http", False)
        assert "it was HTTP+SSE before" in rig.transport.diagnostics().notes[0]


async def test_stream_loss():
    """The end of the stream that was fallen back to ends `run` bare, as a broken wire."""
    feed, pouring = trio.open_memory_channel[bytes](1)
    async with open_rig(server(Reply(405), sse_reply(endpoint_event(b"/messages"), pouring))) as rig:
        await rig.ask(request(0, "initialize"))
        feed.close()
        await rig.ended.wait()
        with pytest.raises((TransportBroken, TransportClosed)):
            await rig.transport.send(request())

    assert [type(failure) for failure in rig.failures] == [TransportBroken]
    assert len(rig.sink.endings) == 1


async def test_cancelled_fall_back():
    """A sender cancelled while the stream is opened leaves the HTTP transport in place."""
    async with open_rig(server(Reply(405), sse_reply(HOLD))) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.ask, request(0, "initialize"))
            await rig.peer.until(lambda peer: peer.of("GET"))
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        await rig.peer.until(lambda peer: peer.hung_up == 1)

        assert rig.transport.kind == "http"
        assert rig.failures == []
