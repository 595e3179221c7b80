#!/usr/bin/env python3
"""Runs the public conformance suite against our client, strictly and bounded: ``python tests/conformance/run.py``.

What this is not: the suite, which ``tests/conformance/install`` installs, nor the driver (``client.py``).

Rules, since the suite alone forgives too much: it ignores a client's exit status and time-outs, and a client that does
nothing passes some scenarios.

1. One harness process per scenario, and a bound on its time; what it started ends with it.
2. A scenario passes with exit status 0 of harness and client, without a failure or a warning, and with every check
   that `EXPECTED` names reported as a success. Where a server must be refused the client's status is another one: a
   driver that swallows errors passes nothing there.
3. Nothing runs beside a scenario that measures time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from auth_expected import AUTH_EXPECTED, ENDS_WITH_ERROR  # noqa: E402 - beside this file, which is a program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Ours as it was: pytest writes into it before every test, under the feet of a thread that starts a process.
ENVIRONMENT: Final = dict(os.environ)
# What the harness gives the client, and what we give the harness, which waits for the client's pipes.
CLIENT_SECONDS: Final = 30
HARNESS_SECONDS: Final = 60
FIRST, LEGACY, MODERN = "2025-03-26", "2025-11-25", "2026-07-28"

# Reports on traffic, not on the client.
TRAFFIC: Final = frozenset(
    {"incoming-request", "outgoing-response", "outgoing-sse-event", "outgoing-stream-close"}
    | {"incoming-auth-request", "outgoing-auth-response"}
)
# Scenarios that measure milliseconds of real time: they run alone, and once more when only the time was wrong.
TIMED: Final = {"sse-retry": "client-sse-retry-timing"}

_PRESERVED: Final = tuple(
    f"json-schema-2020-12-client-{what}"
    for what in (
        "tool-found",
        "echo-completed",
        "$schema-preserved",
        "$defs-preserved",
        "additionalProperties-preserved",
    )
)
_KEPT: Final = tuple(f"sep-2106-client-{what}-preserved" for what in ("anchor-keyword", "composition-keywords"))
_ECHO: Final = (*_PRESERVED, *_KEPT, "sep-2106-client-conditional-keywords-preserved", "wire-schema-valid")
# Of skills (SEP-2640), which are no part of a revision: the suite runs them in both when it is told to.
SKILLS: Final = {
    "sep-2640-client-no-prefetch": ("sep-2640-host-no-prefetch",),
    "sep-2640-client-verify-digest": ("sep-2640-host-verify-digest",),
    "sep-2640-client-verify-size": ("sep-2640-host-size-mismatch-failure",),
    "sep-2640-client-verify-frontmatter": ("sep-2640-host-frontmatter-comparison",),
}
_CALLS: Final = ("tool-add-numbers", "wire-schema-valid")
_METHODS: Final = ("tools_list", "tools_call", "resources_list", "resources_read", "prompts_list", "prompts_get")

# Revision -> scenario -> ids or names of the checks that must be a success.
EXPECTED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    FIRST: AUTH_EXPECTED[FIRST],
    LEGACY: {
        "initialize": ("mcp-client-initialization",),
        "tools_call": _CALLS,
        "elicitation-sep1034-client-defaults": tuple(
            f"client-elicitation-sep1034-{kind}-default" for kind in ("string", "integer", "number", "enum", "boolean")
        ),
        "json-schema-2020-12-preservation": _ECHO,
        "sse-retry": ("client-sse-graceful-reconnect", "client-sse-last-event-id", "client-sse-retry-timing"),
        **SKILLS,
        **AUTH_EXPECTED[LEGACY],
    },
    MODERN: {
        "tools_call": _CALLS,
        "request-metadata": (
            *(f"sep-2575-client-declares-{what}-capability" for what in ("roots", "sampling", "elicitation")),
            *(f"sep-2575-client-{what}" for what in ("populates-meta", "sends-client-info", "retry-supported-version")),
            "sep-2575-http-client-sends-version-header",
            "sep-2575-http-version-header-matches-meta",
        ),
        "sep-2322-client-request-state": (
            "sep-2322-client-request-state-echoed",
            "sep-2322-client-jsonrpc-id-different",
            "sep-2322-client-no-state-omitted",
            "sep-2322-client-parallel-isolation",
            "sep-2322-default-result-type-complete",
        ),
        # By name: a method that was not sent has the same id and is only skipped.
        "http-standard-headers": (
            *(f"ClientMcpMethodHeader_{method}" for method in _METHODS),
            *(f"ClientMcpNameHeader_{method}" for method in ("tools_call", "resources_read", "prompts_get")),
        ),
        "http-custom-headers": (
            "sep-2243-client-supports-custom-headers",
            "sep-2243-client-mirrors-designated-params",
            "sep-2243-client-encode-values",
            "sep-2243-client-base64-unsafe",
            "sep-2243-client-omit-null",
        ),
        "http-invalid-tool-headers": (
            "sep-2243-client-reject-invalid-tool",
            *(f"sep-2243-x-mcp-header-{what}" for what in ("charset", "not-empty", "primitive-only", "unique")),
        ),
        "json-schema-ref-no-deref": ("sep-2106-no-network-ref-deref",),
        "json-schema-2020-12-preservation": _ECHO,
        **SKILLS,
        **AUTH_EXPECTED[MODERN],
    },
}


class Outcome(NamedTuple):
    """What became of one scenario."""

    revision: str
    scenario: str
    # Checks that were a success.
    successes: int
    # Why it failed; empty when it passed.
    problems: tuple[str, ...]
    seconds: float
    # What harness and client wrote, for people.
    output: str = ""


def conf() -> Path:
    """Where ``tests/conformance/install`` puts the suite."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-conformance" / "conf"


