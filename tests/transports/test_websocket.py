"""WebSocket over memory streams on a virtual clock, over loopback, and against servers that are none."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio.testing
import trio_websocket
from wsproto.utilities import generate_accept_token

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import AuthRequired, ConnectFailed, TransportBroken, TransportClosed
from mcp_actors.testing.contracts import RecordingSink, echo_frame
from mcp_actors.transports.frame_portions import MAX_FRAMES
from mcp_actors.transports.websocket import WebSocketTransport
from tests.transports.rig import Rig
from tests.transports.ws_peer import open_ws_peer

URL = "ws://h.test:81/mcp?key=CANARY"


def make(peer, *, url=URL, headers=None, settings=None, **options):
    spec = ServerSpec("s", RemoteTarget(url, transport=TransportName.WS, headers=headers or {}))
    return WebSocketTransport(spec, settings or Settings(), dial=peer.dial, **options)


@asynccontextmanager
async def open_rig(*, url=URL, headers=None, settings=None, **options):
    async with open_ws_peer(**options) as peer, trio.open_nursery() as nursery:
        rig = Rig(make(peer, url=url, headers=headers, settings=settings), peer)
        rig.leave = nursery.cancel_scope.cancel
        await nursery.start(rig.serve)
        yield rig
        nursery.cancel_scope.cancel()


# ── the handshake ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_handshake(autojump_clock):
    """The handshake offers the subprotocol, and carries path, query, host and configured headers (S084)."""
    headers = {"Authorization": "Bearer t", "Sec-WebSocket-Key": "mine", "X-Claude-Code-Ide-Authorization": "u"}
    async with open_rig(headers=headers) as rig:
        [(path, got, offered)] = rig.peer.asked

    assert (path, offered) == ("/mcp?key=CANARY", ("mcp",))
    assert (got["authorization"], got["x-claude-code-ide-authorization"]) == ("Bearer t", "u")
    assert rig.transport.diagnostics().notes == ()


@pytest.mark.parametrize(
    ("url", "headers", "expected"),
    [
        ("ws://h.test/", {}, b"h.test"),
        ("ws://h.test:81/", {}, b"h.test:81"),
        ("ws://me:pw@h.test/", {}, b"h.test"),
        ("ws://[::1]:81/", {}, b"[::1]:81"),
        ("ws://h.test/", {"Host": "other.test"}, b"other.test"),
    ],
)
async def test_host(url, headers, expected, autojump_clock):
    """The Host header is the URL's, without credentials, unless one is configured."""
    heads = []

    async def raw(stream):
        heads.append(await stream.receive_some(5000))
        await stream.aclose()

    async with open_ws_peer(raw=raw) as peer:
        with pytest.raises(ConnectFailed):
            await make(peer, url=url, headers=headers).run(RecordingSink())

    lines = heads[0].split(b"\r\n")
    assert [line.partition(b": ")[2] for line in lines if line.lower().startswith(b"host:")] == [expected]


async def test_handshake_that_cannot_be_sent(autojump_clock):
    """A wire that breaks before the request is written fails the connect with its reason; nobody waits for ever."""

    class Broken(trio.abc.Stream):
        """Takes nothing, and says nothing."""

        async def receive_some(self, max_bytes=None):
            await trio.sleep_forever()

        async def aclose(self):
            await trio.lowlevel.checkpoint()

        async def send_all(self, data):
            raise trio.BrokenResourceError("the tunnel fell in")

        async def wait_send_all_might_not_block(self):
            await trio.lowlevel.checkpoint()

    async def dial(url, *, environ=None):
        return Broken()

    spec = ServerSpec("s", RemoteTarget(URL, transport=TransportName.WS))
    with pytest.raises(ConnectFailed, match="hung up during the WebSocket handshake: the tunnel fell in"):
        await WebSocketTransport(spec, Settings(), dial=dial).run(RecordingSink())


