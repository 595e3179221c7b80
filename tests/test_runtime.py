"""The fleet in one process, on a virtual clock: connect, call, cancel, die, restart, stop; and sweeps over it."""

from __future__ import annotations

import itertools
import math
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import PERMANENT, StepSweep, echo_server, spec
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import Batch, InProcessTarget, RestartPolicy, RestartType, ServerSpec
from mcp_actors.errors import (
    ConfigError,
    GaveUp,
    RpcError,
    ServerNotReady,
    TransportBroken,
    TransportClosed,
    UnknownServer,
    UnknownTool,
)
from mcp_actors.model.face import ModelFace
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.faulty import FaultyTransport
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mcp_actors.fleet.running import Runtime
    from mcp_actors.transports.memory import MemoryLink

SETTINGS = Settings(connect_timeout=30.0)
ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS, "both": MODERN_REVISIONS + LEGACY_REVISIONS}


async def wait_state(runtime: Runtime, name: str, state: ServerState, phase: Phase | None = None) -> None:
    with runtime.watch() as changes:
        status = runtime.status().get(name)
        if status is not None and status.state is state and phase in (None, status.phase):
            return
        async for change in changes:
            new = change.new
            if change.name == name and new is not None and new.state is state and phase in (None, new.phase):
                break
    await runtime.wait_ready([])  # now the snapshot knows as well


# ── connecting and calling ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_of_any_era_is_connected_listed_and_called(era: str, autojump_clock: object) -> None:
    """Journeys connect and call: the newest common era is found, tools are listed under callable names (S108, S112)."""
    server = echo_server(revisions=ERAS[era])

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        status = (await runtime.wait_ready())["one"]
        result = await runtime.call_tool("mcp__one__echo", {"text": "hi"})
        by_route = await runtime.call_tool("one.echo", {"text": "ho"})

    assert (status.state, status.reason, status.tools) == (ServerState.CONNECTED, "ready", 3)
    assert status.era == ("legacy" if era == "legacy" else "modern")
    assert (result.text, by_route.text) == ("hi", "ho")
    assert server.violations == []


async def test_a_tool_that_fails_is_a_value(autojump_clock: object) -> None:
    """S211: `is_error` tells of it, nothing is raised."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.fail")

    assert (result.is_error, result.text) == (True, "no luck")


async def test_unknown_names_are_told_with_the_nearest(autojump_clock: object) -> None:
    """UnknownTool and UnknownServer carry suggestions."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        with pytest.raises(UnknownTool) as no_tool:
            await runtime.call_tool("mcp__one__ecko")
        with pytest.raises(UnknownServer) as no_server:
            await runtime.request("oen", "tools/list")
        with pytest.raises(UnknownServer):
            await runtime.disable("oen")

    assert "mcp__one__echo" in no_tool.value.nearest
    assert no_server.value.nearest == ("one",)


async def test_a_refused_call_raises_the_peers_error_and_names_the_server(autojump_clock: object) -> None:
    """B09: code, message and data are the peer's."""
    server = echo_server()
    server.refuse("tools/call", -32602, "bad arguments", {"field": "text"})

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        with pytest.raises(RpcError) as refused:
            await runtime.call_tool("one.echo")

    error = refused.value
    assert (error.server, error.code, error.message, error.data) == ("one", -32602, "bad arguments", {"field": "text"})


async def test_progress_reaches_the_caller_in_its_own_task(autojump_clock: object) -> None:
    """S203: rising progress is reported before the result; an async callback is awaited."""
    server = echo_server()

    async def work(call) -> str:
        for step in (1, 2, 3):
            await call.progress(step, 3, f"step {step}")
            await trio.sleep(1)
        return "done"

    server.add_tool("work", work)
    seen: list[tuple[float, float | None, str | None]] = []
    tasks: set[str] = set()

    async def note(progress) -> None:
        await trio.lowlevel.checkpoint()
        seen.append((progress.progress, progress.total, progress.message))
        tasks.add(trio.lowlevel.current_task().name)

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.work", progress=note)
        here = trio.lowlevel.current_task().name

    assert result.text == "done"
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert tasks == {here}


