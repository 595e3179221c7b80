"""Descriptors: connecting, failing and connecting again leaves none behind, and running out of them passes."""

from __future__ import annotations

import os
import resource
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import echo_server

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, RestartPolicy, RestartType, ServerSpec, StdioTarget, TransportName
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.http_server import open_http_server
from mcp_actors.testing.synthetic import synthetic_command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mcp_actors.fleet.running import Runtime

pytestmark = pytest.mark.slow

SETTINGS = Settings(stop_interrupt=1.0, stop_terminate=1.0)
CYCLES = 60


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def room_for(more: int) -> Iterator[None]:
    """Let this process open so many descriptors more than now; gaps between those it has are filled."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 100, hard))
    try:
        with suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        for _ in range(more):
            os.close(fillers.pop())
        yield
    finally:
        for filler in fillers:
            os.close(filler)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def slammed_door() -> AsyncIterator[int]:
    """A port whose connections are taken, read from once, and cut."""

    async def slam(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, slam, 0, host="127.0.0.1"))
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def targets(port: int) -> dict[str, StdioTarget | RemoteTarget]:
    return {
        "exits": StdioTarget("/bin/sh", ("-c", "read line; exit 3")),
        "http": RemoteTarget(f"http://127.0.0.1:{port}/mcp"),
        "sse": RemoteTarget(f"http://127.0.0.1:{port}/sse", transport=TransportName.SSE),
        "ws": RemoteTarget(f"ws://127.0.0.1:{port}/mcp", transport=TransportName.WS),
    }


async def wait_for(runtime: Runtime, name: str, state: ServerState) -> None:
    while runtime.status()[name].state is not state:
        await runtime.wait_published()


async def test_descriptors_and_tasks_return_to_the_start_level() -> None:
    """Fault 98: after many failed connects over every transport, with room for few descriptors, none is left."""
    with trio.fail_after(60):
        async with slammed_door() as port:
            specs = [
                ServerSpec(name, target, restart_type=RestartType.TEMPORARY) for name, target in targets(port).items()
            ]
            async with open_runtime(specs, settings=SETTINGS) as runtime:
                await runtime.wait_ready()
                before, tasks = descriptors(), trio.lowlevel.current_statistics().tasks_living
                with room_for(CYCLES // 2):
                    for _ in range(CYCLES):
                        for name in runtime.status():
                            await runtime.restart(name)
                        for name in runtime.status():
                            await wait_for(runtime, name, ServerState.FAILED)
                reasons = {name: status.reason for name, status in runtime.status().items()}
                while trio.lowlevel.current_statistics().tasks_living > tasks:  # the door's, which end by themselves
                    await trio.lowlevel.checkpoint()
                after = descriptors()

    assert "exhausted" not in reasons.values()
    assert after <= before


@asynccontextmanager
async def a_server(kind: str) -> AsyncIterator[StdioTarget | RemoteTarget]:
    if kind == "stdio":
        yield StdioTarget(*synthetic_command())
    else:
        async with open_http_server(echo_server()) as url:
            yield RemoteTarget(url)


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_limit_that_was_hit_fails_that_connect_and_passes(kind: str) -> None:
    """Fault 98: the connect fails for a clear reason and is tried again; once there is room the server is up."""
    policy = RestartPolicy(backoff_first=0.05, backoff_max=0.05, max_tries=1000, intensity=1000)
    with trio.fail_after(10):
        async with a_server(kind) as target:
            one = ServerSpec("one", target, restart_type=RestartType.TEMPORARY, restart_policy=policy)
            async with open_runtime([one], settings=SETTINGS) as runtime:
                await runtime.wait_ready()  # whatever is imported when first used is there now
            async with open_runtime([evolve(one, is_enabled=False)], settings=SETTINGS) as runtime:
                with room_for(0):
                    await runtime.enable("one")
                    while runtime.status()["one"].reason != "exhausted":
                        await runtime.wait_published()
                    error = runtime.status()["one"].error
                await wait_for(runtime, "one", ServerState.CONNECTED)

    assert error is not None
    assert "Too many open files" in error
