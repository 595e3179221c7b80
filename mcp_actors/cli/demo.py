"""Owns the verb ``demo``: the built-in fleet shows what a fleet does, in a few seconds, with nothing installed.

What this is not: the servers (`testing.demo_servers`), nor a benchmark (`storm`).

Its story is its data: one line for each thing that happens, on standard output, on a terminal and in a pipe alike.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.testing.demo_servers import DemoCall

__all__ = ["configure_demo", "run_demo"]

# A demo that takes longer than this has failed.
PATIENCE: Final = 10.0


def configure_demo(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``: it has none of its own."""
    del parser


def run_demo(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Show the built-in fleet; 0 when all went as it should."""
    del own
    from mcp_actors.cli.debuglog import install_log
    from mcp_actors.cli.signals import run_interruptibly
    from mcp_actors.config.settings import read_settings

    install_log(is_debug=shared.is_debug, place=shared.debug_file)
    return run_interruptibly(partial(_demo, read_settings(os.environ).settings))


class _Story:
    """Counts and times of one demo."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.servers = 0
        self.connected = 0
        self.calls = 0
        self.restarted = 0
        # Process groups that servers led; what is left of them afterwards is a leak.
        self.groups: set[int] = set()
        self.left = 0
        # What took how long, seconds, in order.
        self.times: dict[str, float] = {}

    @property
    def is_good(self) -> bool:
        return (
            self.servers == self.connected == self.calls > 0
            and self.restarted == 1
            and self.left == 0
            and sum(self.times.values()) < PATIENCE
        )

    def closing(self) -> str:
        times = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in self.times.items())
        total = time.monotonic() - self.began
        return (
            f"{self.servers} servers, {self.connected} connected, {self.calls} calls, 1 killed, "
            f"{self.restarted} restarted, {self.left} processes left; {times}, total {total:.2f} s"
        )


async def _demo(settings: Settings) -> int:
    import trio

    from mcp_actors.cli.processes import leftovers
    from mcp_actors.runtime import open_runtime
    from mcp_actors.testing.demo_servers import DEMO_CALLS, demo_specs, library_server
    from mcp_actors.testing.http_server import open_http_server

    story = _Story()
    with trio.fail_after(PATIENCE):
        async with open_http_server(library_server()) as url:
            specs = demo_specs(url)
            story.servers = len(specs)
            began = time.monotonic()  # servers begin with the runtime
            async with open_runtime(specs, settings=settings) as runtime:
                await _connect(runtime, specs, story)
                story.times["connect"] = time.monotonic() - began
                await _call_each(runtime, DEMO_CALLS, story)
                await _kill_one(runtime, specs, story)
                output.emit("stop")
                began = time.monotonic()
            story.times["stop"] = time.monotonic() - began
        left = leftovers(os.getpid(), story.groups)
    story.left = len(left)
    output.emit(f"  all stopped, {story.left} processes left")
    output.emit(story.closing())
    return exits.OK if story.is_good else exits.FAILED


async def _connect(runtime: Runtime, specs: Sequence[ServerSpec], story: _Story) -> None:
    import trio

    kinds: dict[str, int] = {}
    for spec in specs:
        kinds[str(spec.transport)] = kinds.get(str(spec.transport), 0) + 1
    output.emit(f"start {len(specs)} servers: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    told: set[str] = set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_tell_settled, runtime, told)
        await runtime.wait_ready()
        nursery.cancel_scope.cancel()
    for status in runtime.status().values():
        _tell_once(status, told)
        story.connected += status.is_connected
        story.groups.update({status.pid} if status.pid else ())


async def _tell_settled(runtime: Runtime, told: set[str]) -> None:
    from mcp_actors.cli.fleet import published

    with runtime.watch() as changes:
        for status in runtime.status().values():
            _tell_once(status, told)
        async for change in changes:
            if change.new is not None and change.new.is_settled:
                _tell_once(await published(runtime, change.new), told)


def _tell_once(status: ServerStatus, told: set[str]) -> None:
    if status.is_settled and status.name not in told:
        told.add(status.name)
        output.emit(_status_line(status))


def _status_line(status: ServerStatus) -> str:
    from mcp_actors.cli.render import clean_line, seconds_text

    head = f"  {clean_line(status.name):10} {status.state}"
    if not status.is_connected:
        return f"{head} ({status.reason}) {clean_line(status.error or '')}"
    seconds = (status.connect_seconds or 0) + (status.list_seconds or 0)
    tools = f"{status.tools} tool{'s' * (status.tools != 1)}"
    facts = [str(status.transport), f"{status.revision} ({status.era})", tools, seconds_text(seconds)]
    facts += [f"pid {status.pid}"] if status.pid else []
    return f"{head}: " + ", ".join(facts)


async def _call_each(runtime: Runtime, calls: Sequence[DemoCall], story: _Story) -> None:
    output.emit("call one tool of each")
    began = time.monotonic()
    for call in calls:
        story.calls += await _call(runtime, call)
    story.times["calls"] = time.monotonic() - began


async def _call(runtime: Runtime, call: DemoCall) -> bool:
    from mcp_actors.cli.render import clean_line, result_text

    began = time.monotonic()
    result = await runtime.call_tool(f"{call.server}.{call.tool}", call.arguments)
    took = (time.monotonic() - began) * 1000
    output.emit(f"  {call.server}.{call.tool} -> {clean_line(result_text(result), 60)} ({took:.1f} ms)")
    return not result.is_error


async def _kill_one(runtime: Runtime, specs: Sequence[ServerSpec], story: _Story) -> None:
    """Kill the first child and wait until its supervisor has put another in its place."""
    from mcp_actors.cli.fleet import published

    victim = next(status for spec in specs if (status := runtime.status()[spec.name]).pid is not None)
    assert victim.pid is not None
    output.emit("kill one")
    began = time.monotonic()
    with runtime.watch() as changes:
        os.kill(victim.pid, signal.SIGKILL)
        output.emit(f"  {victim.name:10} pid {victim.pid} killed")
        async for change in changes:
            new = change.new
            if change.name != victim.name or new is None:
                continue
            if new.is_connected and new.pid not in (None, victim.pid):
                story.groups.add(new.pid or 0)
                output.emit(_status_line(await published(runtime, new)))
                break
            if change.old is None or new.phase is not change.old.phase:
                output.emit(f"  {new.name:10} {new.state} ({new.reason}), {new.phase}")
    story.restarted = 1
    story.times["restart"] = time.monotonic() - began