async def test_a_timeout_is_trios_and_tells_the_server_once(autojump_clock: object) -> None:
    """Fault 79: the call ends at its deadline, the server is told, and the connection stays usable."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await runtime.call_tool("one.slow", {"seconds": 100}, timeout=5)
        took = trio.current_time() - began
        cancelled = await server.wait_seen("notifications/cancelled")
        after = await runtime.call_tool("one.echo", {"text": "still here"})

    assert took == 5
    assert cancelled[0]["params"]["requestId"] == server.seen("tools/call")[0]["id"]
    assert (len(cancelled), after.text) == (1, "still here")


async def test_a_timeout_names_the_server_that_is_waited_for(autojump_clock: object) -> None:
    """A call whose time runs out before its server is up says so, and why it is not up yet (S200, S417)."""
    mute = echo_server(revisions=LEGACY_REVISIONS)
    mute.silence("initialize")

    async with open_runtime([spec("one", mute)], settings=SETTINGS) as runtime:
        with pytest.raises(trio.TooSlowError) as caught:
            await runtime.call_tool("one.echo", timeout=5)
        with pytest.raises(trio.TooSlowError) as seen:
            await ModelFace(runtime).call("mcp__one__echo", timeout=5)

    assert str(caught.value) == "the queue clock ran out after 5 s: waiting for one (connecting)"
    assert str(seen.value) == "the queue clock ran out after 5 s: mcp__one__echo is not offered yet"


async def test_a_timeout_names_no_server_but_the_one_that_is_waited_for(autojump_clock: object) -> None:
    """Field 53: however many others are late too, and with what it told of itself last (S417)."""
    mute = echo_server(revisions=LEGACY_REVISIONS)
    mute.silence("initialize")

    async def refuse(link: object) -> None:
        raise OSError("no route")

    late = ServerSpec("late", InProcessTarget(refuse), restart_type=RestartType.PERMANENT)
    async with open_runtime([*(spec(f"m{n}", mute) for n in range(5)), late], settings=SETTINGS) as runtime:
        await runtime.wait_ready(["late"])
        with pytest.raises(trio.TooSlowError) as caught:
            await runtime.call_tool("late.echo", timeout=0.5)
        with pytest.raises(trio.TooSlowError) as asked:
            await runtime.request("late", "tools/list", timeout=0.25)

    reason = "waiting for late (the server in this process failed: OSError: no route)"
    assert str(caught.value) == f"the queue clock ran out after 0.5 s: {reason}"
    assert str(asked.value) == f"the queue clock ran out after 0.25 s: {reason}"


@pytest.mark.parametrize(
    "ask",
    [
        lambda runtime: runtime.call_tool("one.echo", {"text": "x"}, timeout=5),
        lambda runtime: runtime.request("one", "tools/list", timeout=5),
        lambda runtime: runtime.server("one").read_resource("note://a", timeout=5),
    ],
    ids=["call_tool", "request", "read_resource"],
)
async def test_a_timeout_counts_the_wait_for_a_server_that_is_about_to_go(ask, autojump_clock: object) -> None:
    """S197, S200: a tool that is still listed while its connection has ended costs no more than the call may take."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        (await runtime.connection("one")).close(TransportClosed(server="one"))
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError, match="the queue clock ran out after 5 s"):
            await ask(runtime)
        took = trio.current_time() - began

    assert took == pytest.approx(5)


@pytest.mark.deadline(1000)
async def test_a_timeout_of_any_request_is_told_and_that_of_a_handshake_is_not(autojump_clock: object) -> None:
    """Fault 79: resources/read is cancelled at the server, once and never repeated; ``initialize`` must not be."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    server.silence("resources/read")
    mute = echo_server(revisions=LEGACY_REVISIONS)
    mute.silence("initialize")

    async with open_runtime([spec("one", server), spec("mute", mute)], settings=SETTINGS) as runtime:
        mute_state = (await runtime.wait_ready())["mute"].state
        with pytest.raises(trio.TooSlowError):
            await runtime.request("one", "resources/read", {"uri": "a:b"}, timeout=5)
        cancelled = await server.wait_seen("notifications/cancelled")
        await trio.sleep(100)

    [read] = server.seen("resources/read")
    assert [each["params"]["requestId"] for each in cancelled] == [read["id"]]
    assert mute_state is ServerState.FAILED
    assert mute.seen("notifications/cancelled") == []


async def test_the_deadlines_of_many_calls_are_kept_each(autojump_clock: object) -> None:
    """One alarm serves calls that end in any order."""
    ends: dict[float, float] = {}

    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()

        async def call(timeout: float) -> None:
            with pytest.raises(trio.TooSlowError):
                await runtime.call_tool("one.slow", {"seconds": 1000}, timeout=timeout)
            ends[timeout] = trio.current_time() - began

        async with trio.open_nursery() as nursery:
            for timeout in (30.0, 10.0, 20.0, 5.0):
                nursery.start_soon(call, timeout)

    assert ends == {5.0: 5.0, 10.0: 10.0, 20.0: 20.0, 30.0: 30.0}


async def test_a_slow_call_does_not_hold_up_others(autojump_clock: object) -> None:
    """S208: two calls of one second beside one of thirty take one second: nothing is relayed (data plane)."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.call_tool, "one.slow", {"seconds": 30})
            began = trio.current_time()
            async with trio.open_nursery() as quick:
                quick.start_soon(runtime.call_tool, "one.slow", {"seconds": 1})
                quick.start_soon(runtime.call_tool, "one.slow", {"seconds": 1})
            took = trio.current_time() - began

    assert took == 1