async def test_subprotocol_not_chosen(autojump_clock):
    """A server that chooses no subprotocol is served all the same; it is noted."""
    async with open_rig(subprotocol=None) as rig:
        await rig.answered(echo_frame(1))

        assert rig.transport.diagnostics().notes == ("the server did not choose the subprotocol mcp",)


def acceptance(request, *lines):
    """What a server says to agree to a handshake, with more header lines."""
    key = next(line for line in request.split(b"\r\n") if b"Key" in line)
    accept = generate_accept_token(key.partition(b": ")[2])
    head = b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: " + accept
    return b"\r\n".join([head, *lines, b"", b""])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"Sec-WebSocket-Protocol: other", "unrecognized subprotocol other"),
        (b"Sec-WebSocket-Extensions: permessage-deflate", "unrecognized extension permessage-deflate"),
        (b"no header", "illegal header line"),
    ],
)
async def test_handshake_agreed_to_wrongly(line, words, autojump_clock):
    """The error says what was wrong with the server's words, not what came of that in a library."""

    async def raw(stream):
        await stream.send_all(acceptance(await stream.receive_some(5000), line))
        await trio.sleep_forever()

    async with open_ws_peer(raw=raw) as peer:
        with pytest.raises(ConnectFailed, match=f"does not speak WebSocket: .*{words}"):
            await make(peer).run(RecordingSink())


