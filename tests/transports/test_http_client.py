"""The HTTP client: redirects, TLS, proxies, pools, auth, cost."""

from __future__ import annotations

import ssl
import subprocess
import sys
from contextlib import aclosing
from functools import partial

import pytest
import trio
import trio.testing
import trustme

from mcp_actors.errors import ConnectFailed, RemoteProtocolError, TransportBroken
from mcp_actors.transports import http_client
from mcp_actors.transports.http_answer import explain
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.proxies import proxy_for
from mcp_actors.transports.redirects import redirected
from tests.transports.http_peer import HOLD, Reply, json_reply, open_peer

OK = json_reply(b"{}")
HEADERS = [(b"X-Team", b"blue")]


@pytest.fixture(params=["httpx", "httpx2"], autouse=True)
def library(request, monkeypatch):
    """Both HTTP libraries in turn, where both are installed."""
    module = pytest.importorskip(request.param)
    monkeypatch.setattr(http_client, "httpx_library", lambda: module)
    http_client._body_class.cache_clear()
    yield module
    http_client._body_class.cache_clear()


async def fetch(client, method="POST", body=b"{}"):
    answer = await client.request(method, HEADERS, body)
    async with aclosing(answer):
        return answer.status, await answer.read(1000)


def redirect(location, status=307):
    return Reply(status, [("Location", location), ("Content-Length", "0")])


# ── redirects ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/mcp/", "mcp/", "?x=1", "http://127.0.0.1:{port}/mcp/"])
async def test_redirect_followed(status, location):
    """Method, body and headers go along to the same origin, and the new URL is remembered (fault 38, C15)."""
    async with open_peer(lambda asked: OK) as peer:
        peer.script = lambda asked: redirect(location.format(port=peer.port), status) if asked.target == "/mcp" else OK
        client = HttpClient(peer.url)

        assert await fetch(client) == (200, b"{}")
        assert await fetch(client) == (200, b"{}")

        await client.aclose()
        first, second, third = peer.asked
        assert (first.method, first.body, first.headers["x-team"]) == (
            second.method,
            second.body,
            second.headers["x-team"],
        )
        assert third.target == second.target != first.target


REFUSED_REDIRECTS = {
    "other-host": ("http://127.0.0.2:1/mcp?key=CANARY", 307, "another origin"),
    "other-port": ("http://127.0.0.1:1/mcp?key=CANARY", 308, "another origin"),
    "found": ("/login?key=CANARY", 302, "a POST is not repeated there"),
    "moved": ("/mcp/", 301, "a POST is not repeated there"),
    "see-other": ("/mcp/", 303, "a POST is not repeated there"),
    "scheme": ("ftp://127.0.0.1/", 307, "another origin"),
    "nonsense": ("http://[", 307, "no usable URL"),
    "loop": ("/mcp", 307, "stopped after 5 hops"),
}


@pytest.mark.parametrize(("location", "status", "why"), REFUSED_REDIRECTS.values(), ids=REFUSED_REDIRECTS)
async def test_redirect_refused(location, status, why):
    """A redirect that would lose the POST, leave the origin or never end is refused in clear words (fault 38)."""
    async with open_peer(lambda asked: redirect(location, status)) as peer:
        client = HttpClient(peer.url)
        with pytest.raises(ConnectFailed, match=why) as caught:
            await fetch(client)

        assert caught.value.http_status == status
        assert "CANARY" not in str(caught.value)
        assert client.url == peer.url
        await client.aclose()


@pytest.mark.parametrize(
    ("url", "location", "expected"),
    [
        ("http://h/mcp", "https://h/mcp/", "https://h/mcp/"),
        ("http://h:80/mcp", "https://h:443/mcp", "https://h:443/mcp"),
        ("http://h:81/mcp", "https://h:81/mcp", "https://h:81/mcp"),
        ("https://h/mcp", "//h/other", "https://h/other"),
        ("https://h/mcp", "http://h/mcp", None),
        ("https://h/mcp", "https://evil/mcp", None),
        ("http://h/mcp", "https://evil/mcp", None),
        ("http://h/mcp", "https://h:8443/mcp", None),
    ],
)
def test_redirect_rule(url, location, expected):
    """From http to https on the same host is allowed, from https to http and elsewhere never (C15), however often."""
    if expected is None:
        with pytest.raises(ConnectFailed) as refused:
            redirected("POST", url, location, 307)
        assert not refused.value.can_retry
    else:
        assert expected == redirected("POST", url, location, 307)


