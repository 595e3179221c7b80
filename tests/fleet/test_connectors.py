"""The second phase of loading: sources that come late join, and cost nobody but themselves."""

from __future__ import annotations

import json
import math

import pytest
import trio
import trio.testing
from attrs import define
from scripted_fleet import echo_server, spec

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec
from mcp_actors.errors import TransportBroken
from mcp_actors.files.loading import LoadedConfig
from mcp_actors.fleet.connectors import MAX_LIST_BYTES, HttpConnectorSource, join_connectors
from mcp_actors.runtime import open_runtime
from tests.transports.http_peer import CUT, HOLD, Reply, json_reply, open_peer


@define
class Late:
    """A source that takes its time, and then says this or raises it."""

    says: tuple[ServerSpec, ...] | Exception
    seconds: float = 0.0
    label: str = "late"

    async def fetch(self) -> SourceReading:
        await trio.sleep(self.seconds)
        if isinstance(self.says, Exception):
            raise self.says
        return SourceReading(Scope.CLAUDEAI, self.label, specs=self.says)


async def test_local_servers_do_not_wait_for_a_slow_source(autojump_clock: object) -> None:
    """S089, S104: what files say is up while the source still thinks; what it says joins without a reconnect."""
    async with open_runtime([spec("one", echo_server())]) as runtime, trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(join_connectors, runtime, Late((spec("two", echo_server(), scope=Scope.CLAUDEAI),), 20.0))
        await runtime.wait_ready(["one"])
        took = trio.current_time() - began
        before = runtime.snapshot.connections["one"]
        await trio.sleep(21)
        status = await runtime.wait_ready(["one", "two"])
        after = runtime.snapshot.connections["one"]

    assert took < 1
    assert [each.state for each in status.values()] == [ServerState.CONNECTED] * 2
    assert after is before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Late((), math.inf), "did not answer within 30 s"),
        (Late(TransportBroken(reason="no answer")), "connectors: no answer"),
        (Late(ConnectionResetError(104, "reset by peer")), "connectors: reset by peer"),
    ],
)
async def test_a_source_that_fails_costs_only_itself(source: Late, words: str, autojump_clock: object) -> None:
    """A problem tells of it; what it said before stays, as does everybody else (S104)."""
    async with open_runtime([spec("one", echo_server())]) as runtime:
        await join_connectors(runtime, Late((spec("two", echo_server(), scope=Scope.CLAUDEAI),)))
        sound = runtime.problems
        await runtime.wait_ready()
        changes = await join_connectors(runtime, source)
        problems = [str(problem) for problem in runtime.problems]
        names = set(runtime.status())
        await join_connectors(runtime, Late(()))
        left = set(runtime.status())

    assert sound == ()
    assert set(changes.unchanged) == names == {"one", "two"}
    assert len(problems) == 1
    assert words in problems[0]
    assert left == {"one"}


async def test_late_servers_survive_a_reload(autojump_clock: object) -> None:
    """What files say anew does not take away what a source said."""
    one = spec("one", echo_server())
    config = LoadedConfig((one,), readings=(SourceReading(Scope.DYNAMIC, "<program>", specs=(one,)),))
    async with open_runtime(config, reread=lambda: config) as runtime:
        await join_connectors(runtime, Late((spec("two", echo_server(), scope=Scope.CLAUDEAI),)))
        joined = set(runtime.status())
        loaded = runtime.configured.read_again()
        await runtime.apply(loaded)
        after = set(runtime.status())

    assert joined == after == {"one", "two"}


def body(**servers: object) -> bytes:
    return json.dumps({"mcpServers": servers}).encode()


async def test_an_http_source_gives_remote_servers_only() -> None:
    """What comes over a network starts no program and runs no helper here, and reads none of our variables."""
    entries = body(
        good={"type": "http", "url": "https://h/mcp", "headers": {"X": "${HOME:-none}"}},
        program={"command": "touch", "args": ["/tmp/x"]},
        helped={"type": "http", "url": "https://h/mcp", "headersHelper": "touch /tmp/x"},
    )
    with trio.fail_after(10):
        async with open_peer(lambda _: json_reply(entries)) as peer:
            source = HttpConnectorSource(peer.url + "?key=s3cret", {"Authorization": "Bearer s3cret"})
            reading = await source.fetch()

    assert [each.name for each in reading.specs] == ["good"]
    assert isinstance(reading.specs[0].target, RemoteTarget)
    assert reading.specs[0].target.headers == {"X": "none"}
    assert reading.specs[0].scope is Scope.CLAUDEAI
    assert {problem.server for problem in reading.problems} == {"program", "helped"}
    assert peer.asked[0].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in f"{source!r} {source.label} {reading!r}"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(500), "answered HTTP 500"),
        (Reply(200, [("Content-Length", str(MAX_LIST_BYTES + 1))], [b"x"], is_whole=False), "is longer than"),
        (Reply(200, [], [b"{"], is_whole=False), "broke off"),
        (CUT, "no answer"),
        (json_reply(b"{"), ""),
    ],
)
async def test_an_http_source_that_misbehaves_is_a_problem(reply: Reply, words: str) -> None:
    """Refused, too long, cut or garbled: one problem, and the fleet is as it was."""
    with trio.fail_after(10):
        async with open_peer(lambda _: reply) as peer, open_runtime([spec("one", echo_server())]) as runtime:
            await join_connectors(runtime, HttpConnectorSource(peer.url))
            names = list(runtime.status())

    assert len(runtime.problems) == 1
    assert words in str(runtime.problems[0])
    assert names == ["one"]


async def test_an_http_source_that_never_ends_is_left_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded in time, whatever trickles."""
    monkeypatch.setattr("mcp_actors.fleet.connectors.FETCH_SECONDS", 0.2)
    with trio.fail_after(10):
        async with open_peer(lambda _: Reply(200, [], [b"{", HOLD])) as peer, open_runtime([]) as runtime:
            await join_connectors(runtime, HttpConnectorSource(peer.url))

    assert "did not answer within" in str(runtime.problems[0])
