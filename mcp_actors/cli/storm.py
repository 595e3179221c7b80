"""Owns the verb ``storm``: many synthetic servers connected at once, and what that cost.

What this is not: a comparison with other clients (`benchmarks/`). No network is used, HTTP stays on loopback.

Each repeat is a fleet of its own, started and stopped. CPU is this process's alone (RUSAGE_SELF): stdio servers are our
children, the HTTP servers share one child; in memory the servers live here, and their CPU counts with ours.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import Json

__all__ = ["configure_storm", "percentiles", "run_storm"]

TRANSPORTS: Final = ("stdio", "http", "memory")
MEASURES: Final = ("queue", "connect", "list")


# No machine has processes or ports for more.
MAX_SERVERS: Final = 100_000


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MAX_SERVERS:
        raise ValueError(text)
    return value


_count.__name__ = f"number from 1 to {MAX_SERVERS}"  # argparse names the type in its message


def configure_storm(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``storm``."""
    parser.add_argument("--transport", choices=TRANSPORTS, default="stdio", help="default: stdio")
    parser.add_argument("--servers", type=_count, default=100, metavar="N", help="default: 100")
    parser.add_argument("--local-limit", type=_count, metavar="N", help="local servers connecting at once")
    parser.add_argument("--remote-limit", type=_count, metavar="N", help="remote servers connecting at once")
    parser.add_argument("--repeat", type=_count, default=1, metavar="R", help="fleets in a row (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one object")


