"""Headers of a helper on real requests: fresh at every connect, once more when refused, one run for many calls."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import AuthRequired, ConnectFailed
from mcp_actors.protocol.types import Era, Frame, ServerInfo
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.contracts import RecordingSink
from mcp_actors.transports.carried_headers import CarriedHeaders
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.http_headers import fixed_headers
from tests.transports.http_peer import Asked, Reply, json_reply, open_peer

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/"}
LEGACY = ServerInfo("2025-11-25", Era.LEGACY)


def counting(tmp_path: Path) -> str:
    """A helper that prints the number of its run."""
    count = tmp_path / "count"
    return f"""echo x >> {count}; echo "{{\\"X-Run\\": \\"$(wc -l < {count} | tr -d ' ')\\"}}" """


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "count").read_text().splitlines())


def request(request_id: int, method: str = "tools/call") -> Frame:
    data = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method}).encode()
    return Frame(data, request_id=request_id, method=method)


def answer(asked: Asked, result: object) -> Reply:
    number = json.loads(asked.body)["id"]
    return json_reply(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


async def test_what_it_prints_overrides_headers_of_the_same_name(tmp_path: Path) -> None:
    """S090: in whatever case; the other headers stay."""
    target = RemoteTarget(
        "http://h", headers={"x-KEY": "old", "Y": "stays"}, headers_helper="""echo '{"X-Key": "new"}'"""
    )
    carried = CarriedHeaders(ServerSpec("s", target), ENVIRON, lambda target: fixed_headers(target, server="s"))

    before = dict(carried.pairs)
    await carried.open()

    assert before[b"x-KEY"] == b"old"
    assert [pair for pair in carried.pairs if pair[0].lower() in (b"x-key", b"y")] == [
        (b"Y", b"stays"),
        (b"X-Key", b"new"),
    ]
    assert "new" not in repr(carried)


async def test_what_cannot_be_sent_fails_the_connect() -> None:
    """A header that HTTP forbids is the helper's fault; its value is not shown."""
    target = RemoteTarget("http://h", headers_helper="""echo '{"X": "s3cret\\\\u0000"}'""")
    carried = CarriedHeaders(ServerSpec("s", target), ENVIRON, lambda target: fixed_headers(target, server="s"))

    with pytest.raises(ConnectFailed, match="cannot be sent") as caught:
        await carried.open()

    assert "s3cret" not in str(caught.value)


async def test_many_refused_calls_run_it_once(tmp_path: Path) -> None:
    """S091: five calls meet a 401 with the first run's headers; the helper runs once more, each call is tried again."""

    def script(asked: Asked) -> Reply:
        if asked.method != "POST":
            return Reply(405)
        is_call = json.loads(asked.body)["method"] == "tools/call"
        return Reply(401) if is_call and asked.headers["x-run"] == "1" else answer(asked, {})

    with trio.fail_after(10):
        async with open_peer(script) as peer, trio.open_nursery() as nursery:
            target = RemoteTarget(peer.url, headers_helper=counting(tmp_path))
            transport = HttpTransport(ServerSpec("s", target), Settings(), environ=ENVIRON)
            sink = RecordingSink()
            await nursery.start(lambda task_status: transport.run(sink, task_status=task_status))
            sink.expect(0)
            await transport.send(request(0, "initialize"))
            transport.session_ready(LEGACY)
            async with trio.open_nursery() as calls:
                for number in range(1, 6):
                    sink.expect(number)
                    calls.start_soon(transport.send, request(number))
            nursery.cancel_scope.cancel()

    assert runs(tmp_path) == 2
    assert len(sink.delivered) == 6
    assert len(peer.of("POST")) == 11


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_refuses_the_fresh_headers_too_needs_a_login(tmp_path: Path, status: int) -> None:
    """S091: re-run, once more, only then needs-auth; the call says so."""

    def script(asked: Asked) -> Reply:
        if asked.method != "POST":
            return Reply(405)
        message = json.loads(asked.body)
        if message["method"] == "tools/call":
            return Reply(status)
        if message["method"] == "tools/list":
            return answer(asked, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        if message["method"] == "initialize":
            made = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            return answer(asked, {**made, "serverInfo": {"name": "n", "version": "1"}})
        return answer(asked, {}) if "id" in message else Reply(202)

    with trio.fail_after(10):
        async with open_peer(script) as peer:
            target = RemoteTarget(peer.url, headers_helper=counting(tmp_path))
            spec = ServerSpec("s", target, era="legacy")  # type: ignore[arg-type]
            async with open_runtime([spec], environ=ENVIRON) as runtime:
                await runtime.wait_ready()
                with runtime.watch() as changes:
                    with pytest.raises(AuthRequired):
                        await runtime.call_tool("s.t")
                    change = await anext(changes)
            calls = [asked for asked in peer.of("POST") if b"tools/call" in asked.body]

    assert [asked.headers["x-run"] for asked in calls] == ["1", "2"]
    assert change.new is not None
    assert change.new.state is ServerState.NEEDS_AUTH


@pytest.mark.parametrize("transport", [TransportName.HTTP, TransportName.SSE])
async def test_a_helper_that_fails_fails_the_connect(transport: TransportName) -> None:
    """Nothing is sent without what it should have printed."""
    with trio.fail_after(10):
        async with open_peer(lambda _: Reply(200)) as peer:
            target = RemoteTarget(peer.url, transport, headers_helper="echo sorry >&2; exit 1")
            async with open_runtime([ServerSpec("s", target)], environ=ENVIRON) as runtime:
                status = (await runtime.wait_ready())["s"]

    assert peer.asked == []
    assert status.reason == "headers-helper"
    assert (status.remedy or "").startswith("run its headersHelper by hand")
    assert status.error == "headersHelper exited with status 1\n  | sorry"
