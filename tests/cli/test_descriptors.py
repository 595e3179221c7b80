"""The limit of open files that a fleet gets, and what a fleet does that is refused it."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest
import trio

from mcp_actors.cli.descriptors import AT_REST, PER_SERVER, RESERVE, wanted_limit
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.synthetic import stdio_specs
from tests.cli.command import PATIENCE, argv, config, environment, server


@pytest.mark.parametrize(
    ("servers", "soft", "hard", "expected"),
    [
        (0, 1024, 4096, None),
        (100, 1024, 4096, None),
        (300, 1024, 524288, RESERVE + 300 * PER_SERVER),
        (300, 1024, -1, RESERVE + 300 * PER_SERVER),
        (1000, 1024, 4096, 4096),
        (1000, 4096, 4096, None),
        (1000, 1024, 1024, None),
        (1000, -1, -1, None),
        (1, 64, 65536, RESERVE + PER_SERVER),
    ],
)
def test_wanted_limit(servers, soft, hard, expected):
    """A soft limit is raised as far as the fleet needs and the hard one allows, and never lowered."""
    assert expected == wanted_limit(servers, soft, hard)


def run_under(soft, hard, count, *words):
    """Run a verb on so many servers in a process with these limits."""
    fleet = {f"s{number}": server() for number in range(count)}
    return subprocess.run(
        argv(*words, "--json", *config(**fleet)),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )


@pytest.mark.slow
def test_a_fleet_larger_than_the_soft_limit_connects():
    """Whatever the soft limit, every server is up when the hard one has room for them."""
    done = run_under(64, 1024, 40, "list")

    states = [row["state"] for row in json.loads(done.stdout)["servers"]]
    assert (done.returncode, states) == (0, ["connected"] * 40), done.stderr


@pytest.mark.slow
def test_a_fleet_larger_than_the_hard_limit_says_so():
    """Fault 98: those that fit are up; each of the others names the limit and what to do, and nothing hangs."""
    done = run_under(96, 96, 40, "list")

    rows = json.loads(done.stdout)["servers"]
    up = [row for row in rows if row["state"] == "connected"]
    short = [row for row in rows if row["state"] != "connected"]
    assert done.returncode == 1
    assert up
    assert short
    assert {row["reason"] for row in short} == {"exhausted"}
    assert all("Too many open files" in row["error"] and "96" in row["error"] for row in short)


@pytest.mark.slow
@pytest.mark.parametrize(("hard", "said"), [(100, ["descriptors"]), (1024, [])])
def test_doctor_tells_of_a_fleet_that_cannot_be_up(hard, said):
    """Before anything is started: so many programs and such a hard limit do not go together."""
    done = run_under(100, hard, 40, "doctor")

    findings = {row["code"]: row for row in json.loads(done.stdout)["findings"]}
    assert (done.returncode, [code for code in findings if code == "descriptors"]) == (0, said)
    assert not said or "40 programs take 200 descriptors" in findings["descriptors"]["text"]


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
async def test_what_a_server_takes():
    """A program that is up takes as many descriptors as is said, which the errors and the documentation repeat."""
    counts = []
    with trio.fail_after(30):
        for servers in (1, 4):
            async with open_runtime(stdio_specs(servers)) as runtime:
                await runtime.wait_ready()
                counts.append(descriptors())

    assert counts[1] - counts[0] == 3 * AT_REST
