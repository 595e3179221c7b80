"""Connects many servers: ours, the official SDK (asyncio) and a bare floor (raw trio), interleaved.

Run it from a checkout: ``python -m benchmarks.connect_many [--servers DIR] [--stdio N] [--http N] [--repeat R]``.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import servers
from benchmarks.comparing import Comparison, Target, compare, own, ratio

MEASURES = ("wall", "cpu", "cpu_all", "rss_mb")


def stdio(found: servers.Programs, count: int, repeats: int) -> Comparison:
    job = {"work": "connect", "limit": 3, "targets": [found.stdio] * count}
    targets = [
        Target("client CPU, ours to SDK", ratio("cpu", "sdk"), 1 / 3),
        Target("start to listed and closed, ours to SDK", ratio("wall", "sdk"), 1 / 3),
        Target("peak RSS in MB", own("rss_mb"), 45),
    ]
    columns = {name: (name, job) for name in ("floor", "ours", "sdk")}
    listed = count * servers.TOOLS
    return Comparison(
        f"{count} stdio servers at limit 3", columns, MEASURES, targets, repeats, listed, has_cold_runs=True
    )


def http(urls: list[str], repeats: int) -> Comparison:
    job = {"work": "connect", "limit": 20, "targets": urls, "core": servers.client_core()}
    targets = [
        Target("client CPU, ours to SDK", ratio("cpu", "sdk"), 1 / 6),
        Target("peak RSS in MB", own("rss_mb"), 150),
    ]
    columns = {name: (name, job) for name in ("floor", "ours", "sdk")}
    columns["sdk, 1 pool"] = ("sdk", {**job, "is_shared": True})
    listed = len(urls) * servers.TOOLS
    title = f"{len(urls)} HTTP servers at limit 20"
    return Comparison(title, columns, MEASURES, targets, repeats, listed)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.connect_many", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--servers", metavar="DIR", help="holds echo_stdio and echo_http, or their C sources")
    parser.add_argument("--stdio", type=int, default=100, metavar="N", help="stdio servers; 0 skips (%(default)s)")
    parser.add_argument("--http", type=int, default=1000, metavar="N", help="HTTP servers; 0 skips (%(default)s)")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="repeats of the stdio part (%(default)s)")
    parser.add_argument(
        "--repeat-http", type=int, default=3, metavar="R", help="repeats of the HTTP part (%(default)s)"
    )
    options = parser.parse_args()

    is_kept = True
    with servers.programs(options.servers) as found:
        print(f"against {found.label}")
        if options.stdio:
            is_kept &= compare(stdio(found, options.stdio, options.repeat))
        if options.http:
            with servers.http_urls(found, options.http) as urls:
                is_kept &= compare(http(urls, options.repeat_http))
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
