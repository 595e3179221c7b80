"""A fleet and its logins end to end: servers that demand one, wake for it, lose it, and want more of it.

The MCP server and its authorization server are one site on loopback; a login "elsewhere" is made by a desk of its own
over the same state directory, as another process would.
"""

from __future__ import annotations

import pytest
import trio
from attrs import define
from oauth_site import FILES, HELLO, Browser, elsewhere, fleet, open_site, remote, tool_of, wait_state
from scripted_fleet import echo_server, spec

from mcp_actors.auth import needs_auth
from mcp_actors.auth.store import StoreChoice
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import AuthFailed, AuthRequired
from mcp_actors.runtime import open_runtime

pytestmark = pytest.mark.slow


async def test_a_server_that_demands_a_login_holds_up_nobody(tmp_path):
    """It says what to run; a call to it fails at once and typed; the others serve (S268, D22, S099, S100)."""
    async with open_site() as site, fleet(site, tmp_path, spec("other", echo_server())) as runtime:
        status = runtime.server("srv").status
        with pytest.raises(AuthRequired, match="mcp-actors login srv") as caught:
            await runtime.call_tool("mcp__srv__add")
        result = await runtime.call_tool("other.echo", {"text": "still here"})

        assert (status.state, status.reason) == ("needs-auth", "needs-auth")
        assert status.remedy is not None
        assert "mcp-actors login srv" in status.remedy
        assert caught.value.server == "srv"
        assert result.text == "still here"


@pytest.mark.parametrize("store", [StoreChoice.FILE, StoreChoice.MEMORY])
async def test_signing_in_by_the_runtime_wakes_the_server(tmp_path, store):
    """`Server.log_in` returns when it starts again; what was needed is not asked for again (S249, S250)."""
    environ = {"MCP_ACTORS_CREDENTIALS_STORE": store}
    state_dir = tmp_path if store is StoreChoice.FILE else None
    with trio.fail_after(30):
        async with open_site() as site, open_runtime([remote(site)], environ=environ, state_dir=state_dir) as runtime:
            await runtime.wait_ready()
            signed = await runtime.server("srv").log_in(Browser())
            await wait_state(runtime, "connected")

            assert (signed.state, signed.store) == ("signed-in", store)
            assert not (await runtime.call_tool(tool_of(runtime), HELLO)).is_error


async def test_the_next_run_within_15_minutes_asks_nobody(tmp_path):
    """The memory of who wants a login spares the network; it is by what the server is, and a login clears it (S254)."""
    async with open_site() as site:
        async with fleet(site, tmp_path):
            pass
        asked = len(site.log)
        async with fleet(site, tmp_path) as runtime:
            assert runtime.server("srv").status.state == "needs-auth"
            with pytest.raises(AuthRequired, match="mcp-actors login srv"):
                await runtime.request("srv", "tools/list")
            assert len(site.log) == asked

        # The same name with other headers is another server (S255).
        other = ServerSpec("srv", RemoteTarget(site.url, headers={"X-Team": "a"}))
        async with open_runtime([other], environ=FILES, state_dir=tmp_path) as runtime:
            await runtime.wait_ready()
        assert len(site.log) > asked

        await elsewhere(tmp_path).log_in(remote(site), Browser())
        assert needs_auth.cache_id(remote(site)) not in (tmp_path / needs_auth.FILE_NAME).read_text()
        async with fleet(site, tmp_path) as runtime:
            assert runtime.server("srv").status.is_connected


async def test_a_stored_login_goes_before_what_is_remembered(tmp_path):
    """A server that is started anew after a login elsewhere uses it, whatever this process remembers (S255)."""
    async with open_site() as site, fleet(site, tmp_path) as runtime:
        desk = elsewhere(tmp_path)
        await desk.log_in(remote(site), Browser())
        await runtime.desk._cache.note(needs_auth.cache_id(remote(site)))

        await runtime.restart("srv")
        await wait_state(runtime, "connected")


async def test_twelve_calls_with_an_expired_token_renew_it_once(tmp_path):
    """The token rotates, the old refresh token is dead: one renewal, all calls succeed (S206, faults 56, 57)."""
    async with open_site() as site:
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        async with fleet(site, tmp_path) as runtime:
            name, before = tool_of(runtime), site.count
            site.good = set()
            results = []

            async def call():
                results.append(await runtime.call_tool(name, HELLO))

            async with trio.open_nursery() as nursery:
                for _ in range(12):
                    nursery.start_soon(call)

            assert [result.is_error for result in results] == [False] * 12
            assert site.count == before + 1
            assert runtime.server("srv").status.is_connected


async def test_a_login_that_ends_makes_its_server_wait_and_the_next_one_wakes_it(tmp_path):
    """S206: the refresh token is dead as well: the call fails typed, the server waits for a login, made elsewhere."""
    async with open_site() as site:
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        async with fleet(site, tmp_path) as runtime:
            site.good, site.refresh = set(), None
            with pytest.raises(AuthRequired, match="mcp-actors login srv"):
                await runtime.request("srv", "tools/list")
            await wait_state(runtime, "needs-auth")

            await elsewhere(tmp_path).log_in(remote(site), Browser())
            await runtime.request("srv", "tools/list")


