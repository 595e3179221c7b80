"""Loads, validates and merges a configuration of many servers, plain and with comments.

Run it from a checkout: ``python -m benchmarks.config_load [--servers N] [--repeat R]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp_actors.files.loading import load_config

# "Well under a second" for a thousand servers.
BOUND = 0.5


def entries(count: int) -> dict[str, object]:
    """Half programs, half addresses, each with variables."""
    return {
        f"server-{index}": {
            "command": "npx",
            "args": ["-y", f"server-{index}", "${HOME}"],
            "env": {"API_KEY": "${API_KEY}", "MODE": "${MODE:-fast}"},
        }
        if index % 2
        else {
            "type": "http",
            "url": f"https://server-{index}.example.com/mcp",
            "headers": {"Authorization": "Bearer ${API_KEY}"},
        }
        for index in range(count)
    }


def seconds(directory: Path, count: int) -> float:
    environ = {"HOME": "/home/user", "API_KEY": "key"}
    before = time.perf_counter()
    loaded = load_config(cwd=directory, home=directory, environ=environ, managed_dir=directory, stop_at=directory)
    elapsed = time.perf_counter() - before
    assert (len(loaded.specs), loaded.problems) == (count, ())
    return elapsed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.config_load", description=(__doc__ or "").split("\n", maxsplit=1)[0]
    )
    parser.add_argument("--servers", type=int, default=1000, metavar="N", help="servers in the file (%(default)s)")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="repeats of each part (%(default)s)")
    options = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        text = json.dumps({"mcpServers": entries(options.servers)}, indent=2)
        for title, content in (("plain JSON", text), ("with comments", "// by hand\n" + text)):
            (directory / ".claude.json").write_text(content, "utf-8")
            first = seconds(directory, options.servers)
            median = statistics.median(seconds(directory, options.servers) for _ in range(options.repeat))
            worst = max(worst, first)
            print(f"{title}: {options.servers} servers, first {first:.3f} s, median {median:.3f} s")
    bound = BOUND * options.servers / 1000
    print(f"bound {bound:g} s: {'kept' if worst <= bound else 'MISSED'}")
    return 0 if worst <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
