"""The one contract of all transports, held against each of them."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
from attrs import define

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.testing.contracts import CHECKS
from mcp_actors.testing.faulty import FaultyTransport
from mcp_actors.transports import http_client
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.memory import MemoryTransport
from tests.transports.http_peer import event, json_reply, open_peer, sse_reply


@pytest.fixture(params=["httpx", "httpx2"], autouse=True)
def library(request, monkeypatch):
    """Both HTTP libraries in turn, where both are installed."""
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


PAIRS = {
    "memory": memory_pair,
    "http-json": lambda: http_pair(json_reply),
    "http-sse": lambda: http_pair(lambda body: sse_reply(event(body))),
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
