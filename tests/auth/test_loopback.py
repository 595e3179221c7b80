"""Tests of `auth.loopback` and `auth.browser`."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing

from mcp_actors.auth.browser import browser_command, open_browser
from mcp_actors.auth.loopback import open_landing, page_for
from mcp_actors.errors import AuthFailed

START = "https://as.example.com/authorize?state=S1"


async def nowhere(url, landing):
    """A person who does not come by himself."""


async def ask(port, target, host="127.0.0.1", method="GET"):
    stream = await trio.open_tcp_stream(host, port)
    async with stream:
        await stream.send_all(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        data = b""
        while chunk := await stream.receive_some():
            data += chunk
    return int(data.split()[1]), data


def port_of(landing):
    return urlsplit(landing.redirect_uri).port


async def test_a_visit_returns_the_url_that_came_back():
    """The whole URL, on the address that the person's browser takes, and a page that says what happened (S246)."""
    for host in ("127.0.0.1", "::1"):
        shown, got = [], []
        async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
            nursery.start_soon(_visit, landing, got)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.start_soon(come, landing, host, shown)

        assert got == [f"{landing.redirect_uri}?code=C&state=S1"]
        assert b"You can close this page" in shown[0]
        assert landing.redirect_uri.startswith("http://localhost:")


async def come(landing, host, shown):
    try:
        _, data = await ask(port_of(landing), "/callback?code=C&state=S1", host)
    except OSError:
        pytest.skip(f"no {host} here")
    shown.append(data)


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        ("/", "GET", 404),
        ("/favicon.ico", "GET", 404),
        ("/callback", "GET", 404),
        ("/callback?x=1", "GET", 404),
        ("/callback/../callback?code=C&state=S1", "GET", 404),
        ("/callback?code=C&state=S1", "POST", 404),
        ("/callback?code=C&state=other", "GET", 400),
        ("/callback?error=denied", "GET", 400),
        ("/callback?code=C", "GET", 400),
        ("/callback?state=S1&" + "&".join(f"x{number}=1" for number in range(200)), "GET", 404),
        ("//[bad/callback?code=C&state=S1", "GET", 404),
    ],
)
async def test_only_our_own_answer_ends_a_visit(target, method, status):
    """One path, GET, our state; a web page that guesses the port ends nothing (D07, fault 107)."""
    async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
        got = []
        nursery.start_soon(_visit, landing, got)
        await trio.testing.wait_all_tasks_blocked(0.01)

        assert (await ask(port_of(landing), target, method=method))[0] == status
        assert got == []
        assert (await ask(port_of(landing), "/callback?code=C&state=S1"))[0] == 200

    assert got


async def _visit(landing, got):
    got.append(await landing.visit(START))


async def test_a_visit_is_taken_once():
    """The second answer is refused (S246)."""
    async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
        nursery.start_soon(_visit, landing, [])
        await trio.testing.wait_all_tasks_blocked(0.01)

        assert (await ask(port_of(landing), "/callback?code=C&state=S1"))[0] == 200
        assert (await ask(port_of(landing), "/callback?code=D&state=S1"))[0] == 400


async def test_a_refusal_is_shown_as_one():
    """The page says that it was not granted; nothing that the server sent is on it."""
    async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
        nursery.start_soon(_visit, landing, [])
        await trio.testing.wait_all_tasks_blocked(0.01)
        _, data = await ask(port_of(landing), "/callback?error=%3Cscript%3E&state=S1")

    assert b"Not signed in" in data
    assert b"script>" not in data


async def test_a_pasted_url_does_as_well():
    """The person sits at another machine (S248)."""
    async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
        got = []
        nursery.start_soon(_visit, landing, got)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not landing.arrive("http://localhost:1/callback?code=C&state=wrong")
        assert not landing.arrive("http://[bad?state=S1")
        assert landing.arrive("http://localhost:1/callback?code=C&state=S1")

    assert got == ["http://localhost:1/callback?code=C&state=S1"]


async def test_nobody_comes():
    """Then it is over, and the port is free again."""
    async with open_landing(nowhere, timeout=0.01) as landing:
        with pytest.raises(AuthFailed, match="within"):
            await landing.visit(START)
    async with open_landing(nowhere, fixed=landing.redirect_uri):
        pass


