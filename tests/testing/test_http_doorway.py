"""The HTTP doorway: bounded, deaf to strangers, and nothing a client does leaves a task or an exception behind."""

from __future__ import annotations

import pytest
import trio
from plain_http import open_wire

from mcp_actors.testing.http_doorway import DoorwayLimits, HttpAnswer, HttpRequest, encode_event, open_http_doorway


def echo(request: HttpRequest):
    return HttpAnswer(200, request.body, "text/plain", (("x-method", request.method), ("x-path", request.path)))


async def hold(_):
    await trio.sleep_forever()


async def test_requests_are_answered_in_turn_on_one_connection():
    """A connection serves request after request, with bodies of any size."""
    with trio.fail_after(10):
        async with open_http_doorway(echo) as port, open_wire(f"http://127.0.0.1:{port}") as wire:
            for size in (0, 1, 200_000, 3):
                answer = await wire.ask("POST", "/a?b=c", b"x" * size)

                assert (200, b"x" * size, "/a") == (answer.status, answer.body, answer.headers["x-path"])


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"rubbish\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000\r\n\r\n" + b"y" * 2000, b"413"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\norigin: null\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nhost: LOCALHOST:80\r\norigin: http://127.0.0.1:99\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nmore", b"200"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n", b"100"),
    ],
)
async def test_every_beginning_has_its_status(raw, status):
    """Whatever a client begins with, it gets a status, and the next client is served."""
    with trio.fail_after(10):
        async with open_http_doorway(echo, limits=DoorwayLimits(max_body_bytes=1000)) as port:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(raw)
                assert (await stream.receive_some()).split(b" ")[1] == status
            async with open_wire(f"http://127.0.0.1:{port}") as wire:
                assert (await wire.ask("GET")).status == 200


async def test_request_cut_at_any_byte_leaves_the_doorway_open():
    """A client that goes away in the middle of its request harms nobody."""
    raw = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nbody"
    with trio.fail_after(20):
        async with open_http_doorway(echo) as port:
            for cut in range(len(raw) + 1):
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    await stream.send_all(raw[:cut])
            async with open_wire(f"http://127.0.0.1:{port}") as wire:
                assert (await wire.ask("GET")).status == 200


async def test_request_in_pieces_is_put_together():
    """Every way of cutting a request in two gives the same answer."""
    raw = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nbody"
    with trio.fail_after(20):
        async with open_http_doorway(echo) as port:
            for cut in range(1, len(raw)):
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    await stream.send_all(raw[:cut])
                    await trio.lowlevel.checkpoint()
                    await stream.send_all(raw[cut:])
                    received = b""
                    while not received.endswith(b"body"):
                        received += await stream.receive_some()


async def test_slow_request_times_out():
    """A request that never ends is dropped after its time."""
    with trio.fail_after(10):
        async with open_http_doorway(echo, limits=DoorwayLimits(request_timeout=0.01)) as port:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(b"GET / HTTP/1.1\r\n")

                assert await stream.receive_some() == b""


async def test_client_that_hangs_up_cancels_its_request():
    """End-of-file cancels what runs for the client (rule 3)."""
    ended = trio.Event()

    async def run(_):
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    with trio.fail_after(10):
        async with open_http_doorway(lambda _: run) as port:
            async with open_wire(f"http://127.0.0.1:{port}") as wire:
                await wire.send("GET")
            await ended.wait()


async def test_stream_that_fails_ends_its_connection_only(caplog):
    """An exception in a stream or in the decision is logged and closes that connection alone (rule 1)."""

    def decide(request):
        if request.path == "/decide":
            raise RuntimeError("decision")

        async def run(_):
            raise RuntimeError("stream")

        return run if request.path == "/stream" else HttpAnswer(204)

    with trio.fail_after(10):
        async with open_http_doorway(decide) as port:
            for path in ("/decide", "/stream"):
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    await stream.send_all(b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % path.encode())
                    assert await stream.receive_some() == b""
            async with open_wire(f"http://127.0.0.1:{port}") as wire:
                assert (await wire.ask("GET")).status == 204

    assert [str(record.exc_info[1]) for record in caplog.records] == ["decision", "stream"]


async def test_events_arrive_as_they_are_written():
    """An event stream is readable while it goes on, and the connection is used again after it."""
    go_on = trio.Event()

    async def run(responder):
        await responder.event(b"1")
        await go_on.wait()
        await responder.comment()
        await responder.event(b"2", event_id="a", retry_ms=5)
        await responder.finish()

    with trio.fail_after(10):
        async with open_http_doorway(lambda _: run) as port, open_wire(f"http://127.0.0.1:{port}") as wire:
            await wire.send("GET")
            status, headers = await wire.head()
            assert (status, headers["content-type"]) == (200, "text/event-stream")
            assert await wire.part() == b"data: 1\n\n"
            go_on.set()
            rest = b""
            while (part := await wire.part()) is not None:
                rest += part

            assert rest == b": keep-alive\n\nid: a\nretry: 5\ndata: 2\n\n"
            wire.conn.start_next_cycle()
            assert len((await wire.ask("GET")).body) > 0


async def test_aborted_answer_is_a_dropped_connection():
    """`abort` ends the connection without another byte, before or after the stream began."""

    async def before(responder):
        responder.abort()

    async def after(responder):
        await responder.event(b"1")
        responder.abort()

    with trio.fail_after(10):
        for run, received in ((before, False), (after, True)):
            async with open_http_doorway(lambda _, run=run: run) as port:
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    data = b""
                    while chunk := await stream.receive_some():
                        data += chunk

            assert received == (b"data: 1" in data)
            assert not data.endswith(b"0\r\n\r\n")


async def test_leaving_closes_every_connection():
    """After the block no connection and no stream of it lives."""
    with trio.fail_after(10):
        async with open_http_doorway(lambda _: hold) as port:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")

        async with stream:
            assert await stream.receive_some() == b""
        with pytest.raises(OSError):
            await trio.open_tcp_stream("127.0.0.1", port)


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (b"x", {}, b"data: x\n\n"),
        (b"x\ny", {}, b"data: x\ndata: y\n\n"),
        (b"", {"event_id": "7", "retry_ms": 10}, b"id: 7\nretry: 10\ndata: \n\n"),
    ],
)
def test_event_is_encoded(data, options, expected):
    """One event per block, one data line per line."""
    assert expected == encode_event(data, **options)
