"""Shared by all tests: every async test runs under a deadline on trio's clock, so a hang fails instead of hanging."""

from __future__ import annotations

import functools
import inspect

import pytest
import trio
from hypothesis import HealthCheck, settings

# No test is judged by the speed of the machine: what is slow is seen by the benchmarks.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

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