async def test_a_fixed_port_that_is_taken_is_an_error_that_names_the_setting():
    """Before any browser opens (S247, faults 64 b and 99)."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        with pytest.raises(AuthFailed, match=rf"port {port}.*oauth\.callbackPort"):
            async with open_landing(nowhere, fixed=f"http://localhost:{port}/callback"):
                pass


async def test_a_preferred_port_that_is_taken_gives_way():
    """A registration can be made anew (S247, fault 64 a)."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        wish = f"http://localhost:{holder.getsockname()[1]}/callback"

        async with open_landing(nowhere, preferred=wish) as landing:
            assert landing.redirect_uri != wish


@pytest.mark.parametrize("form", ["http://localhost:{}/callback", "http://127.0.0.1:{}/a/b", "http://[::1]:{}/"])
async def test_a_configured_redirect_is_exactly_that(form):
    """Host, port and path as written, and the listener answers there (S247, fault 65)."""
    async with open_landing(nowhere) as free:
        wish = form.format(port_of(free))
    async with open_landing(nowhere, fixed=wish) as landing, trio.open_nursery() as nursery:
        assert landing.redirect_uri == wish
        nursery.start_soon(_visit, landing, [])
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (await ask(port_of(landing), f"{urlsplit(wish).path}?code=C&state=S1"))[0] == 200


async def test_two_sign_ins_at_once_do_not_collide():
    """Each has its port (fault 64)."""
    async with open_landing(nowhere) as one, open_landing(nowhere) as other:
        assert port_of(one) != port_of(other)


async def test_only_this_machine_can_reach_it():
    """Bound to the loopback addresses."""
    async with open_landing(nowhere) as landing:
        with socket.socket() as probe:
            probe.bind(("0.0.0.0", 0))
        hosts = {info[4][0] for info in socket.getaddrinfo("localhost", port_of(landing), type=socket.SOCK_STREAM)}
        assert hosts <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("garbage", [b"", b"\x16\x03\x01", b"GET\r\n\r\n", b"x" * 50_000, b"GET / HTTP/1.1\r\n"])
async def test_garbage_does_not_end_it(garbage):
    """Whatever connects, the visit goes on."""
    async with open_landing(nowhere) as landing, trio.open_nursery() as nursery:
        nursery.start_soon(_visit, landing, got := [])
        await trio.testing.wait_all_tasks_blocked(0.01)
        stream = await trio.open_tcp_stream("127.0.0.1", port_of(landing))
        with trio.move_on_after(1):
            await stream.send_all(garbage)
        await stream.aclose()
        assert (await ask(port_of(landing), "/callback?code=C&state=S1"))[0] == 200

    assert got


def test_pages_hold_nothing_foreign():
    """Fixed texts."""
    assert all(page_for(kind).startswith(b"<!doctype html>") for kind in ("done", "refused", "stranger", "elsewhere"))


URL = "https://as.example.com/a?b=%USERPROFILE%&c=$(calc)"
COMMANDS = [
    ("darwin", {}, ["/usr/bin/open", URL]),
    ("win32", {}, ["rundll32", "url.dll,FileProtocolHandler", URL]),
    ("linux", {}, None),
    ("linux", {"DISPLAY": ":0", "PATH": ""}, None),
]


@pytest.mark.parametrize(("platform", "environ", "expected"), COMMANDS)
def test_browsers_are_opened_by_argument_lists(platform, environ, expected):
    """The URL is one word, no shell sees it; without a display there is no browser (E02, fault 105)."""
    assert browser_command(URL, environ, platform) == expected


def test_a_browser_of_the_desktop_is_found(tmp_path):
    """xdg-open on PATH."""
    tool = tmp_path / "xdg-open"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    assert browser_command(URL, {"WAYLAND_DISPLAY": "x", "PATH": str(tmp_path)}, "linux") == [str(tool), URL]


@pytest.mark.parametrize(
    "url", ["file:///c:/x.exe", "javascript:alert(1)", "a:$(calc)", "http://as.example.com/", "data:text/html,x", "-h"]
)
def test_other_urls_are_never_opened(url):
    """Only https, and http on this machine (fault 105)."""
    with pytest.raises(AuthFailed):
        open_browser(url, {})
