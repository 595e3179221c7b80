"""`procfs`: reading the process table."""

from __future__ import annotations

import os
import subprocess

import pytest

from mcp_actors.transports import procfs
from tests.transports.stdio_kit import PYTHON

REST = " ".join(str(n) for n in range(100, 150))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (f"12 (cat) S 1 12 12 {REST}", (12, "S", 1, 12, 12, 115)),
        (f"12 (a) b (c) Z 1 13 14 {REST}", (12, "Z", 1, 13, 14, 115)),
        (f"12 () R 1 13 14 {REST}", (12, "R", 1, 13, 14, 115)),
        ("12 (cat) S 1 12", None),
        ("", None),
        ("junk", None),
    ],
)
def test_stat_is_parsed_whatever_the_name(text, row) -> None:
    """A program's name may hold blanks and parentheses; junk is no row."""
    parsed = procfs.parse_stat(text.encode())

    assert (parsed and (parsed.pid, parsed.state, parsed.parent, parsed.group, parsed.session, parsed.start)) == row


def test_own_row_is_found() -> None:
    """This process is in the table, alive, with its group and session."""
    row = procfs.read_stat(os.getpid())

    assert row is not None
    assert (row.pid, row.group, row.session, row.is_alive) == (os.getpid(), os.getpgrp(), os.getsid(0), True)
    assert procfs.is_running(row.pid, row.start)
    assert not procfs.is_running(row.pid, row.start + 1)
    assert procfs.boot_id() == procfs.boot_id() != ""


def test_zombie_is_not_alive() -> None:
    """A child that ended and was not reaped is in the table, but not alive, nor a living member of its group."""
    child = subprocess.Popen([*PYTHON, "-c", ""], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    row, has_live = procfs.read_stat(child.pid), procfs.has_live_member(child.pid)
    assert row is not None
    is_running = procfs.is_running(child.pid, row.start)
    child.wait()

    assert not row.is_alive
    assert not is_running
    assert has_live is False
    assert procfs.read_stat(child.pid) is None


def test_descendants_are_children_and_theirs() -> None:
    """The whole tree below a process is found."""
    script = "cat & (cat; true) & echo go; wait"
    child = subprocess.Popen(
        ["/bin/sh", "-c", "exec 3<&0; " + script.replace("cat", "cat <&3")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()

    rows = procfs.descendants(child.pid)
    child.communicate()

    assert {row.parent for row in rows} >= {child.pid}
    assert len(rows) >= 2
    assert procfs.descendants(child.pid) == []
