"""Calls tools: ours, the official SDK (asyncio) and a bare floor (raw trio), interleaved.

Run it from a checkout: ``python -m benchmarks.calls [--servers DIR] [--repeat R]``.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from benchmarks import servers
from benchmarks.comparing import Comparison, Target, compare, ratio, speedup

if TYPE_CHECKING:
    from collections.abc import Sequence

BIG = 10_000_000


def comparison(title: str, job: dict, measures: Sequence[str], targets: Sequence[Target], repeats: int) -> Comparison:
    columns = {name: (name, job) for name in ("floor", "ours", "sdk")}
    return Comparison(title, columns, measures, targets, repeats)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--servers", metavar="DIR", help="holds echo_stdio and echo_http, or their C sources")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="repeats of each part (%(default)s)")
    parser.add_argument(
        "--count", type=int, default=2000, metavar="N", help="sequential calls of one run (%(default)s)"
    )
    options = parser.parse_args()
    repeats = options.repeat

    is_kept = True
    with servers.programs(options.servers) as found, servers.http_urls(found, 1) as urls:
        print(f"against {found.label}")
        pipe = {"targets": [found.stdio]}
        socket = {"targets": urls, "core": servers.client_core()}
        turn = {"work": "turn", "count": options.count}
        parts = (
            comparison(
                "one stdio call after another",
                {**pipe, **turn},
                ("p50_us", "p99_us", "cpu"),
                [Target("p50, ours to floor", ratio("p50_us", "floor"), 1.6)],
                repeats,
            ),
            comparison(
                "64 concurrent stdio calls",
                {**pipe, "work": "once", "count": options.count * 5, "at_once": 64},
                ("per_second", "cpu"),
                [Target("calls a second, ours to SDK", ratio("per_second", "sdk"), 5, is_ceiling=False)],
                repeats,
            ),
            comparison(
                "one HTTP call after another",
                {**socket, **turn},
                ("p50_us", "p99_us", "cpu"),
                [Target("p50, SDK to ours", speedup("p50_us", "sdk"), 1.4, is_ceiling=False)],
                repeats,
            ),
            comparison(
                "10 MB result over stdio",
                {**pipe, "work": "big", "count": 5, "bytes": BIG},
                ("p50_us", "cpu", "rss_mb"),
                [Target("p50, SDK to ours", speedup("p50_us", "sdk"), 4, is_ceiling=False)],
                repeats,
            ),
        )
        for part in parts:
            is_kept &= compare(part)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
