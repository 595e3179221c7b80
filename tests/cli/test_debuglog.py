"""What the log looks like at the door (S349-S352)."""

from __future__ import annotations

import logging

import pytest

from mcp_actors.cli.debuglog import PrefixFormatter


def record(message, level=logging.INFO, **extra):
    made = logging.LogRecord("mcp_actors.connection", level, __file__, 1, message, (), None)
    for key, value in extra.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (record("connected", server="time"), "[MCP:time] connected"),
        (record("[MCP:time] connected"), "[MCP:time] connected"),
        (record("loaded"), "[MCP:*] loaded"),
        (record("one\ntwo", server="s"), "[MCP:s] one\n[MCP:s] two"),
        (record("[MCP:s] one\ntwo"), "[MCP:s] one\n[MCP:s] two"),
        (record("late", logging.WARNING, server="s"), "[MCP:s] WARNING: late"),
        (record("", server="s"), "[MCP:s] "),
        (
            record("a\x1b[2J", server="s\n[MCP:t]\x1b"),
            "[MCP:s [MCP:t]\N{REPLACEMENT CHARACTER}] a\N{REPLACEMENT CHARACTER}[2J",
        ),
    ],
)
def test_every_line_has_its_prefix(made, text):
    """Every line starts with the server it is about, cleaned (S350)."""
    assert PrefixFormatter("%(message)s").format(made) == text


def test_traceback_has_the_prefix_too():
    """Each line of a traceback starts with the prefix."""
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        made = record("crashed", logging.ERROR, server="s")
        made.exc_info = (type(error), error, error.__traceback__)

    lines = PrefixFormatter("%(message)s").format(made).splitlines()

    assert lines[0] == "[MCP:s] ERROR: crashed"
    assert len(lines) > 2
    assert all(line.startswith("[MCP:s] ") for line in lines)
