"""Our client against the public conformance suite: every scenario that it has for clients, of every revision."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import pytest

from tests.conformance.auth_expected import ENDS_WITH_ERROR
from tests.conformance.client import AUTH, ROWS
from tests.conformance.run import EXPECTED, FIRST, SKILLS, TIMED, conf, run_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.peers, pytest.mark.slow]

# Those that measure time come last: by then nothing runs beside them.
CASES = sorted(
    ((revision, scenario) for revision, scenarios in EXPECTED.items() for scenario in scenarios),
    key=lambda case: case[1] in TIMED,
)
# Scenarios at once: more make time-outs on two cores.
JOBS = 2


@pytest.fixture(scope="session")
def suite() -> Path:
    """The installed suite."""
    if not conf().exists():
        pytest.skip("the conformance suite is not installed: run tests/conformance/install")
    return conf()


@pytest.fixture(scope="module")
def outcomes(suite: Path, request: pytest.FixtureRequest) -> Iterator[object]:
    """Gives the outcome of a case. The cases of this session run `JOBS` at a time from now on, in their order."""
    chosen = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_scenario" and item.module is request.module
    ]
    cases = [(params["revision"], params["scenario"]) for params in chosen]
    pool = ThreadPoolExecutor(JOBS)
    running = {case: pool.submit(run_scenario, *case, suite=suite) for case in cases if case[1] not in TIMED}

    def outcome(case: tuple[str, str]) -> object:
        if case in running:
            return running[case].result()
        wait(running.values())
        return run_scenario(*case, suite=suite)

    yield outcome
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("revision", "scenario"), CASES, ids=lambda value: value)
def test_scenario(outcomes, revision: str, scenario: str) -> None:
    """The suite finds nothing wrong with our client, and has looked at all that we know it to look at."""
    outcome = outcomes((revision, scenario))

    assert outcome.problems == (), outcome.output


def test_every_scenario_has_a_row() -> None:
    """Each scenario with expectations has something to drive it, and the other way round."""
    assert {scenario for _, scenario in CASES if not scenario.startswith(AUTH)} == set(ROWS)
    assert {scenario for _, scenario in CASES} >= ENDS_WITH_ERROR


def test_a_client_that_does_nothing_passes_nothing(suite: Path, tmp_path: Path) -> None:
    """A scenario that the suite passes for a client that sends nothing fails under our rules."""
    idle = tmp_path / "idle.py"
    idle.write_text("", "utf-8")

    outcome = run_scenario("2025-11-25", "initialize", suite=suite, command=f"{sys.executable} {idle}")

    assert outcome.problems


def test_every_scenario_of_the_suite_is_known(suite: Path) -> None:
    """What a revision requires of clients, and what is run beside that, is what we run."""
    for revision, scenarios in EXPECTED.items():
        if revision == FIRST:  # the suite keeps no requirements of it
            continue
        command = [str(suite), "list", "--requirements", revision]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

        scored = listed.partition("Client scenarios")[2].partition("Run and reported")[0].split("\n  - ")[1:]
        extra = [line.split()[1] for line in listed.splitlines() if line.endswith("[client]")]

        assert {name.split()[0] for name in [*scored, *extra]} | SKILLS.keys() == set(scenarios)


def test_every_scenario_for_clients_is_run(suite: Path) -> None:
    """Those that belong to no revision, or to no set, are run as well."""
    listed = subprocess.run([str(suite), "list"], capture_output=True, text=True, check=True, timeout=30).stdout
    part = listed.partition("Client scenarios")[2].partition("\n\n")[0]

    names = {line.split()[1] for line in part.splitlines() if line.startswith("  - ")}

    assert names == {scenario for _, scenario in CASES}