# ── one bad server among many ────────────────────────────────────────────────────────────────────────────────────────


async def test_one_mute_server_holds_up_no_other(autojump_clock: object) -> None:
    """S106, S171, S410, fault 88, invariant 4: twenty servers are ready at once beside a mute one, which fails."""
    mute = echo_server(revisions=LEGACY_REVISIONS)
    mute.silence("initialize")
    specs = [spec("mute", mute), *(spec(f"s{number}", echo_server()) for number in range(20))]

    async with open_runtime(specs, settings=SETTINGS) as runtime:
        began = trio.current_time()
        await runtime.wait_ready([f"s{number}" for number in range(20)])
        ready_after = trio.current_time() - began
        status = (await runtime.wait_ready(["mute"]))["mute"]
        failed_after = trio.current_time() - began

    assert ready_after < 1
    assert (status.state, status.reason) == (ServerState.FAILED, "timeout")
    assert "no answer to the handshake within 30 s" in (status.error or "")
    assert 30 <= failed_after < 31


@pytest.mark.deadline(200_000)
async def test_permits_bound_the_connects_and_queueing_costs_no_timeout(autojump_clock: object) -> None:
    """S105-S107, invariant 3: never more than the limit connect at once; the last of the queue is not timed out."""
    connecting = peak = 0

    def slow_start(server):
        async def serve(link) -> None:
            nonlocal connecting, peak
            connecting += 1
            peak = max(peak, connecting)
            await trio.sleep(20)
            connecting -= 1
            await server.serve(link)

        return serve

    specs = [spec(f"s{number}", slow_start(echo_server(revisions=LEGACY_REVISIONS))) for number in range(10)]
    settings = evolve(SETTINGS, probe_timeout=25.0)

    async with open_runtime(specs, settings=settings) as runtime:
        began = trio.current_time()
        statuses = await runtime.wait_ready()
        took = trio.current_time() - began

    assert {status.state for status in statuses.values()} == {ServerState.CONNECTED}
    assert peak == 3
    assert 80 <= took < 81  # four rounds of three at most


async def test_a_bug_in_one_child_touches_no_sibling(autojump_clock: object, caplog: pytest.LogCaptureFixture) -> None:
    """S135: an exception that is not weather is logged as a bug, and the others go on."""

    def broken(_spec) -> object:
        raise ZeroDivisionError("planted")

    good = echo_server()

    def transports(one):
        return broken(one) if one.name == "bad" else MemoryTransport(one.target.serve)

    specs = [spec("bad", good), spec("good", good)]
    async with open_runtime(specs, settings=SETTINGS, transports=transports) as runtime:
        statuses = await runtime.wait_ready()
        result = await runtime.call_tool("good.echo", {"text": "fine"})

    assert (statuses["bad"].state, statuses["bad"].reason) == (ServerState.FAILED, "bug")
    assert result.text == "fine"
    assert any(record.levelname == "ERROR" and "planted" in str(record.exc_info) for record in caplog.records)


async def test_a_bug_at_the_end_is_told_although_a_command_ended_the_life(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """S135: a server that is switched off is disabled, whatever breaks meanwhile; what is wrong with us is logged."""

    class Clumsy(MemoryTransport):
        async def run(self, sink, *, task_status=trio.TASK_STATUS_IGNORED):
            try:
                await super().run(sink, task_status=task_status)
            finally:
                raise ZeroDivisionError("planted")

    async with open_runtime([spec("one", echo_server())], transports=lambda one: Clumsy(one.target.serve)) as runtime:
        await runtime.wait_ready()
        await runtime.disable("one")
        status = runtime.status()["one"]

    assert (status.state, status.reason, status.error) == (ServerState.DISABLED, "user", None)
    assert any(record.levelname == "ERROR" and "planted" in str(record.exc_info) for record in caplog.records)


class Silent(MemoryTransport):
    """A transport of a user's own whose `run` returns instead of raising why; with `ends` it opens before."""

    def __init__(self, serve, ends: trio.Event | None = None) -> None:
        super().__init__(serve)
        self.ends = ends

    async def run(self, sink, *, task_status=trio.TASK_STATUS_IGNORED):
        if self.ends is not None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(super().run, sink, task_status=task_status))
                await self.ends.wait()
                nursery.cancel_scope.cancel()


