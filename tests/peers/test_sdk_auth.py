"""Signing in to the official SDK's own authorization server."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from oauth_site import IN_FILES

from mcp_actors.auth.loopback import open_landing
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, RestartType, ServerSpec
from mcp_actors.fleet.signing import auth_of, make_desk
from mcp_actors.runtime import open_runtime
from mcp_actors.transports.fetching import exchange_once
from mcp_actors.transports.http import HttpTransport

pytestmark = [pytest.mark.peers, pytest.mark.slow]
PROGRAM = Path(__file__).with_name("sdk_auth_server.py")


class Browser:
    """A person whose browser follows redirects."""

    @asynccontextmanager
    async def receive(self, *, fixed, preferred):
        async with open_landing(self._go, fixed=fixed, preferred=preferred) as landing:
            yield landing

    async def _go(self, url, landing):
        get = partial(exchange_once, "GET", headers=(), body=b"", address=None, max_bytes=65536, environ={})
        _, headers, _ = await get(url=url)
        await get(url=headers["location"])

    async def show_code(self, code):
        raise AssertionError


@asynccontextmanager
async def sdk_server(lifetime):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, str(PROGRAM), str(port), str(lifetime)]
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        process = await nursery.start(run)
        while True:
            try:
                await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                break
            except OSError:
                assert process.poll() is None
                await trio.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@pytest.mark.parametrize("lifetime", [3600, 1])
async def test_a_person_signs_in_to_the_sdks_server(tmp_path, lifetime):
    """Registration, sign-in, a call, renewal of a rotating login, logout; a login that lives a second is renewed."""
    pytest.importorskip("mcp.server.mcpserver")
    with trio.fail_after(60):
        async with sdk_server(lifetime) as url:
            spec = ServerSpec("sdk", RemoteTarget(url), restart_type=RestartType.TEMPORARY)
            desk = make_desk(IN_FILES, state_dir=tmp_path)
            status = await desk.log_in(spec, Browser())
            assert (status.state, status.scopes, status.can_renew) == ("signed-in", ("read",), True)

            async with open_runtime(
                [spec], transports=lambda each: HttpTransport(each, Settings(), auth=auth_of(desk, each))
            ) as runtime:
                connected = (await runtime.wait_ready())["sdk"]
                assert connected.is_connected, connected
                for _ in range(3):
                    assert (await runtime.call_tool("sdk.whoami")).text == "you"
                    await trio.sleep(0.6 if lifetime == 1 else 0)

            assert await desk.log_out(spec)
            assert (await desk.status(spec)).state == "signed-out"
