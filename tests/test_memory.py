"""What a fleet holds does not grow with how often its servers came and went."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from sys import executable
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import PERMANENT, spec

from mcp_actors.config.specs import RestartPolicy, RestartType, ServerSpec, StdioTarget
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from mcp_actors.fleet.running import Runtime

EAGER = RestartPolicy(
    intensity=10**6, period=1.0, max_tries=10**6, backoff_first=0.001, backoff_max=0.001, has_jitter=False
)


def held() -> Counter[str]:
    """Class of the package -> how many of its objects live."""
    gc.collect()
    kinds = (type(thing) for thing in gc.get_objects())
    # Of some metaclasses `__module__` is no text.
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("mcp_actors."))


async def wait_restarts(runtime: Runtime, name: str, count: int) -> None:
    while runtime.status()[name].restarts < count:
        await runtime.wait_published()


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_restarts_leave_nothing_behind(method: str, autojump_clock: object) -> None:
    """A server that dies for hours, before or after it was ready, costs no more than one that died for minutes."""
    server = ScriptedServer("s", revisions=("2025-11-25",))
    server.add_tool("work", lambda call: "done")
    server.die_on(method)
    flapping = evolve(spec("s", server, **PERMANENT), restart_policy=EAGER)

    async with open_runtime([flapping]) as runtime:
        await wait_restarts(runtime, "s", 50)
        early = held()
        await wait_restarts(runtime, "s", 350)
        grown = held() - early

    assert {kind: count for kind, count in grown.items() if count > 20} == {}


@pytest.mark.slow
async def test_restarted_programs_leave_no_descriptor_and_no_entry(tmp_path: Path) -> None:
    """Processes that crash all day leave neither descriptors nor entries in the journal of living children."""
    target = StdioTarget("/bin/sh", ("-c", "exit 3"))
    crashing = ServerSpec("s", target, restart_type=RestartType.PERMANENT, restart_policy=EAGER)
    steady = ServerSpec("t", StdioTarget(executable, ("-m", "mcp_actors.testing.stdio_server")))

    def open_descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with trio.fail_after(60):
        async with open_runtime([crashing, steady], state_dir=tmp_path) as runtime:
            await runtime.wait_ready(["t"])
            await wait_restarts(runtime, "s", 10)
            early = open_descriptors()
            await wait_restarts(runtime, "s", 80)
            late, entries = open_descriptors(), list((tmp_path / "children").iterdir())

    assert abs(late - early) <= 8
    assert len(entries) <= 2
    assert list((tmp_path / "children").iterdir()) == []