async def test_a_call_that_wants_more_says_which_scopes_and_goes_on_once_they_are_granted(tmp_path):
    """Step-up without a person: the server stays connected, the command that helps is named whole, and a login made
    elsewhere serves without a restart (D13, S263, fault 66)."""
    async with open_site() as site:
        site.needed = {"tools/list": "read", "tools/call": "write"}
        desk = elsewhere(tmp_path)
        await desk.log_in(remote(site), Browser(), scopes=("read",))
        async with fleet(site, tmp_path) as runtime:
            name, generation = tool_of(runtime), runtime.server("srv").status.generation
            with pytest.raises(AuthRequired, match="mcp-actors login srv --scopes 'read write'"):
                await runtime.call_tool(name, HELLO)
            assert runtime.server("srv").status.is_connected

            await desk.log_in(remote(site), Browser(), scopes=("read", "write"))
            assert not (await runtime.call_tool(name, HELLO)).is_error
            assert runtime.server("srv").status.generation == generation


async def test_with_a_prompter_a_call_that_wants_more_asks_the_person(tmp_path):
    """The union of the scopes is asked for; the call goes on by itself (D13)."""
    async with open_site() as site:
        site.needed = {"tools/list": "read", "tools/call": "write"}
        await elsewhere(tmp_path).log_in(remote(site), Browser(), scopes=("read",))
        async with fleet(site, tmp_path, sign_in=Browser()) as runtime:
            assert not (await runtime.call_tool(tool_of(runtime), HELLO)).is_error
            assert site.granted == "read write"


HASTY = Settings(connect_timeout=10.0)


@define
class Slow(Browser):
    """A person who takes longer than a server has to connect."""

    clock: trio.testing.MockClock
    asked: int = 0

    async def _go(self, url, landing):
        self.asked += 1
        self.clock.jump(1.5 * HASTY.connect_timeout)
        await super()._go(url, landing)


async def test_the_clock_of_a_connect_stops_while_a_person_signs_in(tmp_path, mock_clock):
    """S202, S246: who takes their time is asked once, and the server is up afterwards."""
    mock_clock.rate = 1.0
    person = Slow(mock_clock)
    async with (
        open_site() as site,
        open_runtime([remote(site)], settings=HASTY, environ=FILES, state_dir=tmp_path, sign_in=person) as runtime,
    ):
        await runtime.wait_ready()
        status = runtime.server("srv").status

    assert (status.state, person.asked) == ("connected", 1)


async def test_the_clocks_of_a_call_stop_while_a_person_signs_in(tmp_path, mock_clock):
    """S202: a call that wants more scopes has its time, however long the person takes to grant them."""
    mock_clock.rate = 1.0
    async with open_site() as site:
        site.needed = {"tools/list": "read", "tools/call": "write"}
        await elsewhere(tmp_path).log_in(remote(site), Browser(), scopes=("read",))
        person = Slow(mock_clock)
        async with fleet(site, tmp_path, sign_in=person) as runtime:
            result = await runtime.call_tool(tool_of(runtime), HELLO, timeout=10.0)

    assert (result.is_error, person.asked) == (False, 1)


async def test_signing_out_ends_it_here_and_there(tmp_path):
    """Revoked and forgotten: this runtime's server needs a login, and that of another runtime at its next call."""
    async with open_site() as site:
        await elsewhere(tmp_path).log_in(remote(site), Browser())
        async with fleet(site, tmp_path) as runtime, fleet(site, tmp_path) as other:
            assert await runtime.server("srv").log_out()
            await wait_state(runtime, "needs-auth")
            with pytest.raises(AuthRequired):
                await other.request("srv", "tools/list")
            await wait_state(other, "needs-auth")

            assert "POST /revoke" in site.log
            assert (await other.server("srv").auth_status()).state == "signed-out"


async def test_what_signing_in_needs_is_declared_to_that_server_alone(tmp_path):
    """A silent grant's extension stands in the client capabilities towards its server and nobody else (S281)."""
    extension = "io.modelcontextprotocol/oauth-client-credentials"
    silent = {"grant": "client_credentials", "clientId": "c", "clientSecret": "s"}
    async with open_site() as site, open_site() as plain:
        plain.good = {""}  # wants no login
        specs = [
            ServerSpec("silent", RemoteTarget(site.url), raw={"oauth": silent}),
            ServerSpec("plain", RemoteTarget(plain.url)),
        ]
        with trio.fail_after(30):
            async with open_runtime(specs, environ={}) as runtime:
                assert all(status.is_connected for status in (await runtime.wait_ready()).values())

        assert declared(site) == {extension}
        assert declared(plain) == set()


def declared(site):
    """The extensions that a site was told of."""
    said = [message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] for message in site.heard]
    return {name for capabilities in said for name in capabilities.get("extensions", {})}


async def test_a_configuration_that_cannot_sign_in_is_said_and_wakes_nothing(tmp_path):
    """A broken ``oauth`` block is an error of its server; calls to it say so, whoever signs in meanwhile."""
    async with open_site() as site:
        broken = ServerSpec("bad", RemoteTarget(site.url), raw={"oauth": {"grant": "magic"}})
        async with fleet(site, tmp_path, broken) as runtime:
            assert "oauth.grant" in str(runtime.status()["bad"].error)
            with pytest.raises(AuthFailed, match="nobody to sign in"):
                await elsewhere(tmp_path).log_in(remote(site, grant="client_credentials"), Browser())
