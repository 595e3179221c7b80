"""Tests of `auth.device`."""

from __future__ import annotations

import pytest
import trio
from oauth_peer import AS, MCP, Clock, World, answer, server_document

from mcp_actors.auth.device import log_in_by_code
from mcp_actors.auth.flow import Errand
from mcp_actors.auth.options import AuthOptions, GrantKind
from mcp_actors.errors import AuthFailed, ConnectFailed

META = f"{AS}/.well-known/oauth-authorization-server"
CODE = {
    "device_code": "DEVICE-SECRET",
    "user_code": "ABCD-\u202eEFGH",
    "verification_uri": "https://as.example.com/device",
    "interval": 5,
    "expires_in": 50,
}
PENDING = answer({"error": "authorization_pending"}, status=400)
SLOWER = answer({"error": "slow_down"}, status=400)
GIVEN = answer({"access_token": "a", "refresh_token": "r"})


def world(*polls, code=None, **document):
    pages = {
        META: answer(server_document(device_authorization_endpoint=f"{AS}/device_authorization", **document)),
        f"{AS}/device_authorization": answer({**CODE, **(code or {})}),
        f"{AS}/token": list(polls),
    }
    return World(pages)


async def play(world):
    prompter = world.prompter
    errand = Errand(MCP, AuthOptions(grant=GrantKind.DEVICE_CODE), Clock().sources)
    credentials = await log_in_by_code(errand, world.fetch, prompter)
    return credentials, prompter.codes[0]


async def test_a_code_is_shown_and_asked_about_until_it_was_typed_in(autojump_clock):
    """Every five seconds, five more when it is too often (RFC 8628)."""
    place = world(PENDING, SLOWER, PENDING, GIVEN)

    credentials, code = await play(place)

    assert trio.current_time() == pytest.approx(5 + 5 + 10 + 10)
    assert credentials.tokens.refresh_token == "r"
    assert credentials.grant is GrantKind.DEVICE_CODE
    assert code.user_code == "ABCD-EFGH"
    assert "DEVICE-SECRET" not in repr(code)
    form = place.forms()[0]
    assert (form["device_code"], form["resource"]) == ("DEVICE-SECRET", MCP)


@pytest.mark.parametrize(
    ("polls", "text"),
    [
        ([answer({"error": "access_denied"}, status=400)], "access_denied"),
        ([answer({"error": "expired_token"}, status=400)], "expired_token"),
        ([PENDING], "in time"),
    ],
)
async def test_a_code_that_is_not_taken_ends(autojump_clock, polls, text):
    """Refused, void, or nobody came."""
    with pytest.raises(AuthFailed, match=text):
        await play(world(*polls))


async def test_weather_is_waited_out(autojump_clock):
    """An outage between two looks does not end it."""
    place = world(answer({}, status=503), PENDING, GIVEN)
    tries = 0
    fetch = place.fetch

    async def flaky(request):
        nonlocal tries
        if request.url == f"{AS}/token":
            tries += 1
            if tries == 1:
                raise ConnectFailed(reason="no network")
        return await fetch(request)

    errand = Errand(MCP, AuthOptions(grant=GrantKind.DEVICE_CODE), Clock().sources)

    assert (await log_in_by_code(errand, flaky, place.prompter)).tokens.access_token == "a"


async def test_a_server_without_it_is_named():
    """Nothing is registered there."""
    place = World()

    with pytest.raises(AuthFailed, match="device authorization"):
        await play(place)

    assert len(place.log) == 2


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "http://as.example.com/device", "file:///x"])
async def test_a_page_that_must_not_be_opened_is_not_shown(uri):
    """E02."""
    with pytest.raises(AuthFailed, match="verification_uri"):
        await play(world(GIVEN, code={"verification_uri": uri}))


@pytest.mark.parametrize("code", [{"device_code": None}, {"user_code": ""}, {"verification_uri": None}])
async def test_an_incomplete_answer_is_an_error(code):
    """Nothing is shown."""
    with pytest.raises(AuthFailed):
        await play(world(GIVEN, code=code))
