"""Our client against the public conformance suite: every scenario of both revisions that needs no authorization."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conformance.client import ROWS
from tests.conformance.run import EXPECTED, conf, run_scenario

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.peers, pytest.mark.slow]

CASES = [(revision, scenario) for revision, scenarios in EXPECTED.items() for scenario in scenarios]


@pytest.fixture(scope="session")
def suite() -> Path:
    """The installed suite."""
    if not conf().exists():
        pytest.skip("the conformance suite is not installed: run tests/conformance/install")
    return conf()


@pytest.mark.parametrize(("revision", "scenario"), CASES, ids=lambda value: value)
def test_scenario(suite: Path, revision: str, scenario: str) -> None:
    """The suite finds nothing wrong with our client, and has looked at all that we know it to look at."""
    outcome = run_scenario(revision, scenario, suite=suite)

    assert outcome.problems == (), outcome.output


def test_every_scenario_has_a_row() -> None:
    """Each scenario with expectations has something to drive it, and the other way round."""
    assert {scenario for _, scenario in CASES} == set(ROWS)


def test_a_client_that_does_nothing_passes_nothing(suite: Path, tmp_path: Path) -> None:
    """A scenario that the suite passes for a client that sends nothing fails under our rules."""
    idle = tmp_path / "idle.py"
    idle.write_text("", "utf-8")

    outcome = run_scenario("2025-11-25", "initialize", suite=suite, command=f"{sys.executable} {idle}")

    assert outcome.problems


def test_every_scenario_of_the_suite_is_known(suite: Path) -> None:
    """The suite has no scenario for clients without authorization that we do not run."""
    for revision, scenarios in EXPECTED.items():
        command = [str(suite), "list", "--requirements", revision]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

        scored = listed.partition("Client scenarios")[2].partition("Run and reported")[0].split("\n  - ")[1:]
        extra = [line.split()[1] for line in listed.splitlines() if line.endswith("[client]")]
        names = {name.split()[0] for name in [*scored, *extra]}

        assert {name for name in names if not name.startswith("auth/")} == set(scenarios)
