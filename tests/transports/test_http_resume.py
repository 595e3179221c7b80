"""Resuming a response stream: the rule on a virtual clock, and the whole transport against a loopback peer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import trio

from mcp_actors.errors import ConnectFailed, TransportBroken
from mcp_actors.protocol.types import Era, ServerInfo
from mcp_actors.sent_secrets import SentSecrets
from mcp_actors.testing.contracts import RecordingSink
from mcp_actors.transports.cursor import Cursor
from mcp_actors.transports.http_answer import HttpAnswer
from mcp_actors.transports.http_resume import Resuming, resume
from tests.transports.http_peer import CUT, HOLD, Reply, event, json_reply, sse_reply
from tests.transports.test_http import ANSWER, LEGACY, MODERN, NOTICE, open_rig, request

OLDEST = ServerInfo("2025-03-26", Era.LEGACY)
SSE = "text/event-stream"


class Body:
    """The answer of an HTTP library: these chunks, then the end, or whatever is raised."""

    is_stream_consumed = False

    def __init__(self, *chunks, kind=SSE):
        self.headers = {"content-type": kind}
        self.request = SimpleNamespace(headers={})
        self.stream = self._pour(chunks)

    async def _pour(self, chunks):
        for chunk in chunks:
            await trio.lowlevel.checkpoint()
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aclose(self):
        await self.stream.aclose()


class Endpoint:
    """What `resume` asks of an HTTP client: one GET after the other, each at its moment."""

    def __init__(self, *replies):
        self.replies = list(replies)
        # (moment, Last-Event-ID) of each request.
        self.asked = []

    async def request(self, method, headers):
        assert method == "GET"
        self.asked.append((trio.current_time(), dict(headers).get(b"Last-Event-ID")))
        await trio.lowlevel.checkpoint()
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        status, body = reply if isinstance(reply, tuple) else (200, reply)
        return HttpAnswer(status, "http://h/", body, trio.lowlevel.checkpoint, SentSecrets(), (OSError,))


async def resumed(*replies, cursor=None, headers=list):
    """Run `resume` and tell the moments and ids of its requests and what the sink was told."""
    endpoint, sink, frame = Endpoint(*replies), RecordingSink(), request()
    sink.expect(1)
    start = trio.current_time()
    cursor = cursor or Cursor("e1")
    await resume(endpoint, headers, frame, sink, cursor, reason="cut", max_bytes=1000, resuming=Resuming())
    return [(round(moment - start, 6), mark) for moment, mark in endpoint.asked], sink


PASSING = {
    "500": (500, Body(kind="")),
    "409": (409, Body(kind="")),
    "429": (429, Body(kind="")),
    "unreachable": ConnectFailed(reason="cannot reach h"),
    "cut": TransportBroken(reason="cut"),
    "empty": None,
    "comment": Body(b": hi\n\n"),
    "retry-alone": Body(b"retry: 4000\n\n"),
    "broken": Body(OSError("gone")),
}


async def test_answer_after_pause(autojump_clock):
    """Without a wish of the server the pause is one second; the id goes along (C07, fault 42b)."""
    asked, sink = await resumed(Body(event(ANSWER)))

    assert asked == [(1.0, b"e1")]
    assert (sink.delivered, sink.lost) == ([ANSWER], [])


async def test_a_server_that_went_away_is_not_said_to_be_unreachable(autojump_clock):
    """The request did arrive: the loss says that reading on failed, and why."""
    _, sink = await resumed(*[ConnectFailed(reason="cannot reach h")] * 2)

    assert [reason for _, reason in sink.lost] == ["the event stream could not be resumed: cannot reach h"]


@pytest.mark.parametrize("wish", [0.1, 0.5, 3.0, 45.0])
async def test_wish_exactly(wish, autojump_clock):
    """The pause that `retry` asked for is waited for exactly (C07, fault 44)."""
    asked, _ = await resumed(Body(event(ANSWER)), cursor=Cursor("e1", wish))

    assert asked == [(wish, b"e1")]


async def test_wish_and_id_move(autojump_clock):
    """A resumed stream brings new ids and pauses; a server may close as often as it likes (C07)."""
    bodies = [Body(b"id: e%d\nretry: %d00\ndata:\n\n" % (number, number)) for number in range(2, 9)]
    asked, sink = await resumed(*bodies, Body(event(NOTICE), event(ANSWER)))

    assert [mark for _, mark in asked] == [b"e%d" % number for number in range(1, 9)]
    assert [moment for moment, _ in asked] == [1.0, 1.2, 1.5, 1.9, 2.4, 3.0, 3.7, 4.5]
    assert sink.delivered == [NOTICE, ANSWER]


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_two_attempts(reply, autojump_clock):
    """Two attempts in a row that bring nothing lose the request; none is made after them (fault 42)."""
    replies = [Body() if reply is None else reply, (503, Body(kind="")), Body(event(ANSWER))]
    asked, sink = await resumed(*replies)

    assert len(asked) == 2
    assert [reason for _, reason in sink.lost] == ["the event stream could not be resumed: HTTP 503"]
    assert sink.delivered == []


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_second_attempt_works(reply, autojump_clock):
    """One failed attempt hurts nobody."""
    asked, sink = await resumed(Body() if reply is None else reply, Body(event(ANSWER)))

    assert len(asked) == 2
    assert (sink.delivered, sink.lost) == ([ANSWER], [])


FINAL = {
    "404": (404, Body(kind="")),
    "405": (405, Body(kind="")),
    "400": (400, Body(kind="")),
    "401": (401, Body(kind="")),
    "html": (200, Body(b"<h1>", kind="text/html")),
    "redirect": ConnectFailed(reason="redirected", http_status=302),
    "too-long": Body(b"data: " + b"x" * 2000),
    "reset": Body(b"id\ndata:\n\n"),
}


@pytest.mark.parametrize("reply", FINAL.values(), ids=FINAL)
async def test_lost_at_once(reply, autojump_clock):
    """A refusal that does not pass, and a stream that took its id back, lose the request at once (fault 42c)."""
    asked, sink = await resumed(reply, Body(event(ANSWER)))

    assert len(asked) == 1
    assert len(sink.lost) == 1


async def test_other_session(autojump_clock):
    """A stream of a session that is not ours any more is not asked for."""
    asked, sink = await resumed(Body(event(ANSWER)), headers=lambda: None)

    assert asked == []
    assert [reason for _, reason in sink.lost] == ["cut"]


async def test_answered_meanwhile(autojump_clock):
    """When the answer comes over another stream during the pause, nothing is asked and nothing is lost (C09)."""
    endpoint, sink = Endpoint(), RecordingSink()
    sink.expect(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: resume(endpoint, list, request(), sink, Cursor("a"), reason="cut", max_bytes=9, resuming=Resuming())
        )
        await trio.sleep(0.5)
        sink.deliver(ANSWER)

    assert endpoint.asked == sink.lost == []


# ── the whole transport ──────────────────────────────────────────────────────────────────────────────────────────────

PRIMED = b"id: e1\nretry: 100\ndata:\n\n"


def resuming_server(first, *resumed):
    """A session server whose calls are answered with `first` and whose resumed streams with the rest, in order."""
    rest = list(resumed)

    def script(asked):
        if asked.method == "DELETE":
            return Reply(405)
        if asked.method == "GET":
            return rest.pop(0) if "last-event-id" in asked.headers else Reply(405)
        if b'"initialize"' in asked.body:
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}', mcp_session_id="sess-1")
        return first

    return script


ENDS = {
    "graceful": sse_reply(PRIMED),
    "cut": sse_reply(PRIMED, is_whole=False),
    "progress-first": sse_reply(event(NOTICE), PRIMED),
    "half-event": sse_reply(PRIMED, event(ANSWER)[:-1]),
}


@pytest.mark.parametrize("info", [LEGACY, OLDEST], ids=lambda info: info.revision)
@pytest.mark.parametrize("first", ENDS.values(), ids=ENDS)
async def test_call_resumed(first, info):
    """A call whose stream ended early gets its answer over a GET of the same session (C07, S081, fault 42b)."""
    async with open_rig(resuming_server(first, sse_reply(event(NOTICE), event(ANSWER)))) as rig:
        await rig.initialize(info)
        await rig.ask(request())

        assert rig.sink.delivered[-1] == ANSWER
        assert rig.sink.lost == []
        [again] = [asked for asked in rig.peer.of("GET") if "last-event-id" in asked.headers]
    assert again.headers["last-event-id"] == "e1"
    assert again.headers["mcp-session-id"] == "sess-1"
    assert again.headers["mcp-protocol-version"] == info.revision
    assert again.headers["accept"] == SSE


async def test_initialize_resumed():
    """The answer to initialize may come over a resumed stream as well, with the session that came first."""
    hello = b'{"jsonrpc":"2.0","id":0,"result":{}}'

    def script(asked):
        if asked.method == "POST":
            return sse_reply(PRIMED, mcp_session_id="sess-1")
        return sse_reply(event(hello)) if "last-event-id" in asked.headers else Reply(405)

    async with open_rig(script) as rig:
        await rig.initialize()

        assert rig.sink.delivered == [hello]
        assert rig.peer.of("GET")[0].headers["mcp-session-id"] == "sess-1"


@pytest.mark.parametrize(
    ("first", "info"),
    [(sse_reply(event(NOTICE)), LEGACY), (sse_reply(PRIMED), MODERN), (sse_reply(PRIMED, is_whole=False), MODERN)],
    ids=["no-id", "modern", "modern-cut"],
)
async def test_call_not_resumed(first, info):
    """Without an event id, and in the modern era always, the call is lost at once; no GET (C11, fault 42)."""
    async with open_rig(resuming_server(first)) as rig:
        await rig.initialize(info)
        await rig.ask(request())

        assert len(rig.sink.lost) == 1
        assert not [asked for asked in rig.peer.of("GET") if "last-event-id" in asked.headers]


async def test_stream_forgotten():
    """A resumption that is answered 404 loses the call at once; the next call works (fault 42c)."""
    first = [sse_reply(PRIMED), json_reply(ANSWER)]
    script = resuming_server(None, Reply(404))
    async with open_rig(lambda asked: script(asked) or first.pop(0)) as rig:
        await rig.initialize()
        await rig.ask(request())
        lost = list(rig.sink.lost)
        await rig.ask(request())

        assert [reason for _, reason in lost] == ["the event stream could not be resumed: HTTP 404"]
        assert rig.sink.delivered[-1] == ANSWER


async def test_cursors_are_apart():
    """Two calls whose streams end resume each from its own id (C07)."""
    first = {
        1: sse_reply(b"id: a\nretry: 100\ndata:\n\n"),
        2: sse_reply(b"id: b\nretry: 100\ndata:\n\n"),
    }
    answers = {"a": ANSWER, "b": ANSWER.replace(b'"id":1', b'"id":2')}

    def script(asked):
        if asked.method == "GET":
            mark = asked.headers.get("last-event-id")
            return sse_reply(event(answers[mark])) if mark else Reply(405)
        if b'"initialize"' in asked.body:
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}')
        return first[2 if b'"id": 2' in asked.body else 1]

    async with open_rig(script) as rig:
        await rig.initialize()
        async with trio.open_nursery() as calls:
            calls.start_soon(rig.ask, request(1))
            calls.start_soon(rig.ask, request(2))

        assert set(answers.values()) <= set(rig.sink.delivered)
        assert rig.sink.lost == []


@pytest.mark.parametrize("first", [sse_reply(PRIMED, HOLD), sse_reply(PRIMED)], ids=["open", "resuming"])
async def test_answer_over_get_stream(first):
    """An answer that comes over the GET stream ends its call, whatever its own stream does (C09)."""
    called = trio.Event()

    async def push():
        await called.wait()
        return sse_reply(event(ANSWER), HOLD)

    def script(asked):
        if asked.method == "GET":
            return sse_reply(HOLD) if "last-event-id" in asked.headers else push()
        if b'"initialize"' in asked.body:
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}')
        called.set()
        return first

    async with open_rig(script) as rig:
        await rig.initialize()
        await rig.ask(request())

        assert rig.sink.delivered[-1] == ANSWER
        assert rig.sink.lost == []


@pytest.mark.parametrize("cut", range(len(PRIMED + event(ANSWER))))
async def test_cut_sweep(cut):
    """Cut after any byte, a stream whose id arrived is resumed, and any other call is lost: never both, never none."""
    whole = PRIMED + event(ANSWER)
    async with open_rig(resuming_server(sse_reply(whole[:cut], is_whole=False), sse_reply(event(ANSWER)))) as rig:
        await rig.initialize()
        rig.sink.delivered.clear()
        await rig.ask(request())

        resumes = cut >= len(PRIMED)
        assert rig.sink.delivered == ([ANSWER] if resumes else [])
        assert len(rig.sink.lost) == (0 if resumes else 1)


async def test_cancelled_while_waiting():
    """A call cancelled during the pause leaves nothing behind; the transport stays usable."""
    script = resuming_server(sse_reply(b"id: e1\nretry: 60000\ndata:\n\n"))
    async with open_rig(script) as rig:
        await rig.initialize()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.ask, request())
            await rig.peer.until(lambda peer: len(peer.of("POST")) == 2)
            await trio.testing.wait_all_tasks_blocked(0.02)
            nursery.cancel_scope.cancel()

        assert "exchanges: 0 active" in repr(rig.transport)
        assert rig.sink.lost == []


# ── a second handshake ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_second_handshake():
    """A new initialize leaves the old session with its GET stream; the next session_ready opens a new one (C04)."""
    sessions = iter(["one", "two", "three"])

    def script(asked):
        if asked.method == "GET":
            return sse_reply(event(NOTICE), HOLD)
        if b'"initialize"' in asked.body:
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}', mcp_session_id=next(sessions))
        return json_reply(ANSWER) if asked.method == "POST" else Reply(200)

    async with open_rig(script) as rig:
        for number in (1, 2, 3):
            await rig.initialize()
            await rig.peer.until(lambda peer, number=number: len(peer.of("GET")) == number)
            await rig.peer.until(lambda peer, number=number: peer.hung_up == number - 1)
            await rig.ask(request())
        rig.leave()

    assert [asked.headers["mcp-session-id"] for asked in rig.peer.of("GET")] == ["one", "two", "three"]
    assert all("last-event-id" not in asked.headers for asked in rig.peer.of("GET"))
    assert [asked.headers["mcp-session-id"] for asked in rig.peer.of("DELETE")] == ["three"]
    hellos = [asked for asked in rig.peer.of("POST") if b'"initialize"' in asked.body]
    assert all("mcp-session-id" not in asked.headers for asked in hellos)


async def test_session_lost_then_renewed():
    """Three calls are refused with had_session; after one initialize they work (fault 32, the wire's part)."""
    gone = [False]

    def script(asked):
        if asked.method != "POST":
            return Reply(405)
        if b'"initialize"' in asked.body:
            gone[0] = False
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}', mcp_session_id="s")
        return Reply(404) if gone[0] else json_reply(ANSWER)

    async with open_rig(script) as rig:
        await rig.initialize()
        gone[0] = True
        async with trio.open_nursery() as calls:
            for number in (1, 2, 3):
                calls.start_soon(rig.ask, request(number))
        assert [refusal.had_session for _, refusal in rig.sink.refused] == [True] * 3
        await rig.initialize()
        await rig.ask(request())

        assert rig.sink.delivered[-1] == ANSWER


async def test_resumption_ends_with_its_session():
    """A stream of the session before is not resumed in the next one; its call is lost."""
    pause = b"id: e1\nretry: 200\ndata:\n\n"
    script = resuming_server(sse_reply(pause), sse_reply(event(ANSWER)))
    sessions = iter(["one", "two"])

    def renewing(asked):
        if b'"initialize"' in asked.body:
            return json_reply(b'{"jsonrpc":"2.0","id":0,"result":{}}', mcp_session_id=next(sessions))
        return script(asked)

    async with open_rig(renewing) as rig:
        await rig.initialize()
        async with trio.open_nursery() as calls:
            calls.start_soon(rig.ask, request())
            await rig.peer.until(lambda peer: len(peer.of("POST")) == 2)
            await rig.ask(request(0, "initialize"))

        assert len(rig.sink.lost) == 1
        assert ANSWER not in rig.sink.delivered


async def test_connection_lost_while_resuming():
    """A server that hangs up on every attempt loses the call after two of them."""
    async with open_rig(resuming_server(sse_reply(PRIMED), CUT, CUT)) as rig:
        await rig.initialize()
        await rig.ask(request())

        assert len(rig.sink.lost) == 1
