"""The way to a host: direct, through a proxy's tunnel, with TLS."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trustme

from mcp_actors.errors import ConnectFailed
from mcp_actors.transports import proxies
from mcp_actors.transports.dialing import dial

CANARY = "CANARY"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def trusting(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def proxied_loopback(monkeypatch):
    """Let loopback go through proxies, which a real runtime never does: there is no other host here."""
    monkeypatch.setattr(proxies, "is_loopback", lambda host: False)


@asynccontextmanager
async def serving(handler, context=None):
    """A TCP server on a loopback port; yields the port."""

    async def serve(stream):
        try:
            if context is not None:
                stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
            async with stream:
                await handler(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            yield listeners[0].socket.getsockname()[1]
            nursery.cancel_scope.cancel()


async def greet(stream):
    await stream.send_all(await stream.receive_some(100))


def server_context(authority):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


class Proxy:
    """Answers CONNECT with `answer`, then joins both ends."""

    def __init__(self, answer=b"HTTP/1.1 200 Connection established\r\nVia: p\r\n\r\n"):
        self.answer = answer
        self.heads = []

    async def __call__(self, stream):
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = await stream.receive_some(1000)
            if not chunk:
                return
            head += chunk
        self.heads.append(head.decode())
        for byte in self.answer:
            await stream.send_all(bytes([byte]))
        place = head.split(b" ")[1].rpartition(b":")
        if b" 200 " not in self.answer.partition(b"\r\n")[0] or len(self.answer) > 1000:
            return
        async with await trio.open_tcp_stream(place[0].decode(), int(place[2])) as host, trio.open_nursery() as nursery:
            nursery.start_soon(pump, stream, host)
            await pump(host, stream)


async def pump(source, sink):
    try:
        async for chunk in source:
            await sink.send_all(chunk)
        if isinstance(sink, trio.SocketStream):
            await sink.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        pass


async def speaks(stream):
    await stream.send_all(b"hello")
    answer = await stream.receive_some(100)
    await trio.aclose_forcefully(stream)
    return answer == b"hello"


async def test_direct():
    """Without a proxy the host is reached directly."""
    async with serving(greet) as port:
        assert await speaks(await dial(f"ws://127.0.0.1:{port}/x"))


async def test_tls(authority, trusting):
    """A wss URL gives a stream after its TLS handshake, to the host that its certificate names."""
    async with serving(greet, server_context(authority)) as port:
        assert await speaks(await dial(f"wss://127.0.0.1:{port}/x", context=trusting))


async def test_tls_untrusted(authority):
    """A certificate that nobody vouches for is refused with the reason, and with the origin alone (S030)."""
    async with serving(greet, server_context(authority)) as port:
        with pytest.raises(ConnectFailed, match=f"cannot reach wss://127.0.0.1:{port}: .*certificate") as caught:
            await dial(f"wss://127.0.0.1:{port}/{CANARY}?{CANARY}")

    assert CANARY not in str(caught.value)


async def test_refused():
    """A port where nobody listens is told in the system's words."""
    with pytest.raises(ConnectFailed, match=r"cannot reach ws://127.0.0.1:9: Connection refused"):
        await dial("ws://127.0.0.1:9/")


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
async def test_no_name_at_all(host):
    """A host whose labels are no names fails as an address that cannot be used, and is not tried again."""
    with pytest.raises(ConnectFailed, match="is not a usable URL") as caught:
        await dial(f"ws://{host}/")
    assert not caught.value.can_retry


async def test_unknown_host():
    """A name that does not resolve is told as that."""
    with pytest.raises(ConnectFailed, match=r"cannot reach ws://no-such-host.invalid"):
        await dial("ws://no-such-host.invalid/")


async def test_loopback_never_proxied():
    """Loopback goes past every proxy (fault 49)."""
    async with serving(greet) as port:
        assert await speaks(await dial(f"ws://127.0.0.1:{port}/", environ={"http_proxy": "http://127.0.0.1:9"}))


@pytest.mark.parametrize("has_tls", [False, True], ids=["ws", "wss"])
async def test_tunnel(has_tls, authority, trusting, proxied_loopback):
    """Both kinds of URL go through a tunnel, with the proxy's credentials and none of ours (S093, fault 49)."""
    proxy = Proxy()
    scheme, variable = ("wss", "https_proxy") if has_tls else ("ws", "http_proxy")
    async with serving(greet, server_context(authority) if has_tls else None) as port, serving(proxy) as way:
        environ = {variable: f"http://me:p%40ss@127.0.0.1:{way}"}
        stream = await dial(f"{scheme}://127.0.0.1:{port}/x?{CANARY}", environ=environ, context=trusting)
        assert await speaks(stream)

    [head] = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in head
    assert CANARY not in head


async def test_tunnel_through_secure_proxy(authority, trusting, proxied_loopback):
    """The proxy itself may be behind TLS."""
    async with serving(greet) as port, serving(Proxy(), server_context(authority)) as way:
        environ = {"http_proxy": f"https://127.0.0.1:{way}"}
        assert await speaks(await dial(f"ws://127.0.0.1:{port}/", environ=environ, context=trusting))


FAULTS = {
    "407": (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP 407"),
    "502": (b"HTTP/1.1 502 Bad\r\nContent-Length: 3\r\n\r\nno!", "HTTP 502"),
    "other": (b"SSH-2.0-OpenSSH\r\n\r\n", "as a proxy does"),
    "no-status": (b"HTTP/1.1\r\n\r\n", "as a proxy does"),
    "hung-up": (b"HTTP/1.1 200", "as a proxy does"),
    "silent": (b"", "as a proxy does"),
    "endless": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 3000, "as a proxy does"),
}


@pytest.mark.parametrize(("answer", "words"), FAULTS.values(), ids=FAULTS)
async def test_tunnel_refused(answer, words, proxied_loopback):
    """A proxy that refuses, or is none, fails the connect; its credentials are in no word."""
    async with serving(Proxy(answer)) as way:
        with pytest.raises(ConnectFailed, match=words) as caught:
            await dial("ws://127.0.0.1:9/x", environ={"http_proxy": f"http://me:{CANARY}@127.0.0.1:{way}"})

    assert CANARY not in str(caught.value)


async def test_proxy_unreachable(proxied_loopback):
    """A proxy that is not there is named as the one that is not."""
    with pytest.raises(ConnectFailed, match=r"cannot reach the proxy http://127.0.0.1:9: Connection refused") as caught:
        await dial("ws://h.test/", environ={"http_proxy": f"http://me:{CANARY}@127.0.0.1:9"})

    assert CANARY not in str(caught.value)


async def test_socks(proxied_loopback):
    """A SOCKS proxy cannot be used, and says so."""
    with pytest.raises(ConnectFailed, match="socks5"):
        await dial("ws://h.test/", environ={"all_proxy": "socks5://127.0.0.1:9"})