def test_redirect_to_another_path_shows_none():
    """S030: a path may hold a key, so that the message names the origin and says the rest in words."""
    with pytest.raises(ConnectFailed, match=r"^https://h redirects .302. to another path of its own: a POST is not"):
        redirected("POST", "https://h/k3y/mcp", "/k3y/mcp/", 302)


def test_redirect_downgrade_message():
    """A downgrade is named as one."""
    with pytest.raises(ConnectFailed, match=r"redirects .307. to http://h: refused, from https to http"):
        redirected("POST", "https://h/mcp", "http://h/mcp/", 307)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def authority():
    return trustme.CA()


async def serve_tls(authority, peer, task_status=trio.TASK_STATUS_IGNORED):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    await trio.serve_ssl_over_tcp(peer.serve, 0, context, host="127.0.0.1", task_status=task_status)


async def test_tls(authority, monkeypatch):
    """An https server is reached through the one TLS context of the process; http servers have none that trusts."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(http_client, "tls_context", lambda environ: trusting)
    async with open_peer(lambda asked: OK) as peer, trio.open_nursery() as nursery:
        listeners = await nursery.start(serve_tls, authority, peer)
        client = HttpClient(f"https://localhost:{listeners[0].transport_listener.socket.getsockname()[1]}/mcp")

        assert await fetch(client) == (200, b"{}")
        assert await fetch(client) == (200, b"{}")

        assert peer.accepted == 1
        await client.aclose()
        nursery.cancel_scope.cancel()


async def test_tls_spoken_to_a_plain_server():
    """https:// where only http:// is served names the remedy, not a version number."""

    async def plain(stream):
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, plain, 0, host="127.0.0.1"))
        client = HttpClient(f"https://127.0.0.1:{listener.socket.getsockname()[1]}/mcp")

        with pytest.raises(ConnectFailed, match=r"does not speak TLS there; .* write http://"):
            await fetch(client)

        await client.aclose()
        nursery.cancel_scope.cancel()


async def test_tls_untrusted(authority):
    """A certificate that nobody vouches for fails in words that say what to do, although httpx has none."""
    async with open_peer(lambda asked: OK) as peer, trio.open_nursery() as nursery:
        listeners = await nursery.start(serve_tls, authority, peer)
        client = HttpClient(f"https://localhost:{listeners[0].transport_listener.socket.getsockname()[1]}/mcp")
        with pytest.raises(ConnectFailed, match=r"not trusted: .* \(NODE_EXTRA_CA_CERTS"):
            await fetch(client)

        await client.aclose()
        nursery.cancel_scope.cancel()


