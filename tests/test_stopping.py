"""The stop of a fleet in odd states: whatever its servers do, it takes the waits of the ladder, and nothing is left."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from mcp_actors.actors.lifecycle import Phase
from mcp_actors.actors.lifetime import stop_bound
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RestartPolicy, RestartType
from mcp_actors.errors import TransportClosed
from mcp_actors.runtime import open_runtime
from mcp_actors.transports import procfs
from tests.test_fleet_stdio import script, shell, synthetic, wait_for
from tests.transports.stdio_kit import living, nobody_left, stubborn_child
from tests.transports.test_sweeping import write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.fleet.running import Runtime

SETTINGS = Settings(connect_timeout=60.0, stop_interrupt=0.2, stop_terminate=0.2, local_batch=100)

# Legacy, deaf to signals, and to its input after the handshake and the lists.
DEAF = """
import json, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
while True:
    message = json.loads(sys.stdin.readline())
    answer = {"tools": [{"name": "eat", "inputSchema": {"type": "object"}}]}
    if message["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        answer["serverInfo"] = {"name": "deaf", "version": "1"}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
    if message["method"] == "tools/list":
        time.sleep(600)
"""


async def stop_in(
    specs: list[ServerSpec],
    reach: Callable[[Runtime, trio.Nursery], Awaitable[None]],
    settings: Settings = SETTINGS,
    state_dir: Path | None = None,
) -> None:
    """Bring a fleet into a state, and leave it there: that takes no longer than is said of every stop."""
    leave, gone = trio.Event(), trio.Event()

    async def live() -> None:
        async with trio.open_nursery() as users, open_runtime(specs, settings=settings, state_dir=state_dir) as runtime:
            await reach(runtime, users)
            leave.set()
        gone.set()

    with nobody_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(live)
            with trio.fail_after(60):
                await leave.wait()
            with trio.fail_after(stop_bound(settings)):
                await gone.wait()


async def wait_living(marker: str, count: int, state: str = "") -> None:
    while True:
        rows = [procfs.read_stat(pid) for pid in living(marker)]
        if sum(row is not None and row.state.startswith(state) for row in rows) >= count:
            return
        await trio.sleep(0.01)


def stubborn(name: str, marker: str) -> ServerSpec:
    return shell(name, f"trap '' INT TERM; exec sleep {marker}")


@pytest.mark.parametrize("state", ["running", "stopped"])
async def test_a_hundred_that_ignore_everything_are_stopped_in_the_time_of_one(state: str) -> None:
    """Fault 3, S143: neither end of input nor SIGINT nor SIGTERM, woken or not, and none waits for another."""
    marker = f"600.{os.getpid()}"

    async def reach(runtime: Runtime, users: trio.Nursery) -> None:
        await wait_living(marker, 100)
        if state == "stopped":
            for pid in living(marker):
                os.kill(pid, signal.SIGSTOP)
            await wait_living(marker, 100, "T")

    await stop_in([stubborn(f"s{n}", marker) for n in range(100)], reach)

    assert living(marker) == []


async def test_a_stop_at_any_step_of_a_start(tmp_path: Path) -> None:
    """Faults 6, 94: while servers are queued, spawned and asked who they are, with a leftover of one being swept."""
    marker = f"601.{os.getpid()}"
    settings = evolve(SETTINGS, stop_interrupt=0.0, stop_terminate=0.0, local_batch=2)
    specs = [stubborn("s", marker), synthetic("a"), shell("b", "exit 1"), stubborn("c", marker)]
    directory = tmp_path / "children"
    directory.mkdir(mode=0o700)
    for steps in (*range(20), *range(20, 200, 20)):

        async def reach(runtime: Runtime, users: trio.Nursery, steps: int = steps) -> None:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()

        with stubborn_child() as child:
            write(directory, child.pid, server="s")
            await stop_in(specs, reach, settings, tmp_path)
            status = child.wait()

        assert (status, living(marker), list(directory.iterdir())) == (-signal.SIGKILL, [], [])


async def test_a_stop_while_a_leftover_is_swept_and_its_server_waits(tmp_path: Path) -> None:
    """Fault 4: the stop ends the waiting at once and the sweep in order; the next run finds nothing."""
    directory = tmp_path / "children"
    directory.mkdir(mode=0o700)

    async def reach(runtime: Runtime, users: trio.Nursery) -> None:
        while runtime.status()["mine"].reason != "leftover":
            await trio.lowlevel.checkpoint()

    settings = evolve(SETTINGS, stop_interrupt=0.5)
    with stubborn_child() as child:
        write(directory, child.pid, server="mine")
        await stop_in([synthetic("mine")], reach, settings, tmp_path)
        status = child.wait()

    assert (status, list(directory.iterdir())) == (-signal.SIGKILL, [])


async def test_a_stop_while_a_pipe_is_full_and_nobody_reads() -> None:
    """S146, fault 18: the calls that wait for room fail first, and their server is stopped as any other."""
    ends: list[str] = []

    async def reach(runtime: Runtime, users: trio.Nursery) -> None:
        await runtime.wait_ready()

        async def call() -> None:
            with pytest.raises(TransportClosed):
                await runtime.call_tool("deaf.eat", {"food": "x" * 4_000_000})
            ends.append("closed")

        for _ in range(3):
            users.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()

    await stop_in([evolve(script("deaf", DEAF), era="legacy")], reach)

    assert ends == ["closed"] * 3


@pytest.mark.parametrize("command", ["disable", "restart", "remove_server"])
async def test_a_stop_while_a_command_waits_for_a_stop(command: str) -> None:
    """S128, S143: one that climbs the ladder already is not climbed twice, and whoever waits for it is told."""
    marker = f"602.{os.getpid()}"

    async def reach(runtime: Runtime, users: trio.Nursery) -> None:
        await wait_living(marker, 1)
        users.start_soon(getattr(runtime, command), "s")
        await trio.testing.wait_all_tasks_blocked()

    await stop_in([stubborn("s", marker)], reach, evolve(SETTINGS, stop_interrupt=0.5))

    assert living(marker) == []


async def test_a_stop_while_a_dead_server_rests() -> None:
    """S116: one that waits out its backoff has nothing to stop."""
    policy = RestartPolicy(backoff_first=600.0, backoff_max=600.0)
    spec = evolve(shell("s", "exit 1"), restart_type=RestartType.PERMANENT, restart_policy=policy)

    async def reach(runtime: Runtime, users: trio.Nursery) -> None:
        await wait_for(runtime, "s", Phase.BACKING_OFF)

    await stop_in([spec], reach)