async def test_a_transport_that_returns_before_it_is_open_is_a_failed_connect(autojump_clock: object) -> None:
    """It is told at once; nobody waits for the connect timeout (invariant 1)."""
    began = trio.current_time()
    async with open_runtime([spec("one", echo_server())], transports=lambda one: Silent(one.target.serve)) as runtime:
        status = (await runtime.wait_ready())["one"]

    assert (status.state, status.reason) == (ServerState.FAILED, "unreachable")
    assert "the transport ended before it was open" in (status.error or "")
    assert trio.current_time() - began < 1


@pytest.mark.parametrize("is_calling", [True, False])
async def test_a_transport_that_returns_while_it_is_used_is_broken(is_calling: bool, autojump_clock: object) -> None:
    """Calls in flight fail with it and the server is connected no more (invariant 1)."""
    failures: list[TransportBroken] = []
    ends, server = trio.Event(), echo_server()

    async def call(runtime) -> None:
        with pytest.raises(TransportBroken) as broken:
            await runtime.call_tool("one.slow", {"seconds": 1000})
        failures.append(broken.value)

    async with open_runtime([spec("one", server)], transports=lambda one: Silent(one.target.serve, ends)) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            if is_calling:
                nursery.start_soon(call, runtime)
            await wait_all_tasks_blocked()
            ends.set()
        await wait_state(runtime, "one", ServerState.FAILED)
        status = runtime.status()["one"]

    assert [failure.reason for failure in failures] == ["the transport ended"] * is_calling
    assert (status.state, status.reason) == (ServerState.FAILED, "crash")
    assert "the transport ended" in (status.error or "")


# ── dying, restarting ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_death_fails_every_call_at_once_and_drops_the_tools(autojump_clock: object) -> None:
    """S209, fault 17: pending calls fail with the cause, the next snapshot offers nothing of the server."""
    server = echo_server()
    failures: list[BaseException] = []

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()

        async def call() -> None:
            with pytest.raises(TransportBroken) as broken:
                await runtime.call_tool("one.slow", {"seconds": 1800})
            failures.append(broken.value)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call)
            await server.wait_seen("tools/call", 5)
            server.die_on("ping")
            server.die_on("resources/list")
            began = trio.current_time()
            with pytest.raises(TransportBroken):
                await runtime.request("one", "resources/list")
        took = trio.current_time() - began
        await wait_state(runtime, "one", ServerState.FAILED)
        await trio.sleep(0.02)
        tools = dict(runtime.catalog.tools)

    assert len(failures) == 5
    assert len({id(failure) for failure in failures}) == 5
    assert took < 1.5
    assert tools == {}


@pytest.mark.deadline(200_000)
async def test_a_temporary_server_is_started_again_by_the_next_call(autojump_clock: object) -> None:
    """S115, S117, S120, S198: a dead stdio-like server stays failed until somebody calls one of its tools."""
    server = echo_server()

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        server.die_on("resources/list", times=1)
        with pytest.raises(TransportBroken):
            await runtime.request("one", "resources/list")
        await wait_state(runtime, "one", ServerState.FAILED)
        await trio.sleep(3600)
        still = runtime.status()["one"]
        result = await runtime.call_tool("mcp__one__echo", {"text": "again"})
        status = runtime.status()["one"]

    assert (still.state, still.phase) == (ServerState.FAILED, Phase.PARKED)
    assert (result.text, status.generation) == ("again", 2)


async def test_many_calls_to_a_dead_server_start_it_once(autojump_clock: object) -> None:
    """S113, S125: concurrent callers share one attempt."""
    server = echo_server()

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        server.die_on("resources/list", times=1)
        with pytest.raises(TransportBroken):
            await runtime.request("one", "resources/list")
        await wait_state(runtime, "one", ServerState.FAILED)
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(runtime.call_tool, "one.echo", {"text": str(number)})
        status = runtime.status()["one"]

    assert status.generation == 2


