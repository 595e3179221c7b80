"""The one contract of all transports, held against each of them."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager

import pytest
import trio
from attrs import define

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget, TransportName
from mcp_actors.testing.contracts import CHECKS
from mcp_actors.testing.faulty import FaultyTransport
from mcp_actors.transports import http_client
from mcp_actors.transports.fallback import FallbackTransport
from mcp_actors.transports.found import Found
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.legacy_sse import SseTransport
from mcp_actors.transports.memory import MemoryTransport
from mcp_actors.transports.stdio import StdioTransport
from mcp_actors.transports.websocket import WebSocketTransport
from tests.transports.http_peer import event, json_reply, open_peer, sse_reply
from tests.transports.sse_peer import open_sse_peer
from tests.transports.ws_peer import open_ws_server


@pytest.fixture(params=["httpx", "httpx2"], autouse=True)
def library(request, monkeypatch):
    """Both HTTP libraries in turn, where both are installed; the transports without HTTP need no second turn."""
    has_http = request.getfixturevalue("name") not in ("stdio", "memory", "websocket")
    if not has_http and request.param != "httpx":
        pytest.skip("not over HTTP")
    module = pytest.importorskip(request.param)
    monkeypatch.setattr(http_client, "httpx_library", lambda: module)
    http_client._body_class.cache_clear()
    yield module
    http_client._body_class.cache_clear()


@define
class SimplePair:
    transport: object
    end: object

    async def end_peer(self):
        self.end()


@asynccontextmanager
async def memory_pair():
    links = []

    async def echo(link):
        links.append(link)
        try:
            while True:
                await link.send(await link.receive())
        except (trio.EndOfChannel, trio.ClosedResourceError, trio.BrokenResourceError):
            return

    yield SimplePair(MemoryTransport(echo), lambda: links[0].close())


@asynccontextmanager
async def http_pair(reply):
    async with open_peer(lambda asked: reply(asked.body)) as peer, trio.open_nursery() as nursery:
        spec = ServerSpec("s", RemoteTarget(peer.url))
        yield SimplePair(HttpTransport(spec, Settings()), peer.stop)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def sse_pair():
    async with open_sse_peer() as server, trio.open_nursery() as nursery:
        spec = ServerSpec("s", RemoteTarget(server.url, transport=TransportName.SSE))
        yield SimplePair(SseTransport(spec, Settings()), server.peer.stop)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def fallback_pair():
    """A server that is remembered as HTTP+SSE although nobody named a transport."""
    async with open_sse_peer() as server, trio.open_nursery() as nursery:
        spec, found = ServerSpec("s", RemoteTarget(server.url, is_guess=True)), Found()
        found.remember(spec, is_older=True)
        yield SimplePair(FallbackTransport(spec, Settings(), found=found), server.peer.stop)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def websocket_pair():
    async with open_ws_server() as (url, end):
        spec = ServerSpec("s", RemoteTarget(url, transport=TransportName.WS))
        yield SimplePair(WebSocketTransport(spec, Settings()), end)


@asynccontextmanager
async def stdio_pair():
    """cat is an echo of lines."""
    transport = StdioTransport(ServerSpec("s", StdioTarget("cat")), Settings(), environ=os.environ)
    yield SimplePair(transport, lambda: os.kill(transport.diagnostics().pid, signal.SIGKILL))


PAIRS = {
    "stdio": stdio_pair,
    "memory": memory_pair,
    "http-json": lambda: http_pair(json_reply),
    "http-sse": lambda: http_pair(lambda body: sse_reply(event(body))),
    "sse": sse_pair,
    "fallback": fallback_pair,
    "websocket": websocket_pair,
}


def faulty(make_pair):
    @asynccontextmanager
    async def make():
        async with make_pair() as pair:
            yield SimplePair(FaultyTransport(pair.transport), pair.end)

    return make


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", PAIRS)
async def test_contract(name, check):
    """Every transport keeps every clause of the contract (base.py)."""
    with trio.fail_after(20):
        await check(PAIRS[name])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", PAIRS)
async def test_contract_faulty(name, check):
    """The faulty wrapper without a fault changes nothing."""
    with trio.fail_after(20):
        await check(faulty(PAIRS[name]))