REFUSALS = {
    "401": (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", AuthRequired, "401", None),
    "403": (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", AuthRequired, "403", None),
    "401-open-end": (b"HTTP/1.1 401 No\r\nContent-Type: text/html\r\n\r\n<h1>", AuthRequired, "401", None),
    "404": (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", ConnectFailed, "404", False),
    "302": (b"HTTP/1.1 302 No\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", ConnectFailed, "302", False),
    "200": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ConnectFailed, "200", False),
    "503": (b"HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", ConnectFailed, "503", True),
    "503-open-end": (b"HTTP/1.1 503 No\r\nretry-after: 7\r\n\r\n", ConnectFailed, "503", True),
    "silence": (b"", ConnectFailed, "hung up", True),
    "half": (b"HTTP/1.1 101 Switching", ConnectFailed, "hung up", True),
    "other": (b"SSH-2.0-OpenSSH_9.6\r\n", ConnectFailed, "", True),
    "bad-accept": (
        b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
        ConnectFailed,
        "",
        True,
    ),
    "endless-head": (b"HTTP/1.1 101 S\r\n" + b"X: y\r\n" * 50_000, ConnectFailed, "", True),
    "endless-body": (b"HTTP/1.1 500 S\r\n\r\n" + b"x" * 300_000, ConnectFailed, "500", True),
}


@pytest.mark.parametrize(("said", "kind", "words", "can_retry"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
async def test_handshake_refused(said, kind, words, can_retry, is_closed, autojump_clock):
    """A refused handshake fails the connect, or asks for a login, with its status; nothing hangs or grows (S085)."""

    async def raw(stream):
        await stream.receive_some(5000)
        await stream.send_all(said)
        if is_closed:
            await stream.aclose()
        else:
            await trio.sleep(5)
            await stream.aclose()

    async with open_ws_peer(raw=raw) as peer:
        with pytest.raises((ConnectFailed, AuthRequired)) as caught:
            await make(peer).run(RecordingSink())

    error = caught.value
    assert type(error) is kind
    assert words in str(error)
    assert "CANARY" not in str(error)
    assert getattr(error, "can_retry", None) is can_retry
    if "503" in words:
        assert error.retry_after == 7.0
    if kind is AuthRequired:
        assert "headers" in error.remedy


async def test_handshake_cancelled(autojump_clock):
    """A handshake that is never answered can be left at any time; the stream is closed."""

    async def raw(stream):
        await trio.sleep_forever()

    async with open_ws_peer(raw=raw) as peer:
        with trio.move_on_after(3) as patience:
            await make(peer).run(RecordingSink())

        assert patience.cancelled_caught
        with pytest.raises(trio.BrokenResourceError):
            await peer.streams[0].send_all(b"x")


async def test_unreachable(autojump_clock):
    """A host that is not there fails the connect in the dialler's words."""

    async def dial(url, *, environ=None):
        raise ConnectFailed(reason="cannot reach h")

    spec = ServerSpec("s", RemoteTarget(URL, transport=TransportName.WS))
    with pytest.raises(ConnectFailed, match="cannot reach h"):
        await WebSocketTransport(spec, Settings(), dial=dial).run(RecordingSink())


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_text_frames(autojump_clock):
    """Each message is one text frame with the frame's own text (S084)."""
    async with open_rig() as rig:
        await rig.answered(echo_frame(1, "é\u2028\U0001f600"))

        assert rig.peer.received == [echo_frame(1, "é\u2028\U0001f600").data.decode()]


async def test_fragments(autojump_clock):
    """A message in many frames and reads is one message."""
    whole = echo_frame(1, "x" * 1000).data

    async def raw(stream):
        await stream.send_all(acceptance(await stream.receive_some(5000)))
        frames = b"".join(
            bytes([(0x80 if last else 0) | (0 if index else 1), 126]) + len(part).to_bytes(2, "big") + part
            for index, part in enumerate([whole[:300], whole[300:700], whole[700:]])
            for last in [index == 2]
        )
        for byte in frames:
            await stream.send_all(bytes([byte]))
        await trio.sleep_forever()

    async with open_rig(raw=raw) as rig:
        await rig.sink.until(lambda sink: sink.delivered)

        assert rig.sink.delivered == [whole]


async def test_binary_frame(autojump_clock):
    """A binary frame breaks the wire, with the code for it."""

    async def handler(socket):
        await socket.send_message(b"{}")
        with pytest.raises(trio_websocket.ConnectionClosed):
            await socket.get_message()

    async with open_rig(handler=handler) as rig:
        await rig.ended.wait()

        assert "binary" in str(rig.failures[0])
        assert rig.peer.sockets[0].closed.code == 1003


@pytest.mark.parametrize("text", ["x" * 1001, "é" * 501, "x" * 500_000], ids=["by-one", "wide", "by-far"])
async def test_message_too_large(text, autojump_clock):
    """A message over the bound breaks the wire (E09, S083)."""

    async def handler(socket):
        await socket.send_message(text)
        await socket.get_message()

    async with open_rig(handler=handler, settings=Settings(max_message_bytes=1000)) as rig:
        await rig.ended.wait()

        assert str(rig.failures[0]) == "message larger than 1000 bytes"


# ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deadline(1000)
async def test_ping_answered(autojump_clock):
    """A silent server that answers pings is left alone."""
    async with open_rig() as rig:
        await trio.sleep(500)
        await rig.answered(echo_frame(1))

        assert rig.failures == []


async def test_silence(autojump_clock):
    """A server that answers neither messages nor pings breaks the wire after both waits (S127)."""

    async def mute(socket):
        socket._stream_lock.acquire_nowait()
        await trio.sleep_forever()

    async with open_rig(handler=mute) as rig:
        began = trio.current_time()
        await rig.ended.wait()

        assert "nothing was heard for 40 s" in str(rig.failures[0])
        assert trio.current_time() - began <= 40 + rig.transport.shutdown_bound
        assert len(rig.sink.endings) == 1


@pytest.mark.deadline(1000)
async def test_slow_upload(autojump_clock):
    """A large message that moves slowly is a sign of life, however long it takes (S127)."""

    class Slow(trio.abc.Stream):
        """Reads 128 KiB every five seconds."""

        def __init__(self, stream):
            self.stream = stream

        async def receive_some(self, max_bytes=None):
            await trio.sleep(5)
            return await self.stream.receive_some(128 * 1024)

        async def send_all(self, data):
            await self.stream.send_all(data)

        async def wait_send_all_might_not_block(self):
            await trio.lowlevel.checkpoint()

        async def aclose(self):
            await self.stream.aclose()

    options = {"wrap": Slow, "make_pair": trio.testing.lockstep_stream_pair}
    async with open_ws_peer(**options) as peer, trio.open_nursery() as nursery:
        rig = Rig(make(peer), peer)
        await nursery.start(rig.serve)
        rig.sink.expect(1)
        await rig.transport.send(echo_frame(1, "x" * 3_000_000))
        await rig.sink.until(lambda sink: sink.delivered)

        assert trio.current_time() > 100
        assert rig.failures == []
        nursery.cancel_scope.cancel()


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def close_in_order(rig):
    await rig.peer.sockets[0].aclose(1001, "going\x1b[31m away")


async def close_abruptly(rig):
    await rig.peer.streams[0].aclose()


async def send_garbage(rig):
    await rig.peer.streams[0].send_all(b"\xff\xff\xff\xff")


async def send_masked(rig):
    await rig.peer.streams[0].send_all(b"\x81\x80\0\0\0\0")


async def send_bad_text(rig):
    await rig.peer.streams[0].send_all(b"\x81\x01\xff")


ENDS = {
    "closed": (close_in_order, "the server closed the connection: 1001 GOING_AWAY: going away"),
    "cut": (close_abruptly, "the connection ended without a word"),
    "garbage": (send_garbage, "the connection was closed: 1002 PROTOCOL_ERROR: "),
    "masked": (send_masked, "the connection was closed: 1002 PROTOCOL_ERROR: client received unexpected masked frame"),
    "bad-text": (send_bad_text, "the connection was closed: 1007 "),
}


@pytest.mark.parametrize(("end", "words"), ENDS.values(), ids=ENDS)
async def test_end(end, words, autojump_clock):
    """The peer's end is a broken wire: `run` raises, the sink knows, later sends say the same (S120, fault 17)."""
    async with open_rig() as rig:
        await rig.answered(echo_frame(1))
        await end(rig)
        await rig.ended.wait()
        with pytest.raises(TransportBroken) as caught:
            await rig.transport.send(echo_frame(2))

        assert words in str(rig.failures[0])
        assert str(rig.failures[0]) == str(rig.sink.endings[0]) == str(caught.value)


@pytest.mark.parametrize("is_first", [True, False], ids=["with-the-handshake", "later"])
async def test_a_flood_of_frames_keeps_nobody_waiting(is_first):
    """Tens of thousands of pongs in few reads are taken in portions, with turns for others between (invariant 4)."""
    turns, flood, is_up = 0, b"\x8a\x00" * 30_000 + b"\x81\x02{}", trio.Event()

    async def raw(stream):
        head = acceptance(await stream.receive_some(5000), b"Sec-WebSocket-Protocol: mcp")
        await stream.send_all(head + flood if is_first else head)
        await is_up.wait()
        await stream.send_all(b"" if is_first else flood)
        await trio.sleep_forever()

    async def take_turns():
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turns)
            async with open_rig(raw=raw) as rig:
                is_up.set()
                await rig.sink.until(lambda sink: sink.delivered)
            nursery.cancel_scope.cancel()

    assert turns >= 30_000 / MAX_FRAMES


FIRST, SECOND = echo_frame(1), echo_frame(2, "é" * 200)


@pytest.mark.parametrize("cut", range(len(FIRST.data) + len(SECOND.data) + 6))
async def test_cut_sweep(cut, autojump_clock):
    """Cut after any byte, what arrived whole is delivered, the wire ends once, and says so."""

    class Cutting(trio.abc.Stream):
        """Lets the handshake through and then `cut` bytes."""

        def __init__(self, stream):
            self.stream, self.left = stream, None

        async def send_all(self, data):
            if self.left is None:
                self.left = cut
                await self.stream.send_all(data)
                return
            part, self.left = data[: self.left], max(self.left - len(data), 0)
            await self.stream.send_all(part)
            if len(part) < len(data):
                await self.stream.aclose()

        async def receive_some(self, max_bytes=None):
            return await self.stream.receive_some(max_bytes)

        async def wait_send_all_might_not_block(self):
            await trio.lowlevel.checkpoint()

        async def aclose(self):
            await self.stream.aclose()

    async def handler(socket):
        await socket.send_message(FIRST.data.decode())
        await socket.send_message(SECOND.data.decode())
        await trio.sleep_forever()

    async with open_ws_peer(handler=handler, wrap=Cutting) as peer:
        rig = Rig(make(peer), peer)
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.serve)
            await rig.ended.wait()

    ends = [2 + len(FIRST.data), 6 + len(FIRST.data) + len(SECOND.data)]
    assert rig.sink.delivered == [frame.data for frame, end in zip([FIRST, SECOND], ends, strict=True) if cut >= end]
    assert len(rig.failures) == len(rig.sink.endings) == 1


async def test_leave_writes_what_was_accepted(autojump_clock):
    """Leaving writes the frames that were accepted, closes in order, and takes no time (S144)."""
    async with open_ws_peer() as peer:
        async with trio.open_nursery() as nursery:
            rig = Rig(make(peer), peer)
            await nursery.start(rig.serve)
            for number in range(5):
                await rig.transport.send(echo_frame(number))
            began = trio.current_time()
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

        assert trio.current_time() == began
        assert len(peer.received) == 5
        assert peer.sockets[0].closed.code == 1000
        with pytest.raises(TransportClosed):
            await rig.transport.send(echo_frame(9))


async def test_leave_a_stuck_server(autojump_clock):
    """A server that never closes costs a second."""

    async def stuck(socket):
        socket._stream_lock.acquire_nowait()
        await trio.sleep_forever()

    async with open_ws_peer(handler=stuck) as peer:
        async with trio.open_nursery() as nursery:
            rig = Rig(make(peer), peer)
            await nursery.start(rig.serve)
            began = trio.current_time()
            nursery.cancel_scope.cancel()

        assert trio.current_time() - began <= rig.transport.shutdown_bound
        with pytest.raises(trio.BrokenResourceError):
            await peer.streams[0].send_all(b"x")


@pytest.mark.parametrize("turns", range(25))
async def test_cancelled_at_any_turn(turns, autojump_clock):
    """`run` cancelled at any turn of opening or serving ends bare, and leaves no task."""
    before = trio.lowlevel.current_statistics().tasks_living
    async with open_ws_peer() as peer:
        async with trio.open_nursery() as nursery:
            rig = Rig(make(peer), peer)
            nursery.start_soon(rig.serve)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        assert rig.failures == []
    assert trio.lowlevel.current_statistics().tasks_living <= before


PINGS = b"\x89\x01x" * 20


@pytest.mark.parametrize("turns", range(0, 60, 6))
async def test_cancelled_under_pings(turns, autojump_clock):
    """A server that pings while it is left is no bug of ours: `run` ends by its cancellation and nothing else."""

    async def raw(stream):
        await stream.send_all(acceptance(await stream.receive_some(5000)))
        with suppress(trio.BrokenResourceError):
            for _ in range(40):
                await stream.send_all(PINGS)
                await trio.lowlevel.checkpoint()
            await trio.sleep_forever()

    async with open_ws_peer(raw=raw) as peer, trio.open_nursery() as nursery:
        rig = Rig(make(peer), peer)
        await nursery.start(rig.serve)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()

    assert rig.failures == []


async def test_secrets(autojump_clock):
    """The path, the query and configured values are in no repr, note or diagnostic (S030, E07)."""
    async with open_rig(headers={"X": "CANARY"}, subprotocol=None) as rig:
        shown = f"{rig.transport!r} {rig.transport.diagnostics()!r}"
        await rig.peer.sockets[0].aclose(1008, "CANARY is no key")  # fault 102
        await rig.ended.wait()
        with pytest.raises(TransportBroken) as caught:
            await rig.transport.send(echo_frame(1))

    assert "CANARY" not in shown
    assert str(caught.value).endswith("*** is no key")
    assert "ws://h.test:81 open" in shown
