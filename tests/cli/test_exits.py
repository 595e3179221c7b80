"""Exit codes and what is said: one table, groups included."""

from __future__ import annotations

import pytest
import trio

from mcp_actors import errors
from mcp_actors.cli import exits
from mcp_actors.cli.exits import as_one, code_of, code_of_state, explain

LOGIN = errors.AuthRequired()
CONFIG = errors.ConfigError(reason="no such file", file="x.json")
WEATHER = errors.TransportBroken(server="s", reason="gone")

CODES = [
    (CONFIG, 3),
    (errors.ServerNotAllowed(reason="policy"), 3),
    (LOGIN, 4),
    (errors.AuthFailed(reason="refused"), 4),
    (trio.TooSlowError(), 5),
    (KeyboardInterrupt(), 130),
    (exits.UsageError("x"), 2),
    (exits.Refused("x"), 1),
    (exits.OutputClosed(), 1),
    (WEATHER, 1),
    (errors.UnknownTool(name="t"), 1),
    (errors.UnknownServer(name="t"), 1),
    (errors.ServerNotReady(state="failed", reason="exit"), 1),
    (errors.RpcError(code=-32601, message="no"), 1),
    (OSError("disk"), 1),
    (ZeroDivisionError(), 1),
    (ExceptionGroup("g", [ValueError(), CONFIG]), 3),
    (ExceptionGroup("g", [WEATHER, ExceptionGroup("h", [trio.TooSlowError()])]), 5),
    (ExceptionGroup("g", [trio.TooSlowError(), LOGIN]), 4),
    (BaseExceptionGroup("g", [LOGIN, KeyboardInterrupt()]), 130),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: repr(value)[:40])
def test_code_of(error, code):
    """Each error has its documented exit code; of a group, the one that says most."""
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("needs-auth", "http", 4),
        ("failed", "timeout", 5),
        ("failed", "exit", 1),
        ("failed", "invalid-config", 3),
        ("disabled", "policy", 3),
        ("disabled", "pending-approval", 1),
        ("disabled", "user", 1),
        ("pending", "queued", 1),
    ],
)
def test_code_of_state(state, reason, code):
    """A server that takes no calls has the exit code that its state, else its reason, means."""
    assert code_of_state(state, reason) == code


def test_explain_says_each_once():
    """A group with the same message twice says it once, and the parts of one error stay together."""
    error = errors.UnknownServer(name="x")
    error.add_note("configured: a, b")

    said = explain(
        ExceptionGroup("g", [error, WEATHER, errors.TransportBroken(server="s", reason="gone")]), is_debug=False
    )

    assert said == ["no server is named 'x'\nconfigured: a, b", "s: gone"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), exits.OutputClosed(), BaseExceptionGroup("g", [KeyboardInterrupt()])]
)
@pytest.mark.parametrize("is_debug", [False, True])
def test_explain_is_quiet(error, is_debug):
    """An interrupt and a reader that went away need no words."""
    assert explain(error, is_debug=is_debug) == []


def test_explain_bug():
    """A bug is named with its class and points to --debug; with it there is a traceback."""
    try:
        raise KeyError("boom")
    except KeyError as error:
        plain, debug = explain(error, is_debug=False), explain(error, is_debug=True)

    assert plain == ["KeyError: 'boom' (a bug: --debug shows where)"]
    assert debug[0] == "KeyError: 'boom'"
    assert "test_explain_bug" in debug[1]


def test_explain_usage_has_no_traceback():
    """A mistyped line is no bug, whatever --debug says."""
    assert explain(exits.UsageError("name a verb"), is_debug=True) == ["name a verb"]


def test_explain_timeout():
    """A timeout, which has no text of its own, is named."""
    assert explain(trio.TooSlowError(), is_debug=False) == ["timed out"]


@pytest.mark.parametrize("problems", [(CONFIG,), (CONFIG, errors.ConfigError(reason="no object", file="y.json"))])
def test_all_problems_are_told_by_the_one_error_that_stands_for_them(problems):
    """Whoever has several raises them together; one alone is raised as it is."""
    error = as_one(problems)

    assert (error is CONFIG) == (len(problems) == 1)
    assert explain(error, is_debug=False) == [str(problem) for problem in problems]
    assert code_of(error) == 3
