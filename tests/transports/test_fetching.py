"""Tests of `transports.fetching`."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.errors import ConnectFailed, RemoteProtocolError
from mcp_actors.testing.http_doorway import HttpAnswer, open_http_doorway
from mcp_actors.transports.fetching import exchange_once, is_proxied


async def fetch(url, *, method="GET", headers=(), body=b"", address=None, max_bytes=1000):
    with trio.fail_after(10):
        return await exchange_once(method, url, headers, body, address=address, max_bytes=max_bytes, environ={})


async def test_an_exchange_comes_back_in_plain_values():
    """Status, the headers that matter in lower case, the body; the request went out as given."""
    seen = []

    def decide(request):
        seen.append((request.method, request.target, request.headers.get("x-a"), request.body))
        return HttpAnswer(418, b"tea", "text/plain", (("DPoP-Nonce", "n"), ("x-other", "o")))

    async with open_http_doorway(decide) as port:
        answer = await fetch(f"http://127.0.0.1:{port}/a?b=c", method="POST", headers=[("X-A", "1")], body=b"q")

    assert answer == (418, {"content-type": "text/plain", "dpop-nonce": "n"}, b"tea")
    assert seen == [("POST", "/a?b=c", "1", b"q")]


async def test_redirects_are_not_followed():
    """Whoever asked judges where they lead."""
    decide = lambda _request: HttpAnswer(302, headers=(("location", "/x"),))  # noqa: E731

    async with open_http_doorway(decide) as port:
        status, headers, _ = await fetch(f"http://127.0.0.1:{port}/")

    assert (status, headers["location"]) == (302, "/x")


async def test_the_connection_goes_to_the_given_address():
    """The name is not resolved; the server still sees it as Host (E01)."""
    seen = []

    def decide(request):
        seen.append(request.headers["host"])
        return HttpAnswer(200, b"ok")

    async with open_http_doorway(decide) as port:
        _, _, body = await fetch(f"http://localhost:{port}/", address="127.0.0.1")
        status, _, _ = await fetch(f"http://no-such-name.invalid:{port}/", address="127.0.0.1")

    assert body == b"ok"
    assert seen == [f"localhost:{port}"]
    assert status == 403  # reached; that server serves loopback names only


async def test_tls_checks_the_name_and_not_the_address():
    """A pinned connection is still one to the named server, or none at all."""
    import ssl

    import trustme

    from mcp_actors.transports import http_client

    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("as.example.com").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)

    async def serve(stream):
        try:
            async with trio.SSLStream(stream, server, server_side=True, https_compatible=True) as tls:
                await tls.receive_some()
                await tls.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except trio.BrokenResourceError:
            pass

    tls_context = http_client.tls_context
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        http_client.tls_context = lambda environ: client
        try:
            _, _, body = await fetch(f"https://as.example.com:{port}/", address="127.0.0.1")
            with pytest.raises(ConnectFailed):
                await fetch(f"https://other.example.com:{port}/", address="127.0.0.1")
        finally:
            http_client.tls_context = tls_context
        nursery.cancel_scope.cancel()

    assert body == b"ok"


async def test_too_long_a_body_is_refused():
    """Before it fills the memory."""
    async with open_http_doorway(lambda _request: HttpAnswer(200, b"x" * 2000)) as port:
        with pytest.raises(RemoteProtocolError, match="longer"):
            await fetch(f"http://127.0.0.1:{port}/")


async def test_an_event_stream_is_not_waited_for():
    """It may never end, and nothing that is fetched here is one."""

    async def run(responder):
        await responder.start_events()
        await trio.sleep_forever()

    async with open_http_doorway(lambda _request: run) as port:
        status, _, body = await fetch(f"http://127.0.0.1:{port}/")

    assert (status, body) == (200, b"")


async def test_nobody_listens():
    """What did not arrive says so."""
    with pytest.raises(ConnectFailed):
        await fetch("http://127.0.0.1:9/")


def test_loopback_is_never_proxied():
    """Fault 49."""
    environ = {"HTTPS_PROXY": "http://proxy:1"}

    assert is_proxied("https://as.example.com/", environ)
    assert not is_proxied("https://localhost/", environ)
