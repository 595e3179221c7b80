"""Owns the servers that are measured against: C servers from a named directory, else the shipped synthetic ones.

What this is not: part of the measured cost; servers run in processes of their own, on another core where there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOLS = 10


class Programs(NamedTuple):
    """How to start the servers."""

    label: str
    # Starts a stdio server with ten tools, ``echo`` and ``blob`` among them.
    stdio: list[str]
    # Takes how many endpoints are wanted, gives the command of a server that prints its port as its first line.
    http: Callable[[int], list[str]]
    # Path of the n-th endpoint; each is a server of its own, and answers with JSON.
    path: str


def shipped() -> Programs:
    """The synthetic servers of the testing kit."""
    from mcp_actors.testing.synthetic import http_command, synthetic_command

    def flat(command: tuple[str, tuple[str, ...]]) -> list[str]:
        return [command[0], *command[1]]

    return Programs(
        "the shipped synthetic servers (Python: their own cost is in the call times)",
        flat(synthetic_command()),
        lambda count: flat(http_command(count, answers="json")),
        "/m/{n}",
    )


@contextmanager
def programs(directory: str | None) -> Iterator[Programs]:
    """Find or build the programs; what was built is removed at the end.

    Args:
        directory: holds ``echo_stdio`` and ``echo_http``, built or as C sources; None: the shipped servers.
    """
    if directory is None:
        yield shipped()
        return
    source = Path(directory)
    with tempfile.TemporaryDirectory() as built:
        paths = {}
        for name in ("echo_stdio", "echo_http"):
            paths[name] = source / name
            if not os.access(paths[name], os.X_OK):
                compiler = shutil.which("cc")
                if compiler is None or not (source / f"{name}.c").exists():
                    raise SystemExit(
                        f"--servers {directory}: no {name} there, and no C compiler with {name}.c to build it"
                    )
                paths[name] = Path(built) / name
                subprocess.run([compiler, "-O2", "-o", paths[name], source / f"{name}.c"], check=True)
        stdio, http = (str(path.resolve()) for path in paths.values())
        yield Programs("C servers", [stdio], lambda _: [http, "--port", "0"], "/m/jn/{n}")


@contextmanager
def http_urls(found: Programs, count: int) -> Iterator[list[str]]:
    """Start the HTTP server and give `count` endpoints on it; it is killed at the end."""
    server = subprocess.Popen(found.http(count), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if hasattr(os, "sched_setaffinity") and len(cores := sorted(os.sched_getaffinity(0))) > 1:
            os.sched_setaffinity(server.pid, {cores[-1]})
        first = server.stdout.readline()
        port = int(first.split()[-1])
        yield [f"http://127.0.0.1:{port}{found.path.format(n=n)}" for n in range(count)]
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


def client_core() -> int | None:
    """The core for the client of an HTTP run, None where cores cannot be told apart."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[0] if len(cores) > 1 else None
