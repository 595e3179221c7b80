"""Shared by all tests: no async test hangs, and no message of our client may be against the types of its revision.

Every async test runs under a deadline on trio's clock, so a hang fails instead of hanging.
"""

from __future__ import annotations

import functools
import inspect
import logging
import signal
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import HealthCheck, settings

from mcp_actors.actors import wire
from mcp_actors.cli.debuglog import close_log
from tests import home
from tests.wire_validator import VIOLATIONS, CheckedSession

if TYPE_CHECKING:
    from collections.abc import Generator

# No test is judged by the speed of the machine: what is slow is seen by the benchmarks.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# The one patch of the suite: an instrument that must be in every test cannot be an argument of each.
wire.Session = CheckedSession

home.move()

# A shell's ``&`` starts us deaf to these, and our children would inherit it.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

DEADLINE = 60.0  # virtual seconds under autojump_clock, real ones without


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            marker = item.get_closest_marker("deadline")
            item.obj = _bounded(item.obj, marker.args[0] if marker is not None else DEADLINE)


def _bounded(test, deadline: float):  # a hang jumps to this deadline and fails in milliseconds
    @functools.wraps(test)
    async def run(*args, **kwargs):
        with trio.fail_after(deadline):
            await test(*args, **kwargs)

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Take back what a door that ran in this process, also in a fixture, made of the package's log."""
    close_log()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test in which our client sent what the types of its revision do not allow."""
    VIOLATIONS.clear()
    logger = logging.getLogger("mcp_actors")
    log = logger.handlers[:], logger.level, logger.propagate
    outcome = yield
    # What a door that ran in this process set up.
    logger.handlers[:], logger.level, logger.propagate = log
    if VIOLATIONS:
        pytest.fail("our client broke the types of the wire:\n" + "\n".join(VIOLATIONS[:20]), pytrace=False)
    return outcome
