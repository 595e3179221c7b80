"""Owns what a measured client tells of itself: CPU, peak memory, times.

What this is not: the judgement of the numbers (`comparing`).
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Work: TypeAlias = "Callable[[dict], Awaitable[Any]]"


def job() -> dict:
    """The job that this process was started for; pins the process to a core when it asks for that."""
    given = json.loads(sys.argv[1])
    if given.get("core") is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {given["core"]})
    return given


def cpu() -> float:
    """Seconds of CPU that this process has used, its children not counted."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_rss_mb() -> float:
    """Peak resident memory of this process in megabytes.

    Not `ru_maxrss`: on Linux that starts at the size of whoever started the process.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile of durations, in microseconds."""
    ordered = sorted(seconds)
    return {"p50_us": ordered[len(ordered) // 2] * 1e6, "p99_us": ordered[len(ordered) * 99 // 100] * 1e6}


def main(run: Callable[..., Any], *, connect: Work, turn: Work, once: Work, big: Work) -> None:
    """Do the work that the job names and print the one line that the comparison reads.

    ``cpu`` leaves out what a program pays once: imports, and whatever a client loads when it meets its first server. So
    each connects one server before the counting begins, unless the job says ``is_cold``. ``cpu_all`` has it all, that
    server included. ``ended_at`` is when the work was done, on the clock that all processes share.

    Args:
        run: runs an async function with one argument: ``trio.run``, or asyncio's way to say so.
        connect: connects all targets, lists their tools, closes them; gives the number of tools listed.
        turn: calls one tool again and again; gives the seconds of each call.
        once: keeps ``at_once`` calls in flight until ``count`` were answered; gives the seconds in all.
        big: calls for a big result again and again; gives the seconds of each call.
    """
    given = job()
    if given["work"] == "connect" and not given.get("is_cold"):
        run(connect, {**given, "targets": given["targets"][:1]})
    began = cpu()
    match given["work"]:
        case "connect":
            found: dict[str, float] = {"listed": run(connect, given)}
        case "turn":
            found = quantiles(run(turn, given))
        case "once":
            found = {"per_second": given["count"] / run(once, given)}
        case "big":
            found = quantiles(run(big, given))
    ended, ended_at = cpu(), time.perf_counter()
    told = {"cpu": ended - began, "cpu_all": ended, "ended_at": ended_at, "rss_mb": peak_rss_mb(), **found}
    print(json.dumps(told), flush=True)
