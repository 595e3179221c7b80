"""Tests of `auth.fetcher`."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.auth.fetcher import Reach, SafeFetcher, reach_of
from mcp_actors.auth.messages import Purpose, WebRequest
from mcp_actors.errors import AuthFailed, ConnectFailed, RemoteProtocolError, TransportBroken

PUBLIC = "93.184.216.34"


class Wire:
    """An exchange out of a table, that notes where it connected to."""

    def __init__(self, pages=None, names=None):
        self.pages = pages or {}
        self.names = {"mcp.example.com": [PUBLIC], "as.example.com": [PUBLIC], **(names or {})}
        self.log = []
        self.resolved = []

    async def exchange(self, method, url, headers, body, *, address, max_bytes):
        self.log.append((method, url, address))
        page = self.pages.get(url, (200, {}, b"{}"))
        if isinstance(page, list):
            page = page.pop(0)
        if isinstance(page, BaseException):
            raise page
        if callable(page):
            return await page()
        return page

    async def resolve(self, host):
        self.resolved.append(host)
        if host not in self.names:
            raise OSError(-2, "Name or service not known")
        return self.names[host]

    def fetcher(self, server="https://mcp.example.com/mcp", **options):
        return SafeFetcher(server, self.exchange, self.resolve, **options)


def get(url, method="GET"):
    return WebRequest(Purpose.SERVER_METADATA, url, method)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.8.8.8", Reach.PUBLIC),
        ("2606:4700::1111", Reach.PUBLIC),
        ("127.0.0.1", Reach.LOOPBACK),
        ("127.255.1.1", Reach.LOOPBACK),
        ("::1", Reach.LOOPBACK),
        ("::ffff:127.0.0.1", Reach.LOOPBACK),
        ("10.0.0.5", Reach.PRIVATE),
        ("172.16.0.1", Reach.PRIVATE),
        ("172.32.0.1", Reach.PUBLIC),
        ("192.168.1.1", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),
        ("fd00::1", Reach.PRIVATE),
        ("::ffff:10.0.0.1", Reach.PRIVATE),
        ("64:ff9b::a00:1", Reach.PRIVATE),
        ("2002:7f00:1::", Reach.LOOPBACK),
        ("169.254.169.254", Reach.FORBIDDEN),
        ("::ffff:169.254.169.254", Reach.FORBIDDEN),
        ("fe80::1", Reach.FORBIDDEN),
        ("fe80::1%eth0", Reach.FORBIDDEN),
        ("0.0.0.0", Reach.FORBIDDEN),
        ("::", Reach.FORBIDDEN),
        ("224.0.0.1", Reach.FORBIDDEN),
        ("255.255.255.255", Reach.FORBIDDEN),
        ("240.0.0.1", Reach.FORBIDDEN),
        ("nonsense", Reach.FORBIDDEN),
    ],
)
def test_addresses_are_judged_by_a_real_parser(text, expected):
    """Mapped, translated and wrapped forms are what they wrap (E01)."""
    assert reach_of(text) == expected


# server, URL asked, allows_private, whether it may be asked
CASES = [
    ("https://mcp.example.com", "https://as.example.com/x", False, True),
    ("https://mcp.example.com", "https://10.0.0.5/x", False, False),
    ("https://mcp.example.com", "https://169.254.169.254/latest", False, False),
    ("https://mcp.example.com", "http://169.254.169.254/latest", False, False),
    ("https://mcp.example.com", "https://[::1]/x", False, False),
    ("https://mcp.example.com", "http://localhost:3000/x", False, False),
    ("https://mcp.example.com", "http://as.example.com/x", False, False),
    ("https://mcp.example.com", "https://inner.example.com/x", False, False),
    ("https://mcp.example.com", "https://mixed.example.com/x", False, False),
    ("https://mcp.example.com", "https://2130706433/x", False, False),
    ("https://mcp.example.com", "https://0x7f.1/x", False, False),
    ("https://mcp.example.com", "https://10.0.0.5/x", True, True),
    ("https://mcp.example.com", "https://169.254.169.254/x", True, True),
    ("https://mcp.example.com", "http://10.0.0.5/x", True, False),
    ("https://inner.example.com", "https://10.0.0.5/x", False, True),
    ("https://inner.example.com", "https://[::1]/x", False, False),
    ("https://inner.example.com", "https://169.254.169.254/x", False, False),
    ("https://mixed.example.com", "https://10.0.0.5/x", False, False),
    ("http://localhost:3000/mcp", "http://localhost:4000/x", False, True),
    ("http://127.0.0.1:3000/mcp", "http://[::1]:4000/x", False, True),
    ("http://localhost:3000/mcp", "https://10.0.0.5/x", False, True),
    ("http://localhost:3000/mcp", "https://169.254.169.254/x", False, False),
    ("http://localhost:3000/mcp", "https://as.example.com/x", False, True),
]


@pytest.mark.parametrize(("server", "url", "allows_private", "expected"), CASES)
async def test_where_servers_may_send_us(server, url, allows_private, expected):
    """Private networks only where the MCP server is, or as configured; https but for loopback (fault 106)."""
    names = {
        "inner.example.com": ["10.1.1.1"],
        "mixed.example.com": [PUBLIC, "10.1.1.1"],
        "2130706433": ["127.0.0.1"],
        "0x7f.1": ["127.0.0.1"],
    }
    wire = Wire(names=names)

    if expected:
        assert (await wire.fetcher(server, allows_private=allows_private)(get(url))).status == 200
        return
    with pytest.raises(AuthFailed):
        await wire.fetcher(server, allows_private=allows_private)(get(url))
    assert wire.log == []


async def test_the_judged_address_is_the_one_connected_to():
    """A name is resolved once and the connection pinned, so that a second answer of the resolver changes nothing."""
    wire = Wire(names={"as.example.com": ["93.184.216.34", "93.184.216.35"]})

    await wire.fetcher()(get("https://as.example.com/x"))

    assert wire.log == [("GET", "https://as.example.com/x", "93.184.216.34")]
    assert wire.resolved.count("as.example.com") == 1


HOPS = [
    ("https://as.example.com/next", True),
    ("/next", True),
    ("http://169.254.169.254/latest", False),
    ("https://169.254.169.254/latest", False),
    ("http://as.example.com/next", False),
    ("https://localhost/next", False),
    ("file:///etc/passwd", False),
    ("https://[bad", False),
]


@pytest.mark.parametrize(("location", "expected"), HOPS)
async def test_each_hop_is_judged(location, expected):
    """A redirect gets nowhere that the first URL could not (E01)."""
    wire = Wire({"https://as.example.com/x": (302, {"location": location}, b"")})

    if expected:
        assert (await wire.fetcher()(get("https://as.example.com/x"))).body == b"{}"
        return
    with pytest.raises(AuthFailed):
        await wire.fetcher()(get("https://as.example.com/x"))
    assert len(wire.log) == 1


async def test_redirects_in_circles_end():
    """After three hops."""
    wire = Wire({"https://as.example.com/x": (307, {"location": "/x"}, b"")})

    with pytest.raises(AuthFailed, match="more than 3 times"):
        await wire.fetcher()(get("https://as.example.com/x"))

    assert len(wire.log) == 4


async def test_a_redirected_post_is_refused():
    """A token request goes where it was sent and nowhere else."""
    wire = Wire({"https://as.example.com/token": (307, {"location": "https://as.example.com/other"}, b"")})

    with pytest.raises(AuthFailed, match="redirects"):
        await wire.fetcher()(get("https://as.example.com/token", "POST"))

    assert len(wire.log) == 1


async def test_what_did_not_arrive_is_tried_once_more():
    """Also a POST (S265)."""
    wire = Wire({"https://as.example.com/x": [ConnectFailed(reason="refused"), (200, {}, b"ok")]})

    assert (await wire.fetcher()(get("https://as.example.com/x", "POST"))).body == b"ok"


async def test_a_post_that_may_have_arrived_is_not_repeated():
    """A rotated refresh token must not be used twice (fault 58)."""
    wire = Wire({"https://as.example.com/x": [TransportBroken(reason="reset"), (200, {}, b"ok")]})

    with pytest.raises(ConnectFailed, match="reset"):
        await wire.fetcher()(get("https://as.example.com/x", "POST"))

    assert len(wire.log) == 1


async def test_a_mute_server_is_left_after_a_while(autojump_clock):
    """Thirty seconds for a request with its redirects (S265)."""
    wire = Wire({"https://as.example.com/x?secret=1": trio.sleep_forever})

    with pytest.raises(ConnectFailed, match="in time"):
        await wire.fetcher()(get("https://as.example.com/x?secret=1"))

    assert trio.current_time() == pytest.approx(30, abs=0.1)


async def test_too_long_a_body_is_an_error():
    """And says nothing of what the body was."""
    wire = Wire({"https://as.example.com/x": RemoteProtocolError(reason="the answer is longer than 5 bytes")})

    with pytest.raises(AuthFailed, match="longer"):
        await wire.fetcher()(get("https://as.example.com/x"))


async def test_an_unknown_name_is_weather():
    """A resolver may be down."""
    with pytest.raises(ConnectFailed, match="cannot be resolved"):
        await Wire().fetcher()(get("https://nowhere.example.com/x"))


async def test_a_proxy_resolves_but_literals_are_judged():
    """Behind a proxy no name is resolved here; an address in the URL is still an address."""
    wire = Wire()
    fetch = wire.fetcher(is_proxied=lambda _url: True)

    await fetch(get("https://as.example.com/x"))
    with pytest.raises(AuthFailed):
        await fetch(get("https://10.0.0.5/x"))

    assert wire.log == [("GET", "https://as.example.com/x", None)]
    assert wire.resolved == []


async def test_localhost_is_this_machine_whatever_the_resolver_says():
    """A poisoned resolver cannot send a loopback name elsewhere."""
    wire = Wire(names={"localhost": [PUBLIC]})

    await wire.fetcher("http://localhost:1/mcp")(get("http://localhost:2/x"))

    assert wire.log[0][2] == "127.0.0.1"