def test_tls_context_is_lazy_and_single():
    """A client for http loads no certificates, and all clients share one context each way."""
    code = (
        "import ssl\n"
        "loads = []\n"
        "ssl.SSLContext.load_verify_locations = lambda *a, **k: loads.append(a)\n"
        "from mcp_actors.transports import http_client\n"
        "http_client._build('http', None, {}); http_client._build('http', None, {})\n"
        "print(len(loads))\n"
        "a, b = http_client.tls_context({}), http_client.tls_context({'HOME': '/'})\n"
        "print(a is b)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["0", "True"]


def test_import_is_lazy():
    """Neither this room nor its stdio part imports an HTTP library before it is needed."""
    code = (
        "import sys\n"
        "import mcp_actors.transports.opening, mcp_actors.transports.memory, mcp_actors.transports.http\n"
        "print([m for m in ('httpx', 'httpx2', 'httpcore', 'httpcore2', 'h11') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}
PROXY_CASES = [
    ("https://mcp.example.com/", PROXY, "http://proxy:3128"),
    ("http://mcp.example.com/", PROXY, None),
    ("https://127.0.0.1/", PROXY, None),
    ("https://127.8.9.10:8443/", PROXY, None),
    ("https://[::1]/", PROXY, None),
    ("https://[::ffff:127.0.0.1]/", PROXY, None),
    ("https://localhost/", PROXY, None),
    ("https://LOCALHOST./", PROXY, None),
    ("https://api.localhost/", PROXY, None),
    ("https://localhost.evil.com/", PROXY, "http://proxy:3128"),
    ("https://h/", {"https_proxy": "low:1", "HTTPS_PROXY": "up:1"}, "http://low:1"),
    ("https://h/", {"https_proxy": "", "HTTPS_PROXY": "up:1"}, "http://up:1"),
    ("https://h/", {"ALL_PROXY": "socks5://s:1"}, "socks5://s:1"),
    ("http://h/", {"http_proxy": "p:1", "all_proxy": "q:1"}, "http://p:1"),
    ("wss://h/", PROXY, "http://proxy:3128"),
    ("https://h/", {}, None),
    *[
        (url, {**PROXY, "NO_PROXY": spared}, expected)
        for url, spared, expected in [
            ("https://a.corp.com/", "corp.com", None),
            ("https://a.corp.com/", ".corp.com", None),
            ("https://a.corp.com/", "*.corp.com", None),
            ("https://a.corp.com/", "CORP.COM", None),
            ("https://acorp.com/", "corp.com", "http://proxy:3128"),
            ("https://corp.com/", "other, corp.com ,x", None),
            ("https://corp.com/", "*", None),
            ("https://corp.com:8443/", "corp.com:8443", None),
            ("https://corp.com/", "corp.com:8443", "http://proxy:3128"),
            ("https://corp.com/", "corp.com:443", None),
            ("https://10.1.2.3/", "10.0.0.0/8", None),
            ("https://11.1.2.3/", "10.0.0.0/8", "http://proxy:3128"),
            ("https://10.1.2.3/", "10.1.2.3", None),
            ("https://[fe80::1]/", "[fe80::1]", None),
            ("https://[fe80::1]/", "fe80::1", None),
            ("https://[fe80::1]:8443/", "[fe80::1]:443", "http://proxy:3128"),
            ("https://h/", ",, ", "http://proxy:3128"),
            ("https://h/", "1.2.3.4/99", "http://proxy:3128"),
        ]
    ],
]


@pytest.mark.parametrize(("url", "environ", "expected"), PROXY_CASES)
def test_proxy_for(url, environ, expected):
    """The proxy variables are read as curl reads them, and loopback is never proxied (S093, fault 49)."""
    assert expected == proxy_for(url, environ)


async def test_proxy_used():
    """A request to a remote http server goes to the proxy with the whole URL, one to loopback does not (fault 49)."""
    async with open_peer(lambda asked: OK) as proxy, open_peer(lambda asked: OK) as peer:
        environ = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
        remote, local = HttpClient("http://mcp.example.com/mcp", environ=environ), HttpClient(peer.url, environ=environ)

        assert await fetch(remote) == await fetch(local) == (200, b"{}")

        assert [asked.target for asked in proxy.asked] == ["http://mcp.example.com/mcp"]
        assert len(peer.asked) == 1
        await remote.aclose()
        await local.aclose()


@pytest.mark.parametrize("proxy", ["nonsense://x:1", "socks5://127.0.0.1:1"])
async def test_proxy_unusable(proxy):
    """A proxy that cannot be used is said so, without its credentials."""
    client = HttpClient("http://mcp.example.com/mcp", environ={"http_proxy": proxy})
    with pytest.raises(ConnectFailed):
        await fetch(client)

    await client.aclose()


# ── pools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_no_limit():
    """A hundred and twenty open streams leave room for a call, through one client (fault 50)."""
    async with open_peer(lambda asked: OK if asked.method == "POST" else Reply(200, [], [HOLD])) as peer:
        client = HttpClient(peer.url)
        streams = [await client.request("GET", []) for _ in range(120)]

        assert await fetch(client) == (200, b"{}")

        for stream in streams:
            await stream.aclose()
        await client.aclose()


async def test_cancelled_connects():
    """Waves of requests cancelled while connecting do not stop or slow the next one (fault 95)."""
    async with open_peer(lambda asked: OK) as peer:
        client = HttpClient(peer.url)
        held = await client.request("POST", [], b"{}")  # an answer under way survives the pool's replacement
        for turns in range(40):
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(fetch, client)
                for _ in range(turns % 12):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()

        assert await fetch(client) == (200, b"{}")
        assert await held.read(10) == b"{}"

        await held.aclose()
        assert len(client._pools) == 1
        [pool] = client._pools.values()
        assert pool.strays < http_client.MAX_STRAYS
        assert pool.active == 0
        await client.aclose()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert peer.connections == 0


async def test_connection_reused():
    """Sequential requests use one connection."""
    async with open_peer(lambda asked: OK) as peer:
        client = HttpClient(peer.url)
        for _ in range(5):
            await fetch(client)

        assert peer.accepted == 1
        await client.aclose()


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_body_decoded():
    """A compressed body is read decoded, although none was asked for; what cannot be decoded breaks the answer."""
    import gzip

    packed = Reply(200, [("Content-Encoding", "gzip")], [gzip.compress(b"x" * 500)])
    async with open_peer(lambda asked: packed) as peer:
        client = HttpClient(peer.url)
        assert await fetch(client) == (200, b"x" * 500)

        peer.script = lambda asked: Reply(200, [("Content-Encoding", "gzip")], [b"not gzip"])
        with pytest.raises(TransportBroken, match="broke off"):
            await fetch(client)

        peer.script = lambda asked: Reply(200, [("Content-Encoding", "gzip")], [gzip.compress(b"x" * 500)[:-9]])
        with pytest.raises(TransportBroken, match="its compression has no end"):
            await fetch(client)

        peer.script = lambda asked: Reply(200, [("Content-Encoding", "gzip")], [gzip.compress(b"x" * 5000)])
        with pytest.raises(RemoteProtocolError, match="longer than 1000 bytes"):
            await fetch(client)

        peer.script = lambda asked: Reply(200, [("Content-Encoding", "gzip")], [gzip.compress(b"x" * 50_000_000)])
        with pytest.raises(RemoteProtocolError, match="longer than 1000 bytes"):
            await fetch(client)

        # What follows the compressed body is not gathered, however much of it comes.
        packed = Reply(200, [("Content-Encoding", "gzip")], [gzip.compress(b"x"), b"junk" * 1000, HOLD])
        peer.script = lambda asked: packed
        assert await fetch(client) == (200, b"x")

        peer.script = lambda asked: Reply(200, [("Content-Encoding", "br")], [b"x"])
        with pytest.raises(TransportBroken, match="compressed with br, unasked"):
            await fetch(client)
        await client.aclose()


async def test_body_left_unread():
    """Closing an answer early leaves no generator to the garbage collector, at any point of the body."""
    async with open_peer(lambda asked: Reply(200, [], [b"a", b"b", HOLD])) as peer:
        client = HttpClient(peer.url)
        for reads in range(3):
            answer = await client.request("GET", [])
            for _ in range(reads):
                await answer.receive_some()
            await answer.aclose()
            await answer.aclose()
            assert await answer.receive_some() == b""
        await client.aclose()


# ── auth ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def bearer_after_401(library):
    class Flow(library.Auth):
        requires_response_body = True

        def auth_flow(self, request):
            response = yield request
            if response.status_code == 401:
                request.headers["Authorization"] = f"Bearer {response.json()['give']}"
                yield request

    return Flow()


async def test_auth_flow(library):
    """An auth flow may read a refusal and repeat the request with credentials; method, body and headers stay (S075)."""
    denied = json_reply(b'{"give":"t1"}', 401)
    async with open_peer(lambda asked: OK if asked.headers.get("authorization") == "Bearer t1" else denied) as peer:
        client = HttpClient(peer.url, auth=bearer_after_401(library))

        assert await fetch(client) == (200, b"{}")

        first, second = peer.asked
        assert (first.method, first.body, first.target) == (second.method, second.body, second.target)
        await client.aclose()


async def test_who_brings_an_authorization_header_is_not_helped(library):
    """A request with an Authorization header of its own goes as it is, once, whatever it is answered (S255)."""
    async with open_peer(lambda asked: json_reply(b'{"give":"t1"}', 401)) as peer:
        client = HttpClient(peer.url, auth=bearer_after_401(library))

        answer = await client.request("POST", [(b"AUTHORIZATION", b"Basic x")], b"{}")
        await answer.aclose()

        assert [asked.headers.get("authorization") for asked in peer.asked] == ["Basic x"]
        await client.aclose()


async def test_auth_flow_gives_up(library):
    """The last answer of a flow is the answer, and its body can still be read."""
    async with open_peer(lambda asked: json_reply(b'{"give":"t2"}', 401)) as peer:
        client = HttpClient(peer.url, auth=bearer_after_401(library))

        assert await fetch(client) == (401, b'{"give":"t2"}')

        assert [pool.active for pool in client._pools.values()] == [0]
        await client.aclose()


async def test_what_earlier_requests_carried_is_still_hidden(library):
    """A token that was renewed while an answer was out may stand in any later answer (fault 102, S354)."""

    class Renewing(library.Auth):
        tokens = iter(["one-s3cret", "two-s3cret"])

        async def async_auth_flow(self, request):
            request.headers["Authorization"] = f"Bearer {next(self.tokens)}"
            yield request

    async with open_peer(lambda asked: Reply(403, [], [b"one-s3cret two-s3cret"])) as peer:
        client = HttpClient(peer.url, auth=Renewing())
        first = await client.request("POST", [], b"{}")
        second = await client.request("POST", [], b"{}")
        bodies = [answer.without_secrets(await answer.read(1000)) for answer in (first, second)]
        told = second.told("one-s3cret two-s3cret")
        for answer in (first, second):
            await answer.aclose()
        await client.aclose()

    assert (bodies, told) == ([b"*** ***"] * 2, "*** ***")
    assert {"one-s3cret", "two-s3cret"} <= set(client.secrets)


async def test_auth_flow_raises(library):
    """What an auth flow raises reaches the caller, and the answer it had is closed."""

    class Flow(library.Auth):
        async def async_auth_flow(self, request):
            yield request
            raise LookupError("no token")

    async with open_peer(lambda asked: OK) as peer:
        client = HttpClient(peer.url, auth=Flow())
        with pytest.raises(LookupError):
            await fetch(client)

        assert [pool.active for pool in client._pools.values()] == [0]
        await client.aclose()


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url", ["http://[", "http://h:99999/", "nonsense", "http://", "http://a..b/", "http://" + "a" * 64]
)
async def test_url_unusable(url):
    """A URL that cannot be used fails the request as one that did not arrive."""
    client = HttpClient(url)
    with pytest.raises(ConnectFailed):
        await fetch(client)

    await client.aclose()


async def test_unknown_host():
    """A name that nobody knows fails in the resolver's words."""
    client = HttpClient("http://nowhere.invalid/mcp")
    with trio.fail_after(10), pytest.raises(ConnectFailed, match=r"cannot reach http://nowhere.invalid: "):
        await fetch(client)

    await client.aclose()


def test_explain_walks_causes():
    """The innermost cause that has words is quoted, on one line, bounded."""
    outer = RuntimeError()
    outer.__cause__ = ExceptionGroup("several", [ConnectionRefusedError(111, "long words of a library")])

    assert explain(outer) == "Connection refused"
    assert explain(RuntimeError()) == "the connection broke"
    assert explain(ValueError("a\nb" + "c" * 999)) == ("a b" + "c" * 999)[:300]


def test_clients_are_cheap():
    """A thousand clients cost almost nothing: no certificates, no connection, no event."""
    clients = [HttpClient(f"http://127.0.0.1:1/{number}") for number in range(1000)]

    assert all(not client._pools for client in clients)
    assert repr(clients[7]) == "<HttpClient http://127.0.0.1:1>"
