"""The look at the process table, against real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mcp_actors.cli.processes import Process, _parse_ps, _parse_stat, descendants, leftovers

# Starts a child of its own, says its pid, and both end at end-of-file.
PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'])\n"
    "print(child.pid, flush=True)\n"
    "child.wait()\n"
)


@pytest.mark.parametrize(
    ("text", "process"),
    [
        ("12 (python3) S 1 12 12 0 -1", Process(12, 1, 12, "S")),
        ("12 (a) b) R (c) Z 7 9 12 0 -1", Process(12, 7, 9, "Z")),
    ],
)
def test_parse_stat(text, process):
    """A command that holds parentheses and spaces misleads nobody."""
    assert _parse_stat(text) == process


def test_parse_ps():
    """The output of ps is read where there is no /proc."""
    assert list(_parse_ps("  1     0     1 Ss\n 20     1    20 R+\n\n")) == [
        Process(1, 0, 1, "S"),
        Process(20, 1, 20, "R"),
    ]


def test_descendants_of_a_table():
    """Children and their children are found, parents first; others are not."""
    table = [Process(4, 3, 3, "S"), Process(3, 2, 3, "S"), Process(2, 1, 2, "S"), Process(9, 1, 9, "S")]

    assert [process.pid for process in descendants(2, table)] == [3, 4]


def test_leftovers_are_seen_and_spared():
    """A live grandchild counts, also by its group; what is spared is spared with all it started."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        grandchild = int(parent.stdout.readline())
        tree = {parent.pid, grandchild}

        assert tree <= {process.pid for process in leftovers(os.getpid(), ())}
        assert tree <= {process.pid for process in leftovers(grandchild, {parent.pid})}
        assert not tree & {process.pid for process in leftovers(os.getpid(), {parent.pid}, spared={parent.pid})}

        parent.stdin.close()
    assert not tree & {process.pid for process in leftovers(os.getpid(), {parent.pid})}