def client_command() -> str:
    """Our driver, as the harness wants it: words between single blanks, none inside a word."""
    return f"{sys.executable} {HERE / 'client.py'}"


def run_scenario(revision: str, scenario: str, *, suite: Path | None = None, command: str | None = None) -> Outcome:
    """Run one scenario; one that measures time gets a second chance when only the time was wrong."""
    outcome = _run_once(revision, scenario, suite or conf(), command or client_command())
    timing = TIMED.get(scenario)
    if timing is not None and outcome.problems and all(timing in problem for problem in outcome.problems):
        outcome = _run_once(revision, scenario, suite or conf(), command or client_command())
    return outcome


def _run_once(revision: str, scenario: str, suite: Path, command: str) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mcp-conformance-") as directory:
        words = [str(suite), "client", "--command", command, "--scenario", scenario, "--spec-version", revision]
        words += ["--force", "--timeout", str(CLIENT_SECONDS * 1000), "-o", directory]
        status, output = _run_bounded(words)
        reports = list(Path(directory).rglob("checks.json"))
        checks = json.loads(reports[0].read_text("utf-8")) if reports else []
        for part in ("stdout", "stderr"):
            output += "".join(path.read_text("utf-8", "replace") for path in Path(directory).rglob(f"{part}.txt"))
    successes = sum(check["status"] == "SUCCESS" for check in checks)
    problems = tuple(_problems(scenario, status, output, checks, EXPECTED[revision].get(scenario, ())))
    return Outcome(revision, scenario, successes, problems, time.monotonic() - began, output)


def _run_bounded(words: Sequence[str]) -> tuple[int | None, str]:
    """Run the harness in a process group of its own. Returns its exit status, None if it took too long, and output."""
    harness = subprocess.Popen(
        words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = harness.communicate(timeout=HARNESS_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(harness.pid, signal.SIGKILL)
        output, _ = harness.communicate()
        return None, output
    return harness.returncode, output


def _problems(
    scenario: str, status: int | None, output: str, checks: Sequence[Mapping[str, str]], expected: Sequence[str]
) -> Iterator[str]:
    """Say why a scenario did not pass (rule 2)."""
    if status is None:
        yield f"the harness did not end within {HARNESS_SECONDS} s"
    elif status:
        yield f"the harness ended with {status}"
    client = re.search(r"CLIENT (TIMED OUT|EXITED WITH ERROR[^\n]*)", output)
    if client is not None and (client[1] == "TIMED OUT" or scenario not in ENDS_WITH_ERROR):
        yield client[0]
    for check in checks:
        if check["status"] in {"FAILURE", "WARNING"}:
            why = check.get("errorMessage") or check["description"]
            yield f"{check['status']} {check['id']} {check['name']}: {why[:300]}"
    passed = {check[key] for check in checks if check["status"] == "SUCCESS" for key in ("id", "name")} - TRAFFIC
    if not passed:
        yield "no check was a success"
    yield from (f"missing {wanted}" for wanted in expected if wanted not in passed)


def main() -> int:
    """Run the scenarios of all revisions, or those that are asked for. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Run the public conformance suite against our client, strictly.")
    parser.add_argument("--revision", choices=list(EXPECTED), action="append", help="default: all")
    parser.add_argument("--only", default="", metavar="REGEX", help="scenarios whose name this matches")
    parser.add_argument("--command", default=client_command(), help="the client; the URL is appended")
    parser.add_argument("--suite", type=Path, default=conf(), help="default: %(default)s")
    parser.add_argument("-j", type=int, default=2, dest="jobs", help="scenarios at once (default: %(default)s)")
    parser.add_argument("-v", action="store_true", dest="is_verbose", help="what harness and client said of failures")
    options = parser.parse_args()
    if not options.suite.exists():
        sys.exit(f"{options.suite} is not there: run {shlex.quote(str(HERE / 'install'))}")
    wanted = [
        (revision, scenario)
        for revision in options.revision or EXPECTED
        for scenario in EXPECTED[revision]
        if re.search(options.only, scenario)
    ]

    def run(pair: tuple[str, str]) -> Outcome:
        return run_scenario(*pair, suite=options.suite, command=options.command)

    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(run, [pair for pair in wanted if pair[1] not in TIMED]))
    outcomes += [run(pair) for pair in wanted if pair[1] in TIMED]
    for outcome in outcomes:
        failed += bool(outcome.problems)
        word = "FAIL" if outcome.problems else "pass"
        print(f"{word} {outcome.revision} {outcome.scenario:38} {outcome.successes:3} ok {outcome.seconds:5.1f} s")
        for problem in outcome.problems:
            print(f"       {problem}")
        if outcome.problems and options.is_verbose:
            print(outcome.output)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
