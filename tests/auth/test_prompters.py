"""Tests of `auth.prompters`, by a fleet whose server wants a login, with its authorization server, on loopback."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest
import trio
from oauth_house import House
from oauth_peer import AS, World, answer, query_of, server_document
from oauth_site import HELLO, fleet, open_site, tool_of
from test_docs import examples_of_page

from mcp_actors import AuthFailed, BrowserSignInPrompter
from mcp_actors.auth.loopback import open_landing
from mcp_actors.transports.fetching import exchange_once

RECIPES = Path(__file__).parents[2] / "docs" / "recipes.rst"
PAGE = "https://as.example.com/authorize?state=S1"
VISIT = """#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=20).read()
"""


async def browse(url):
    """Visit a page; returns the status, and where it leads to."""
    status, headers, _ = await exchange_once("GET", url, (), b"", address=None, max_bytes=65536, environ={})
    return status, headers.get("location")


@attrs.define
class Told:
    """A program that keeps what it is told, and then does what a test wants."""

    act: object = None
    pages: list = attrs.field(factory=list)
    ended: list = attrs.field(factory=list)
    event: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, page):
        self.pages.append(page)
        self.event.set()
        try:
            if self.act is not None:
                await self.act(page)
            await trio.sleep_forever()
        finally:
            self.ended.append(page)


async def follow(page):
    """A person elsewhere on this machine."""
    _, back = await browse(page.url)
    assert (await browse(back))[0] == 200


async def paste(page):
    """A person whose browser is on another machine."""
    _, back = await browse(page.url)
    assert not page.arrive("http://localhost:1/callback?code=C&state=wrong")
    assert page.arrive(back)


async def free_redirect():
    async with open_landing(follow) as landing:
        return landing.redirect_uri


@pytest.mark.parametrize("act", [follow, paste])
async def test_a_call_signs_in_where_there_is_no_browser(tmp_path, act):
    """The function is told the address, a person visits it, the call goes on, and the function is cancelled (S248)."""
    told = Told(act)
    async with open_site() as site:
        site.needed = {"tools/call": "write"}
        async with fleet(site, tmp_path, sign_in=BrowserSignInPrompter(told, uses_browser=False)) as runtime:
            [first] = told.pages
            result = await runtime.call_tool(tool_of(runtime), HELLO)

        assert not result.is_error
        assert [urlsplit(page.url).path for page in told.pages] == ["/authorize", "/authorize"]
        assert (first.is_open, first.code) == (False, None)
        assert query_of(first.url)["state"] not in repr(first)
        assert told.ended == told.pages


def put_browser(path, monkeypatch):
    """A browser on PATH that follows the redirect by itself."""
    tool = path / "xdg-open"
    tool.write_text(VISIT.format(python=sys.executable))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("DISPLAY", ":0")


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="no xdg-open there")
async def test_the_browser_of_the_system_signs_in_by_itself(tmp_path, monkeypatch):
    """It is opened, and the function is told so (S246)."""
    put_browser(tmp_path, monkeypatch)
    told = Told()
    async with open_site() as site, fleet(site, tmp_path, sign_in=BrowserSignInPrompter(told)) as runtime:
        assert not (await runtime.call_tool(tool_of(runtime), HELLO)).is_error

    assert [page.is_open for page in told.pages] == [True]


async def test_the_page_comes_back_to_the_configured_port(tmp_path):
    """`callbackPort` of the entry is the port, as everywhere (S247, S361)."""
    told, port = Told(follow), urlsplit(await free_redirect()).port
    prompter = BrowserSignInPrompter(told, uses_browser=False)
    async with open_site() as site, fleet(site, tmp_path, sign_in=prompter, callbackPort=port):
        assert query_of(told.pages[0].url)["redirect_uri"] == f"http://localhost:{port}/callback"


@pytest.mark.parametrize("is_raised", [False, True])
async def test_what_ends_a_sign_in_leaves_no_listener(is_raised):
    """Cancelled, or by an error of the function: the port is free, the function is over."""

    async def fail(page):
        raise AuthFailed(reason="nobody is here")

    wish, told = await free_redirect(), Told(fail if is_raised else None)
    with trio.fail_after(10), suppress(AuthFailed):
        async with trio.open_nursery() as nursery:

            async def sign_in():
                async with BrowserSignInPrompter(told, uses_browser=False).receive(
                    fixed=wish, preferred=None
                ) as reception:
                    with suppress(AuthFailed):
                        await reception.visit(PAGE)

            nursery.start_soon(sign_in)
            await told.event.wait()
            if not is_raised:
                nursery.cancel_scope.cancel()

        assert told.ended == told.pages
        with pytest.raises(OSError, match="connect"):
            await trio.open_tcp_stream("127.0.0.1", urlsplit(wish).port)


async def test_a_code_is_told_and_taken_back_once_it_was_typed_in(autojump_clock):
    """The same function is told a code (RFC 8628), and is cancelled when somebody typed it in."""
    code = {"device_code": "DEVICE-SECRET", "user_code": "AB-CD", "verification_uri": f"{AS}/device", "expires_in": 60}
    pending, given = answer({"error": "authorization_pending"}, status=400), answer({"access_token": "a"})
    pages = {
        f"{AS}/.well-known/oauth-authorization-server": answer(
            server_document(device_authorization_endpoint=f"{AS}/d")
        ),
        f"{AS}/d": answer({**code, "verification_uri_complete": f"{AS}/device?c=AB-CD"}),
        f"{AS}/token": [pending, given],
    }
    house, told = House(World(pages), oauth={"grant": "device_code"}), Told()

    credentials = await house.auth.sign_in(BrowserSignInPrompter(told))

    assert credentials.tokens.access_token == "a"
    [page] = told.ended
    assert (page.url, page.code, page.complete_url) == (f"{AS}/device", "AB-CD", f"{AS}/device?c=AB-CD")
    assert not page.arrive("http://localhost:1/callback?code=C&state=S")
    assert "AB-CD" not in repr(page)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="no xdg-open there")
async def test_the_recipe_signs_in(tmp_path, monkeypatch):
    """The program of the page, with a server that wants a login in the place of its own."""
    put_browser(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MCP_ACTORS_CREDENTIALS_STORE", "file")
    [recipe] = [example for example in examples_of_page(RECIPES) if "BrowserSignInPrompter" in example.program]
    [own] = [line for line in recipe.program.splitlines() if line.startswith("SERVER = ")]
    async with open_site() as site:
        program = recipe.program.replace(own, f'SERVER = {{"type": "http", "url": "{site.url}"}}')
        with trio.fail_after(60):
            run = partial(trio.run_process, [sys.executable, "-c", program], capture_stdout=True, cwd=tmp_path)
            ran = await run(stderr=subprocess.STDOUT)

        assert site.count == 1
        assert ran.stdout.decode() == recipe.prints