@pytest.mark.deadline(200_000)
async def test_a_flapping_server_is_parked_and_calls_are_refused_with_the_reason(autojump_clock: object) -> None:
    """Fault 91, invariant 6: a server that dies after every handshake is started `intensity` times, then parked."""
    server, policy = echo_server(), RestartPolicy(intensity=6)
    server.die_on("tools/list")
    starts = 0

    async def serve(link) -> None:
        nonlocal starts
        starts += 1
        await server.serve(link)

    flapping = evolve(spec("one", serve, **PERMANENT), restart_policy=policy)
    async with open_runtime([flapping], settings=SETTINGS) as runtime:
        await wait_state(runtime, "one", ServerState.FAILED)
        status = runtime.status()["one"]
        with pytest.raises(ServerNotReady) as refused:
            await runtime.request("one", "tools/list")
        await trio.sleep(24 * 3600)
        rested = starts
        server.obey("tools/list")
        await runtime.restart("one")
        await runtime.wait_ready()
        await wait_state(runtime, "one", ServerState.CONNECTED)

    assert (status.phase, status.reason) == (Phase.PARKED, "crash-loop")
    assert status.remedy
    assert refused.value.reason.startswith("crash-loop")
    assert isinstance(refused.value.__cause__, GaveUp)
    assert len(refused.value.__cause__.failures) == 6
    assert (rested, starts) == (6, 7)


@pytest.mark.deadline(200_000)
async def test_a_parked_server_is_probed_where_its_policy_says_so(autojump_clock: object) -> None:
    """S118, fault 92: with `park_probe` a server that was out for an hour comes back by itself."""
    server = echo_server()
    server.die_on("server/discover")
    server.die_on("initialize")
    changes = {"restart_type": RestartType.PERMANENT, "restart_policy": RestartPolicy(park_probe=300.0)}

    async with open_runtime([spec("one", server, **changes)], settings=SETTINGS) as runtime:
        await trio.sleep(3600)
        parked = runtime.status()["one"]
        server.obey("server/discover")
        server.obey("initialize")
        with trio.fail_after(301):
            await wait_state(runtime, "one", ServerState.CONNECTED)

    assert parked.state is ServerState.FAILED


@pytest.mark.deadline(200_000)
async def test_backoff_follows_the_policy_and_a_connection_ends_it(autojump_clock: object) -> None:
    """S116, S411: tries come after 1, 2, 4 s; the status says when the next is due."""
    server = echo_server()
    server.die_on("server/discover", times=3)
    server.die_on("initialize", times=3)
    starts: list[float] = []

    async def serve(link) -> None:
        starts.append(trio.current_time())
        await server.serve(link)

    one = spec("one", serve, **PERMANENT)
    one = evolve(one, era=type(one.era)("legacy"))
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await wait_state(runtime, "one", ServerState.PENDING, Phase.BACKING_OFF)
        waiting = runtime.status()["one"]
        await wait_state(runtime, "one", ServerState.CONNECTED)
        status = runtime.status()["one"]

    assert [round(later - earlier, 3) for earlier, later in itertools.pairwise(starts)] == [1, 2, 4]
    assert waiting.next_retry == pytest.approx(starts[0] + 1)
    assert (status.attempt, status.next_retry, status.error) == (0, None, None)