def run_storm(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Connect them all, as often as asked; 0 when every one connected and no process is left."""
    from attrs import evolve

    from mcp_actors.cli.debuglog import install_log
    from mcp_actors.cli.descriptors import make_room
    from mcp_actors.cli.signals import run_interruptibly
    from mcp_actors.config.settings import read_settings

    install_log(is_debug=shared.is_debug, place=shared.debug_file)
    make_room(own.servers)
    settings = read_settings(os.environ).settings
    settings = evolve(
        settings,
        local_batch=own.local_limit or settings.local_batch,
        remote_batch=own.remote_limit or settings.remote_batch,
    )
    return run_interruptibly(partial(_storm, own, settings))


async def _storm(own: argparse.Namespace, settings: Settings) -> int:
    from mcp_actors.cli.progress import open_progress

    runs: list[_Run] = []
    async with _open_specs(own.transport, own.servers) as (specs, spared):
        with open_progress(f"storm of {own.servers} servers") as progress:
            for number in range(own.repeat):
                progress.show(f"storm of {own.servers} servers, {number + 1} of {own.repeat}")
                runs.append(await _run_once(specs, settings, spared))
    report = _report(own, settings, runs)
    if own.json:
        from mcp_actors.cli.render import json_text

        output.emit(json_text(report))
    else:
        output.emit(_text(report))
    is_good = all(len(run.connected) == own.servers and not run.left for run in runs)
    return exits.OK if is_good else exits.FAILED


@asynccontextmanager
async def _open_specs(transport: str, count: int) -> AsyncIterator[tuple[Sequence[ServerSpec], Sequence[int]]]:
    """Make the specs; over HTTP also the one process that serves them all, whose pid is spared in the count."""
    from mcp_actors.testing import synthetic

    if transport == "stdio":
        yield synthetic.stdio_specs(count), ()
    elif transport == "memory":
        yield synthetic.memory_specs(count), ()
    else:
        async with _open_http_process(count) as (url, pid):
            yield synthetic.remote_specs(count, url), (pid,)


@asynccontextmanager
async def _open_http_process(count: int) -> AsyncIterator[tuple[str, int]]:
    """Serve `count` servers from a process of its own, so that its CPU is not ours; it ends with the block."""
    import subprocess

    import trio

    from mcp_actors.testing.synthetic import http_command

    command, args = http_command(count)
    process = await trio.lowlevel.open_process(
        [command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        with trio.fail_after(30):
            line = b""
            while not line.endswith(b"\n"):
                chunk = await process.stdout.receive_some(64)
                if not chunk:
                    raise OSError("the synthetic HTTP server did not start")
                line += chunk
        yield f"http://127.0.0.1:{int(line)}/m", process.pid
    finally:
        with trio.CancelScope(shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.stdout.aclose()


class _Run:
    """What one fleet cost."""

    def __init__(self) -> None:
        # Seconds from the start to all tried, and from the first stop to all stopped.
        self.wall = 0.0
        self.stop = 0.0
        # Seconds of CPU of this process, start to all stopped.
        self.cpu = 0.0
        self.connected: list[ServerStatus] = []
        self.failed: list[ServerStatus] = []
        # Pids that servers had.
        self.spawned: set[int] = set()
        # Pids that should be gone.
        self.left: list[int] = []


async def _run_once(specs: Sequence[ServerSpec], settings: Settings, spared: Sequence[int]) -> _Run:
    from mcp_actors.cli.processes import leftovers
    from mcp_actors.runtime import open_runtime

    run = _Run()
    began, cpu = time.monotonic(), _cpu_seconds()
    async with open_runtime(specs, settings=settings) as runtime:
        statuses = (await runtime.wait_ready()).values()
        run.wall = time.monotonic() - began
        run.connected = [status for status in statuses if status.is_connected]
        run.failed = [status for status in statuses if not status.is_connected]
        run.spawned = {status.pid for status in statuses if status.pid is not None}
        stopping = time.monotonic()
    run.stop = time.monotonic() - stopping
    run.cpu = _cpu_seconds() - cpu
    run.left = [process.pid for process in leftovers(os.getpid(), run.spawned, spared)]
    return run


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def percentiles(values: Sequence[float]) -> dict[str, Json]:
    """Give p50, p95 and p99 by the nearest rank: each is a value that occurred; null when there is none."""
    ordered = sorted(values)
    return {
        f"p{percent}": ordered[max(0, -(-percent * len(ordered) // 100) - 1)] if ordered else None
        for percent in (50, 95, 99)
    }


def _milliseconds(values: Sequence[float]) -> dict[str, Json]:
    return {
        name: None if value is None else round(float(str(value)) * 1000, 2)
        for name, value in percentiles(values).items()
    }


def _report(own: argparse.Namespace, settings: Settings, runs: Sequence[_Run]) -> dict[str, Json]:
    connected = [status for run in runs for status in run.connected]
    failed = [status for run in runs for status in run.failed]
    times = {
        "queue": [status.queue_seconds or 0.0 for status in connected],
        "connect": [status.connect_seconds or 0.0 for status in connected],
        "list": [status.list_seconds or 0.0 for status in connected],
    }
    errors: dict[str, Json] = {}
    for status in failed:
        errors.setdefault(status.reason, status.error)
    return {
        "transport": own.transport,
        "servers": own.servers,
        "repeat": own.repeat,
        "local_limit": settings.local_batch,
        "remote_limit": settings.remote_batch,
        "wall_s": [round(run.wall, 4) for run in runs],
        "stop_s": [round(run.stop, 4) for run in runs],
        "cpu_s": [round(run.cpu, 4) for run in runs],
        "peak_rss_bytes": _peak_bytes(),
        **{f"{name}_ms": _milliseconds(times[name]) for name in MEASURES},
        "tools": sum(status.tools or 0 for status in connected),
        "succeeded": len(connected),
        "failed": len(failed),
        # Reason code -> an example of its error.
        "errors": errors,
        "processes_spawned": sum(len(run.spawned) for run in runs),
        "processes_left": sum(len(run.left) for run in runs),
    }


def _text(report: dict[str, Json]) -> str:
    def seconds(name: str) -> str:
        values = report[name]
        assert isinstance(values, list)
        return ", ".join(f"{value:.3f} s" for value in values)

    def spread(name: str) -> str:
        values = report[f"{name}_ms"]
        assert isinstance(values, dict)
        return "  ".join(f"{key} {'-' if value is None else value} ms" for key, value in values.items())

    rss = report["peak_rss_bytes"]
    assert isinstance(rss, int)
    limits = f"{report['local_limit']} local and {report['remote_limit']} remote"
    lines = [
        f"storm: {report['servers']} {report['transport']} servers, {report['repeat']} times, limits {limits}",
        f"  connected  {report['succeeded']}, failed {report['failed']}, {report['tools']} tools",
        f"  wall       {seconds('wall_s')}",
        f"  stop       {seconds('stop_s')}",
        f"  client CPU {seconds('cpu_s')}",
        f"  peak RSS   {rss / 1e6:.1f} MB",
        *(f"  {name:10} {spread(name)}" for name in MEASURES),
        f"  processes  {report['processes_spawned']} spawned, {report['processes_left']} left",
    ]
    errors = report["errors"]
    assert isinstance(errors, dict)
    lines += [f"  {reason}: {error}" for reason, error in errors.items()]
    return "\n".join(lines)
