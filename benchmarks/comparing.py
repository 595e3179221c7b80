"""Owns a comparison: clients interleaved in one run, medians of the repeats, ratios held against targets.

What this is not: the work (`clients`) or the servers (`servers`).
"""

from __future__ import annotations

import compileall
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 600.0


class Target(NamedTuple):
    """One claim: a formula over the medians, and the bound that it must keep."""

    text: str
    # Takes client -> measure -> median, gives the number that is held against `bound`.
    value: Callable[[Mapping[str, Mapping[str, float]]], float]
    bound: float
    is_ceiling: bool = True

    def judge(self, medians: Mapping[str, Mapping[str, float]]) -> str:
        """One line: what was reached, what was wanted."""
        reached = self.value(medians)
        is_kept = reached <= self.bound if self.is_ceiling else reached >= self.bound
        sign = "at most" if self.is_ceiling else "at least"
        return f"  {'ok  ' if is_kept else 'MISS'} {self.text}: {reached:.3g} ({sign} {self.bound:.3g})"


class Comparison(NamedTuple):
    """One table of the report."""

    title: str
    # Maps column -> (module in `clients`, job).
    columns: Mapping[str, tuple[str, dict]]
    measures: Sequence[str]
    targets: Sequence[Target]
    repeats: int
    # What every run must have listed; None where nothing is listed.
    listed: int | None = None
    # Whether `wall` is taken in a run of its own, that begins with nothing loaded.
    has_cold_runs: bool = False


UNITS = {
    "wall": ("start to end", "s", 1.0),
    "cpu": ("client CPU", "s", 1.0),
    "cpu_all": ("with imports", "s", 1.0),
    "rss_mb": ("peak RSS", "MB", 1.0),
    "p50_us": ("p50", "us", 1.0),
    "p99_us": ("p99", "us", 1.0),
    "per_second": ("calls", "/s", 1.0),
}


def run_client(module: str, job: dict) -> dict[str, float]:
    """Run one client in its own process and read its measures; `wall` is from its start to the end of its work."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.clients.{module}", json.dumps(job)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=TIMEOUT,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return {**told, "wall": told["ended_at"] - began}


def compile_sources() -> None:
    """Compile the checkout's sources, as installers do with the SDK's and trio's: nobody measures a compiler then."""
    for name in ("mcp_actors", "benchmarks"):
        if not compileall.compile_dir(ROOT / name, quiet=1):
            raise SystemExit(f"{name} cannot be compiled")


def compare(comparison: Comparison) -> bool:
    """Run and print one comparison; whether every target was reached."""
    compile_sources()
    runs: dict[str, list[dict[str, float]]] = {column: [] for column in comparison.columns}
    for _ in range(comparison.repeats):
        for column, (module, job) in comparison.columns.items():
            measured = run_client(module, job)
            if comparison.has_cold_runs:
                measured["wall"] = run_client(module, {**job, "is_cold": True})["wall"]
            if comparison.listed is not None and measured["listed"] != comparison.listed:
                raise SystemExit(f"{column} listed {measured['listed']} of {comparison.listed} tools")
            runs[column].append(measured)
    medians = {
        column: {measure: statistics.median(run[measure] for run in of) for measure in comparison.measures}
        for column, of in runs.items()
    }

    print(f"\n{comparison.title} (median of {comparison.repeats})")
    print(" " * 16 + "".join(f"{column:>14}" for column in medians) + f"{'ours/sdk':>12}{'ours/floor':>12}")
    for measure in comparison.measures:
        name, unit, scale = UNITS[measure]
        row = {column: of[measure] * scale for column, of in medians.items()}
        ratios = (f"{row['ours'] / row[other]:12.2f}" for other in ("sdk", "floor"))
        print(f"  {name:14}" + "".join(f"{f'{value:,.4g} {unit}':>14}" for value in row.values()) + "".join(ratios))
    lines = [target.judge(medians) for target in comparison.targets]
    print("\n".join(lines), flush=True)
    return not any(line.strip().startswith("MISS") for line in lines)


def ratio(measure: str, other: str) -> Callable[[Mapping[str, Mapping[str, float]]], float]:
    """Formula: ours divided by another column's median."""
    return lambda medians: medians["ours"][measure] / medians[other][measure]


def speedup(measure: str, other: str) -> Callable[[Mapping[str, Mapping[str, float]]], float]:
    """Formula: another column's median divided by ours."""
    return lambda medians: medians[other][measure] / medians["ours"][measure]


def own(measure: str) -> Callable[[Mapping[str, Mapping[str, float]]], float]:
    """Formula: our own median."""
    return lambda medians: medians["ours"][measure]
