"""Servers that wait for a login, and somebody signs in: here, or in another process over the same state directory."""

from __future__ import annotations

import json

import pytest
import trio
from oauth_site import HELLO, Browser, elsewhere, fleet, open_site, remote, tool_of, wait_state

from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.pkce import b64url
from mcp_actors.auth.tokens import Tokens
from mcp_actors.auth.xaa import CompanySetup
from mcp_actors.errors import AuthRequired

pytestmark = pytest.mark.slow


async def test_a_login_made_elsewhere_wakes_a_server_that_waits(tmp_path):
    """Nobody calls it: it becomes connected by itself (S250)."""
    async with open_site() as site, fleet(site, tmp_path) as runtime:
        assert runtime.server("srv").status.state == "needs-auth"

        await elsewhere(tmp_path).log_in(remote(site), Browser())

        await wait_state(runtime, "connected")
        assert not (await runtime.call_tool(tool_of(runtime), HELLO)).is_error


async def test_calls_right_after_a_login_made_elsewhere_are_served(tmp_path):
    """They wake it and wait; it is started once for all of them."""
    async with open_site() as site, fleet(site, tmp_path) as runtime:
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        generation = runtime.server("srv").status.generation

        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(runtime.request, "srv", "tools/list")

        assert runtime.server("srv").status.generation == generation + 1


async def test_a_login_that_is_refused_as_well_is_tried_once(tmp_path):
    """No loop: after the one try neither time nor calls make another, until somebody signs in again."""
    async with open_site() as site, fleet(site, tmp_path) as runtime:
        site.is_closed = True
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        with pytest.raises(AuthRequired):
            await runtime.request("srv", "tools/list")
        asked = site.posts

        for _ in range(3):
            with pytest.raises(AuthRequired):
                await runtime.request("srv", "tools/list")
            await runtime.waker.look("srv")  # as its task does every second
        assert site.posts == asked

        site.is_closed = False
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        await wait_state(runtime, "connected")


async def test_a_company_s_login_made_elsewhere_wakes_whoever_takes_its_word(tmp_path):
    """First no company is set up, then nobody is signed in to it; one login there serves the server (S272, S277)."""
    async with open_site() as site:
        site.pages["/token"] = lambda request: company_token(site, request)
        block = {"xaa": True, "clientId": "as-client", "issuer": site.origin}
        async with fleet(site, tmp_path, **block) as runtime:
            with pytest.raises(AuthRequired, match="mcp-actors xaa setup"):
                await runtime.request("srv", "tools/list")

            desk, setup = elsewhere(tmp_path), CompanySetup(site.origin, "idp-client")
            await desk.company.set_up(setup)
            provider = AuthServer(issuer=site.origin, token_endpoint=f"{site.origin}/token")
            await desk.company.use(setup).adopt(
                Credentials(
                    server_url=site.origin,
                    resource="",
                    server=provider,
                    grant=GrantKind.AUTHORIZATION_CODE,
                    tokens=Tokens("company-access", id_token=jwt({"sub": "me"})),
                    identity=setup.identity,
                )
            )

            await wait_state(runtime, "connected")
            assert not (await runtime.call_tool(tool_of(runtime), HELLO)).is_error


def company_token(site, request):
    """Both legs: the company's word about a person, then a token for it."""
    if b"token-exchange" not in request.body:
        return site.give()
    word = jwt({"aud": site.origin, "exp": 4e9}, typ="oauth-id-jag+jwt")
    return site.answer(
        {
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "access_token": word,
            "token_type": "N_A",
        }
    )


def jwt(claims, **header):
    parts = ({"alg": "ES256", **header}, claims)
    return ".".join([*(b64url(json.dumps(part).encode()) for part in parts), "c2ln"])
