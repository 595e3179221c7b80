"""After a sleep, remote connections are made anew; programs, and what waits for people, are left alone."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import echo_server, spec

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, RestartPolicy, RestartType, ServerSpec
from mcp_actors.errors import AuthRequired, TransportClosed
from mcp_actors.fleet.sleeping import DRAIN, INTERVAL, SHORT_NAP, keep_awake, seconds_slept
from mcp_actors.runtime import open_runtime
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.testing.scripted import ScriptedServer
    from mcp_actors.transports.base import Transport

pytestmark = pytest.mark.deadline(10_000)

SETTINGS = Settings()
PATIENT = RestartPolicy(backoff_first=1000.0, backoff_max=1000.0)


class Machine:
    """Remote servers by name, whatever their URL says, and a clock of sleep that a test turns."""

    def __init__(self, **servers: ScriptedServer) -> None:
        self.servers = servers
        self.slept = 0.0

    def specs(self) -> list[ServerSpec]:
        target = RemoteTarget("https://h.example.com/mcp")
        restart = {"restart_type": RestartType.PERMANENT, "restart_policy": PATIENT}
        return [evolve(ServerSpec(name, target), **restart) for name in self.servers]

    def open(self, one: ServerSpec) -> Transport:
        if isinstance(one.target, RemoteTarget):
            return MemoryTransport(self.servers[one.name].serve)
        return MemoryTransport(one.target.serve)

    def keeper(self) -> Callable[..., object]:
        return partial(keep_awake, slept=lambda: self.slept)


async def test_sleep_renews_remote_servers_and_leaves_programs_alone(autojump_clock: object) -> None:
    """Field 58: a connection that was up is another one afterwards; a local server's is the same."""
    machine, local = Machine(far=echo_server(), near=echo_server()), spec("local", echo_server())

    async with open_runtime([*machine.specs(), local], settings=SETTINGS, transports=machine.open) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(machine.keeper(), runtime))
            machine.slept += SHORT_NAP
            await trio.sleep(INTERVAL + 1)
            result = await runtime.call_tool("far.echo", {"text": "awake"})
            nursery.cancel_scope.cancel()
        generations = {name: status.generation for name, status in runtime.status().items()}

    assert result.text == "awake"
    assert generations == {"far": 2, "near": 2, "local": 1}


@pytest.mark.parametrize("nap", [0.0, SHORT_NAP - 0.1])
async def test_a_short_nap_changes_nothing(nap: float, autojump_clock: object) -> None:
    """Connections survive it, and many short ones do not add up."""
    machine = Machine(far=echo_server())

    async with open_runtime(machine.specs(), settings=SETTINGS, transports=machine.open) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(machine.keeper(), runtime))
            await trio.sleep(1)  # between two looks
            for _ in range(5):
                machine.slept += nap
                await trio.sleep(INTERVAL)
            nursery.cancel_scope.cancel()
        generation = runtime.status()["far"].generation

    assert generation == 1


async def test_what_waits_for_its_next_try_is_tried_at_once(autojump_clock: object) -> None:
    """Field 30: the host could not be reached before the sleep; nobody waits out the backoff of another network."""
    server = echo_server()
    server.die_on("server/discover")
    server.die_on("initialize")
    machine = Machine(far=server)

    async with open_runtime(machine.specs(), settings=SETTINGS, transports=machine.open) as runtime:
        await runtime.wait_ready()
        server.obey("server/discover")
        server.obey("initialize")
        began = trio.current_time()
        names = await runtime.reconnect()
        await runtime.wait_ready()
        took = trio.current_time() - began
        state = runtime.status()["far"].state

    assert names == ("far",)
    assert state is ServerState.CONNECTED
    assert took < 1


async def test_what_a_person_decides_is_left_alone(autojump_clock: object) -> None:
    """A server that waits for a login, and one that is switched off, stay so."""
    machine = Machine(locked=echo_server(), off=echo_server())

    def open_locked(one: ServerSpec) -> Transport:
        if one.name == "locked":
            raise AuthRequired(server="locked")
        return machine.open(one)

    async with open_runtime(machine.specs(), settings=SETTINGS, transports=open_locked) as runtime:
        await runtime.wait_ready()
        await runtime.disable("off")
        before = dict(runtime.status())
        names = await runtime.reconnect()
        after = dict(runtime.status())

    assert names == ()
    assert before == after
    assert [status.state for status in after.values()] == [ServerState.NEEDS_AUTH, ServerState.DISABLED]


async def test_calls_in_flight_end_soon_either_way(autojump_clock: object) -> None:
    """An answer that is on its way is taken; a call that gets none fails after the drain, and nobody waits for it."""
    machine = Machine(far=echo_server())
    ends: dict[str, object] = {}

    async def call(seconds: float) -> None:
        try:
            result = await runtime.call_tool("far.slow", {"seconds": seconds})
            ends[f"{seconds:g}"] = result.text
        except TransportClosed:
            ends[f"{seconds:g}"] = trio.current_time() - began

    async with open_runtime(machine.specs(), settings=SETTINGS, transports=machine.open) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, 1)
            nursery.start_soon(call, 1000)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            await runtime.reconnect()

    assert ends == {"1": "done", "1000": pytest.approx(DRAIN, abs=0.1)}


def test_this_machine_s_clocks_can_be_read() -> None:
    """Setting the wall clock is no sleep: both clocks count from the start, and what they differ by does not shrink."""
    first = seconds_slept()

    assert first > -0.001  # they are read one after the other
    assert seconds_slept() == pytest.approx(first, abs=0.1)
    assert first <= time.clock_gettime(time.CLOCK_BOOTTIME)
