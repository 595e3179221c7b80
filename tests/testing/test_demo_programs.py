"""The programs of the demo do what their tools say."""

from __future__ import annotations

import re

import pytest

from mcp_actors.testing import demo_programs
from mcp_actors.testing.demo_programs import PROGRAMS
from mcp_actors.testing.stdio_server import StdioServer


def call(program, tool, **arguments):
    result = StdioServer(PROGRAMS[program]).call({"name": tool, "arguments": arguments})
    return result["content"][0]["text"], result.get("isError", False)


@pytest.fixture(autouse=True)
def _empty_notebook(monkeypatch):
    monkeypatch.setattr(demo_programs, "_notes", [])


def test_clock_tells_the_time():
    """The time is in UTC, to the second."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", call("clock", "now")[0])
    assert float(call("clock", "uptime")[0]) >= 0


def test_notebook_keeps_notes_up_to_its_bound(monkeypatch):
    """Notes are kept in order; a full notebook says so."""
    monkeypatch.setattr(demo_programs, "MAX_NOTES", 2)

    assert call("notes", "list_notes") == ("no notes yet", False)
    assert call("notes", "add_note", text="a") == ("note 1 kept", False)
    assert call("notes", "add_note", text="b") == ("note 2 kept", False)
    assert call("notes", "list_notes") == ("1. a\n2. b", False)
    assert call("notes", "add_note", text="c") == ("ValueError: the notebook is full (2 notes)", True)


@pytest.mark.parametrize("arguments", [{}, {"sides": 2, "count": 100}, {"sides": 1000}])
def test_dice_stay_within_their_sides(arguments):
    """Every roll lies between 1 and the sides, and the sum is right."""
    text, is_error = call("dice", "roll", **arguments)
    rolls, _, total = text.partition(" = ")
    numbers = [int(number) for number in rolls.split(" + ")]

    assert not is_error
    assert all(1 <= number <= arguments.get("sides", 6) for number in numbers)
    assert len(numbers) == arguments.get("count", 1)
    assert int(total or numbers[0]) == sum(numbers)


@pytest.mark.parametrize("arguments", [{"sides": 1}, {"sides": 1001}, {"count": 0}, {"count": 101}, {"sides": "x"}])
def test_impossible_dice_are_refused(arguments):
    """What cannot be rolled is a failed result."""
    assert call("dice", "roll", **arguments)[1]
