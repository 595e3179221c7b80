"""`leftovers`: the journal of living children, private and whole."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.transports import procfs
from mcp_actors.transports.leftovers import Leftover, open_journal, parse_leftover
from tests.transports.stdio_kit import dead_pid, stubborn_child

ENTRY = {
    "format": 1,
    "boot": "b",
    "pid": 10,
    "start": 20,
    "owner_pid": 30,
    "owner_start": 40,
    "server": "s",
    "command": "c",
}


@pytest.fixture
def child():
    """A child that ignores signals, in a group of its own, and is killed and reaped afterwards."""
    with stubborn_child() as child:
        yield child


def test_journal_is_private_and_whole(tmp_path, child) -> None:
    """The directory is 0700, the file 0600, it holds what names the child for good, and no draft stays (fault 4)."""
    directory = tmp_path / "a" / "b"
    journal = open_journal(directory)
    assert journal is not None

    journal.record(child.pid, server="s", command="cmd")

    (path,) = directory.iterdir()
    leftover = parse_leftover(path.read_bytes())
    row, own = procfs.read_stat(child.pid), procfs.read_stat(os.getpid())
    assert row is not None
    assert own is not None
    assert (directory.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    boot = procfs.boot_id()
    assert leftover == Leftover(boot or "", child.pid, row.start, os.getpid(), own.start, "s", "cmd")

    journal.forget(child.pid)
    journal.forget(child.pid)
    assert list(directory.iterdir()) == []


def test_open_directory_is_made_private(tmp_path) -> None:
    """A directory that others could write to is closed to them."""
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o777)

    assert open_journal(directory) is not None
    assert directory.stat().st_mode & 0o777 == 0o700


def test_journal_that_cannot_be_written_does_not_fail(tmp_path, caplog) -> None:
    """No journal is no reason not to start a server (fault 99)."""
    (tmp_path / "file").write_text("")
    assert open_journal(tmp_path / "file" / "d") is None

    journal = open_journal(tmp_path / "d")
    assert journal is not None
    (tmp_path / "d").rmdir()
    journal.record(os.getpid(), server="s", command="c")
    journal.record(dead_pid(), server="s", command="c")

    assert "could not record" in caplog.text


def test_a_journal_that_cannot_be_written_is_told_of_once(tmp_path, caplog) -> None:
    """A fleet that restarts all day on a full disk says so once, and again when that begins anew."""
    journal = open_journal(tmp_path / "d")
    assert journal is not None
    (tmp_path / "d").rmdir()

    for _ in range(3):
        journal.record(os.getpid(), server="s", command="c")
    told = [caplog.text.count("could not record")]
    (tmp_path / "d").mkdir()
    journal.record(os.getpid(), server="s", command="c")
    journal.forget(os.getpid())
    (tmp_path / "d").rmdir()
    journal.record(os.getpid(), server="s", command="c")

    assert [*told, caplog.text.count("could not record")] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({**ENTRY, "format": 2}).encode(),
        json.dumps({**ENTRY, "pid": "10"}).encode(),
        json.dumps({**ENTRY, "pid": True}).encode(),
        json.dumps({**ENTRY, "pid": 1}).encode(),
        json.dumps({**ENTRY, "pid": -5}).encode(),
        json.dumps({**ENTRY, "more": 1}).encode(),
        json.dumps({key: value for key, value in ENTRY.items() if key != "start"}).encode(),
    ],
)
def test_garbage_is_no_entry(text) -> None:
    """Nothing but this format is read; a pid that means a group or everybody is not accepted."""
    assert parse_leftover(text) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_tolerated(text) -> None:
    """Whatever a file holds, reading it does not raise, and names no group and not everybody."""
    found = parse_leftover(text)

    assert found is None or found.pid > 1