async def test_servers_that_were_dropped_at_once_come_back_one_by_one(autojump_clock: object) -> None:
    """Fault 90: with jitter the tries of a whole fleet are spread over the backoff, and all servers are back soon."""
    dropped = trio.Event()
    starts: dict[str, list[float]] = {}

    def serve_as(name: str) -> Callable[[MemoryLink], Awaitable[None]]:
        async def serve(link: MemoryLink) -> None:
            starts.setdefault(name, []).append(trio.current_time())
            async with trio.open_nursery() as nursery:
                if len(starts[name]) == 1:
                    nursery.start_soon(_cancel_when, dropped, nursery.cancel_scope)
                await echo_server().serve(link)

        return serve

    policy = RestartPolicy(backoff_first=8.0, has_jitter=True)
    specs = [
        spec(f"s{number}", serve_as(f"s{number}"), restart_type=RestartType.PERMANENT, restart_policy=policy)
        for number in range(50)
    ]
    async with open_runtime(specs, settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        at = trio.current_time()
        dropped.set()
        await trio.sleep(9)
        states = {status.state for status in runtime.status().values()}

    tries = sorted(second - at for _first, second in starts.values())
    assert states == {ServerState.CONNECTED}
    assert tries[-1] <= 8.1
    # Fifty draws from (0, 8]: that no three seconds of it saw one has a chance of about 1 in 10^10.
    assert all(any(low <= moment < low + 3 for moment in tries) for low in (0, 2.5, 5))


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def test_a_call_joins_a_reconnect_in_progress(autojump_clock: object) -> None:
    """S125, S198: a call to a server that is backing off waits for the try that is due."""
    server = echo_server()

    async with open_runtime([spec("one", server, **PERMANENT)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        server.die_on("resources/list", times=1)
        with pytest.raises(TransportBroken):
            await runtime.request("one", "resources/list")
        began = trio.current_time()
        result = await runtime.call_tool("one.echo", {"text": "waited"})
        took = trio.current_time() - began

    assert result.text == "waited"
    assert 0.9 < took < 1.2


# ── steering ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_disable_sticks_and_enable_brings_back(autojump_clock: object) -> None:
    """S097, S101, S128: a disabled server takes no calls, whatever it was doing; enabling connects it again."""
    server = echo_server()

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        await runtime.disable("one")
        status = runtime.status()["one"]
        with pytest.raises(ServerNotReady):
            await runtime.call_tool("one.echo")
        await runtime.enable("one")
        await runtime.wait_ready()
        result = await runtime.call_tool("one.echo", {"text": "back"})

    assert (status.state, status.phase, status.reason) == (ServerState.DISABLED, Phase.STOPPED, "user")
    assert result.text == "back"


async def test_no_state_outlives_a_run(tmp_path: Path, autojump_clock: object) -> None:
    """S103: what a run disabled, gave up or counted is nothing to the next one with the same state directory."""
    policy = RestartPolicy(max_tries=0)
    seen = []

    async def dead(link: object) -> None:
        raise OSError("not today")

    for serve in (dead, echo_server()):
        specs = [spec("one", serve, restart_policy=policy), spec("off", echo_server())]
        async with open_runtime(specs, settings=SETTINGS, state_dir=tmp_path) as runtime:
            await runtime.wait_ready()
            seen.append({name: str(status.state) for name, status in runtime.status().items()})
            await runtime.disable("off")

    assert seen == [{"one": "failed", "off": "connected"}, {"one": "connected", "off": "connected"}]


@pytest.mark.parametrize(
    "order",
    [
        "add call restart call cancelled call remove",
        "add cancelled disable enable call remove",
        "add remove add call disable remove",
    ],
)
async def test_every_step_of_a_servers_life_may_come_from_another_task(order: str, autojump_clock: object) -> None:
    """Fault 87: who added a server need not live for others to call, restart or remove it; a step may be cancelled."""
    server = echo_server()
    results: list[str] = []

    async with open_runtime([], settings=SETTINGS) as runtime:

        async def add() -> None:
            await runtime.add_server(spec("one", server))

        async def call() -> None:
            await runtime.wait_ready(["one"])
            results.append((await runtime.call_tool("one.echo", {"text": "hi"})).text)

        async def cancelled() -> None:
            with trio.CancelScope() as scope:
                scope.cancel()
                await runtime.restart("one")

        steps = {
            "add": add,
            "call": call,
            "cancelled": cancelled,
            "restart": lambda: runtime.restart("one"),
            "disable": lambda: runtime.disable("one"),
            "enable": lambda: runtime.enable("one"),
            "remove": lambda: runtime.remove_server("one"),
        }
        for step in order.split():
            async with trio.open_nursery() as nursery:  # each in a task of its own, which has ended before the next
                nursery.start_soon(steps[step])
        left = dict(runtime.status())

    assert results == ["hi"] * order.split().count("call")
    assert left == {}


@pytest.mark.parametrize("command", ["restart", "enable"])
@pytest.mark.deadline(200_000)
async def test_who_waits_after_a_command_waits_for_its_first_try(command: str, autojump_clock: object) -> None:
    """S171: what a server failed at before the command is no answer to who waits for readiness after it."""
    server = echo_server()
    server.die_on("server/discover", times=1)
    server.die_on("initialize", times=1)

    async with open_runtime([spec("one", server, **PERMANENT)], settings=SETTINGS) as runtime:
        before = (await runtime.wait_ready())["one"]
        if command == "enable":
            await runtime.disable("one")
        await getattr(runtime, command)("one")
        after = (await runtime.wait_ready())["one"]

    assert (before.is_connected, before.attempt > 0) == (False, True)
    assert (after.is_connected, after.attempt) == (True, 0)


@pytest.mark.parametrize("delay", [0.0, 1.0, 4.0])
@pytest.mark.deadline(200_000)
async def test_disabling_during_a_connect_sticks(delay: float, autojump_clock: object) -> None:
    """CL 2.1.221, S128: also while the handshake is under way."""
    server = echo_server()
    server.silence("server/discover")
    server.silence("initialize")

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await trio.sleep(delay)
        await runtime.disable("one")
        await trio.sleep(100)
        status = runtime.status()["one"]

    assert (status.state, status.phase) == (ServerState.DISABLED, Phase.STOPPED)


async def test_pending_calls_fail_first_when_a_server_is_disabled(autojump_clock: object) -> None:
    """S146: a call in flight ends with `TransportClosed` before the server is torn down."""
    server = echo_server()

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()

        async def call() -> None:
            with pytest.raises(TransportClosed):
                await runtime.call_tool("one.slow", {"seconds": 1000})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await server.wait_seen("tools/call")
            await runtime.disable("one")


async def test_servers_are_added_replaced_and_removed(autojump_clock: object) -> None:
    """S167: the fleet changes while it runs; a replaced definition gets the next generation (S126)."""
    async with open_runtime([], settings=SETTINGS) as runtime:
        await runtime.add_server(spec("one", echo_server()))
        await runtime.wait_ready()
        first = runtime.status()["one"].generation
        await runtime.add_server(spec("one", echo_server()))
        await runtime.wait_ready()
        second = runtime.status()["one"].generation
        result = await runtime.call_tool("one.echo", {"text": "new"})
        await runtime.remove_server("one")
        await trio.sleep(0.02)
        statuses, tools = dict(runtime.status()), dict(runtime.catalog.tools)

    assert (first, second, result.text) == (1, 2, "new")
    assert (statuses, tools) == ({}, {})


async def test_watchers_see_every_change_in_order(autojump_clock: object) -> None:
    """S102: each change carries the old and the new status."""
    seen: list[tuple[str, str]] = []

    async with open_runtime([], settings=SETTINGS) as runtime:
        with runtime.watch() as changes:
            await runtime.add_server(spec("one", echo_server()))
            await runtime.wait_ready()
            await runtime.remove_server("one")
            await trio.sleep(0.1)
            async for change in changes:
                seen.append((change.old.phase if change.old else "-", change.new.phase if change.new else "-"))
                if change.new is None:
                    break

    assert seen == [
        ("-", "queued"),
        ("queued", "connecting"),
        ("connecting", "listing"),
        ("listing", "ready"),
        ("ready", "stopping"),
        ("stopping", "stopped"),
        ("stopped", "-"),
    ]


@pytest.mark.parametrize("pause", [0.0, 0.0005, 0.01])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_list_changes_refresh_the_catalog_with_few_requests(
    era: str, pause: float, autojump_clock: object
) -> None:
    """S152, fault 80: two hundred notifications cost a few lists at any pace; the newest list is published."""
    server = echo_server(revisions=ERAS[era])

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        await trio.sleep(10)
        before = len(server.seen("tools/list"))
        for _ in range(200):
            await server.notify("notifications/tools/list_changed")
            await trio.sleep(pause)
        server.add_tool("late", lambda call: "new")
        await server.notify("notifications/tools/list_changed")
        await trio.sleep(10)
        names = [tool.name for tool in runtime.catalog.tools.values()]
        asked = len(server.seen("tools/list")) - before

    assert "late" in names
    assert 1 <= asked <= (2 if pause < 0.01 else 6)


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.deadline(10_000)
async def test_a_server_that_changes_with_each_list_is_asked_ever_more_slowly(era: str, autojump_clock: object) -> None:
    """Invariant 4: it costs a request in ten seconds, and is up to date within as long."""
    server = echo_server(revisions=ERAS[era])
    is_restless = True

    async def nag() -> None:
        count = 0
        while is_restless:
            count += 1
            await server.wait_seen("tools/list", count)
            await server.notify("notifications/tools/list_changed")

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime, trio.open_nursery() as nursery:
        await runtime.wait_ready()
        nursery.start_soon(nag)
        await trio.sleep(100)
        asked = len(server.seen("tools/list"))
        is_restless = False
        server.add_tool("late", lambda call: "new")
        await trio.sleep(100)
        names = [tool.name for tool in runtime.catalog.tools.values()]
        rest = len(server.seen("tools/list"))
        nursery.cancel_scope.cancel()

    assert asked <= 20
    assert rest <= asked + 2
    assert "late" in names


async def test_a_failed_list_leaves_the_server_connected_and_flagged(autojump_clock: object) -> None:
    """S155: zero tools are never silent."""
    server = echo_server()
    server.refuse("tools/list", -32603, "database gone")

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        status = (await runtime.wait_ready())["one"]

    assert status.state is ServerState.CONNECTED
    assert status.tools is None
    assert any("database gone" in warning for warning in status.warnings)


async def test_an_error_in_the_block_comes_out_bare(autojump_clock: object) -> None:
    """S419: no exception group crosses the public border."""
    with pytest.raises(ZeroDivisionError):
        async with open_runtime([spec("one", echo_server())], settings=SETTINGS):
            raise ZeroDivisionError


async def test_a_config_that_cannot_be_used_at_all_raises(autojump_clock: object) -> None:
    """A text that is no JSON is an error of the caller's, not an empty fleet (S001)."""
    with pytest.raises(ConfigError):
        async with open_runtime("{nonsense"):
            pass


# ── sweeps ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Census:
    """Counts servers that live, to see that none is left."""

    def __init__(self) -> None:
        self.alive = self.peak = 0

    def server(self):
        inner = echo_server(revisions=LEGACY_REVISIONS)

        async def serve(link) -> None:
            self.alive += 1
            self.peak = max(self.peak, self.alive)
            try:
                await inner.serve(link)
            finally:
                self.alive -= 1

        return serve


@pytest.mark.parametrize("step", range(1, 40))
async def test_cancel_sweep_of_the_whole_runtime(step: int, autojump_clock: object) -> None:
    """The embedding task is cancelled at its n-th step, for every n: nothing hangs, nothing is left."""
    census = Census()
    ended = 0
    scope = trio.CancelScope()
    sweep = StepSweep("victim", step, scope)

    async def victim() -> None:
        nonlocal ended
        with scope:
            specs = [spec("a", census.server()), spec("b", census.server())]
            async with open_runtime(specs, settings=SETTINGS) as runtime:
                await runtime.wait_ready()
                for number in range(3):
                    await runtime.call_tool("a.echo", {"text": str(number)})
                await runtime.restart("b")
                await runtime.call_tool("b.echo")
        ended += 1

    trio.lowlevel.add_instrument(sweep)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(victim)
    finally:
        trio.lowlevel.remove_instrument(sweep)

    assert ended == 1
    assert census.alive == 0


@pytest.mark.parametrize("step", range(1, 12))
async def test_cancel_sweep_of_one_caller(step: int, autojump_clock: object) -> None:
    """A caller is cancelled at its n-th step: the connection stays usable and nobody else notices (B20, S147)."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    scope = trio.CancelScope()
    sweep = StepSweep("victim", step, scope)
    answers: list[str] = []

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()

        async def victim() -> None:
            with scope:
                await runtime.call_tool("one.slow", {"seconds": 2})

        async def other() -> None:
            answers.append((await runtime.call_tool("one.slow", {"seconds": 3})).text)

        trio.lowlevel.add_instrument(sweep)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(victim)
                nursery.start_soon(other)
        finally:
            trio.lowlevel.remove_instrument(sweep)
        answers.append((await runtime.call_tool("one.echo", {"text": "after"})).text)
        cancels = len(server.seen("notifications/cancelled"))
        asked = len(server.seen("tools/call"))

    assert answers == ["done", "after"]
    assert cancels == (1 if scope.cancelled_caught and asked == 3 else 0)
    assert server.violations == []


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("frames", range(16))
async def test_cut_sweep_over_connect_and_call(frames: int, era: str, autojump_clock: object) -> None:
    """The wire breaks after the n-th frame, for every n: every ask ends, permits come back, no dead name stays."""
    census = Census()
    inner = echo_server(revisions=ERAS[era])
    outcomes: list[str] = []

    async def serve(link) -> None:
        census.alive += 1
        try:
            await inner.serve(link)
        finally:
            census.alive -= 1

    with ExitStack() as cuts:

        def transports(_spec):
            wire = FaultyTransport(MemoryTransport(serve))
            cuts.enter_context(wire.cut_after(frames=frames))
            return wire

        await _cut_and_look(spec("one", serve), transports, outcomes)

    assert census.alive == 0


async def _cut_and_look(one, transports, outcomes) -> None:
    async with open_runtime([one], settings=SETTINGS, transports=transports) as runtime:
        await runtime.wait_ready()
        for number in range(3):
            try:
                outcomes.append((await runtime.call_tool("one.echo", {"text": str(number)}, timeout=60)).text)
            except (TransportBroken, ServerNotReady, UnknownTool) as error:
                outcomes.append(type(error).__name__)
        await trio.sleep(1)
        connecting = runtime.connecting
        status = runtime.status()["one"]
        tools = len(runtime.catalog)

    assert len(outcomes) == 3
    assert connecting == {Batch.LOCAL: 0, Batch.REMOTE: 0}
    assert tools == (3 if status.is_connected else 0)


async def test_stopping_takes_the_time_of_one_server(autojump_clock: object) -> None:
    """S143: fifty servers that take their whole grace stop together."""

    def stubborn(server):
        async def serve(link) -> None:
            try:
                await server.serve(link)
            finally:
                await trio.sleep(math.inf)

        return serve

    specs = [spec(f"s{number}", stubborn(echo_server())) for number in range(50)]
    async with open_runtime(specs, settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
    took = trio.current_time() - began

    assert took <= MemoryTransport.shutdown_bound + 0.1
