"""A server whose entry says who we are: refused, it is failed, and nobody is sent to a login that would not help."""

from __future__ import annotations

import json

import pytest
import trio

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import AuthRequired, CredentialsRefused
from mcp_actors.runtime import open_runtime
from tests.transports.http_peer import Asked, Reply, json_reply, open_peer

OWN = {"authorization": "Bearer s3cret"}


def refusing(status: int, *, but: frozenset[str] = frozenset()):
    """A legacy server that answers `status` to all methods but these."""

    def script(asked: Asked) -> Reply:
        if asked.method != "POST":
            return Reply(status if not but else 405)
        message = json.loads(asked.body)
        if message["method"] not in but:
            return Reply(status)
        if "id" not in message:
            return Reply(202)
        result: object = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            result |= {"serverInfo": {"name": "n", "version": "1"}}
        return json_reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    return script


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("transport", [TransportName.HTTP, TransportName.SSE, TransportName.WS])
async def test_refused_credentials_of_the_entry_are_a_failure(transport: TransportName, status: int) -> None:
    """S092, S085: failed, not needs-auth; no metadata of a login is fetched, and the remedy is the entry."""
    with trio.fail_after(10):
        async with open_peer(refusing(status)) as peer:
            url = peer.url.replace("http:", "ws:") if transport is TransportName.WS else peer.url
            spec = ServerSpec("s", RemoteTarget(url, transport, headers=OWN))
            async with open_runtime([spec], environ={}) as runtime:
                told = (await runtime.wait_ready())["s"]

    assert (told.state, told.reason) == (ServerState.FAILED, "refused")
    assert told.error == f"the server refused the credentials of its configuration (HTTP {status})"
    assert told.remedy == CredentialsRefused().remedy
    assert "s3cret" not in repr(told)
    assert [asked.target for asked in peer.asked if "well-known" in asked.target] == []


@pytest.mark.parametrize(
    ("headers", "error", "state"),
    [(OWN, CredentialsRefused, ServerState.FAILED), ({"X-Key": "k"}, AuthRequired, ServerState.NEEDS_AUTH)],
)
async def test_a_call_that_is_refused_says_whose_credentials_they_were(
    headers: dict[str, str], error: type[Exception], state: ServerState
) -> None:
    """S092, S245: 401 in the middle of life ends it; only a server without credentials of its own wants a login."""
    served = frozenset({"initialize", "notifications/initialized", "tools/list"})
    with trio.fail_after(10):
        async with open_peer(refusing(401, but=served)) as peer:
            spec = ServerSpec("s", RemoteTarget(peer.url, headers=headers), era="legacy")  # type: ignore[arg-type]
            async with open_runtime([spec], environ={}) as runtime:
                await runtime.wait_ready()
                with runtime.watch() as changes:
                    with pytest.raises(error):
                        await runtime.call_tool("s.t")
                    change = await anext(changes)

    assert change.new is not None
    assert change.new.state is state
