"""`leftovers`: what a killed run left is found by more than its pid, and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.settings import Settings
from mcp_actors.transports import procfs
from mcp_actors.transports.leftovers import Leftover, open_journal, parse_leftover, sweep, sweep_and_open
from tests.transports.stdio_kit import CHILDREN, PYTHON, SHORT, living
from tests.transports.test_faults_stdio import killed_runtime

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
def directory(tmp_path):
    path = tmp_path / "state" / "children"
    path.mkdir(mode=0o700, parents=True)
    return path


@pytest.fixture
def child():
    """A child that ignores signals, in a group of its own, and is killed and reaped afterwards."""
    child = subprocess.Popen(
        [*PYTHON, str(CHILDREN / "server.py"), "stubborn"], start_new_session=True, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def dead_pid() -> int:
    done = subprocess.Popen(["/bin/true"])
    done.wait()
    return done.pid


def write(directory, pid, **changes):
    row = procfs.read_stat(pid)
    entry = {
        **ENTRY,
        "boot": procfs.boot_id(),
        "pid": pid,
        "start": row.start if row else 0,
        "owner_pid": dead_pid(),
        **changes,
    }
    path = directory / f"{pid}.child"
    path.write_text(json.dumps(entry))
    path.chmod(0o600)
    return path


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
    """Whatever a file holds, reading it does not raise."""
    parse_leftover(text)


async def test_leftover_of_a_dead_owner_is_stopped(directory, child) -> None:
    """Boot, pid and start time match and the owner is dead: its group is stopped and the entry removed (fault 4)."""
    path = write(directory, child.pid)

    with trio.fail_after(10):
        stopped = await sweep(directory, SHORT)

    assert [leftover.pid for leftover in stopped] == [child.pid]
    assert child.wait() == -signal.SIGKILL
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [({"start": 1}, False), ({"boot": "another boot"}, False), ({"owner_pid": os.getpid()}, False)],
    ids=["other start time", "other boot", "owner's pid was reused"],
)
async def test_only_a_full_match_is_touched(directory, child, changes, is_kept) -> None:
    """A pid alone says nothing: another start time or boot is another process (faults 4 and 96)."""
    path = write(directory, child.pid, **changes)
    is_reused_owner = "owner_pid" in changes

    stopped = await sweep(directory, SHORT)

    assert (child.poll() is None) is not is_reused_owner
    assert len(stopped) == int(is_reused_owner)
    assert path.exists() is is_kept


async def test_child_of_a_living_owner_is_left_alone(directory, child) -> None:
    """Another runtime that lives keeps its children and its entries."""
    own = procfs.read_stat(os.getpid())
    assert own is not None
    path = write(directory, child.pid, owner_pid=os.getpid(), owner_start=own.start)

    assert await sweep(directory, SHORT) == ()
    assert child.poll() is None
    assert path.exists()


async def test_foreign_files_stay(directory) -> None:
    """What is not an entry is neither read as one nor removed."""
    for name in ("notes.txt", "junk.child", "1.child"):
        (directory / name).write_text("junk")
    (directory / "dir.child").mkdir()

    assert await sweep(directory, SHORT) == ()
    assert len(list(directory.iterdir())) == 4


async def test_missing_or_open_directory_is_not_swept(tmp_path, child) -> None:
    """Nothing is believed that others could have written (fault 99)."""
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    write(open_to_all, child.pid)
    open_to_all.chmod(0o777)

    assert await sweep(tmp_path / "none", SHORT) == ()
    assert await sweep(open_to_all, SHORT) == ()
    assert child.poll() is None


async def test_a_directory_that_was_open_is_told_of_and_what_stands_in_it_never_believed(
    tmp_path, child, caplog
) -> None:
    """Closing it makes no entry true that others put there: neither now nor in a later run (fault 4)."""
    directory = tmp_path / "children"
    directory.mkdir()
    write(directory, child.pid).chmod(0o644)
    directory.chmod(0o777)

    for _ in range(2):
        assert await sweep_and_open(directory, SHORT) is not None

    assert child.poll() is None
    assert caplog.text.count("is not for this user alone: others may write there") == 1


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
async def test_an_entry_that_others_may_touch_is_none_of_ours(directory, child, mode) -> None:
    """Ours are 0600 from their first moment on."""
    write(directory, child.pid).chmod(mode)

    assert await sweep(directory, SHORT) == ()
    assert child.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_an_entry_of_another_user_is_none_of_ours(directory, child) -> None:
    """Nor a directory."""
    path = write(directory, child.pid)
    os.chown(path, 12345, 12345)
    assert await sweep(directory, SHORT) == ()

    os.chown(path, 0, 0)
    os.chown(directory, 12345, 12345)
    assert await sweep(directory, SHORT) == ()
    assert open_journal(directory) is None
    assert child.poll() is None


async def test_members_of_a_leftover_end_with_it(directory, tmp_path) -> None:
    """The whole group is stopped, also when its leader goes first (fault 1)."""
    marker = f"marker-leftover-{os.getpid()}"
    child = subprocess.Popen(  # noqa: ASYNC220  must be no child of a transport
        ["/bin/sh", str(CHILDREN / "wrapper.sh"), "wait", marker],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHON": PYTHON[0], "PATH": os.environ["PATH"]},
    )
    assert child.stdout is not None
    child.stdout.readline()
    write(directory, child.pid)

    with trio.fail_after(10):
        stopped = await sweep(directory, SHORT)
    child.communicate()

    assert len(stopped) == 1
    assert living(marker) == []


async def test_killed_runtime_is_cleaned_up_by_the_next(tmp_path) -> None:
    """End to end: children that ignore everything survive their runtime and are stopped by the next sweep (fault 4)."""
    marker = f"marker-sweep-{os.getpid()}"
    with trio.fail_after(20):
        pids = await killed_runtime("hermit", marker, tmp_path)
        assert sorted(living(marker)) == sorted(pids)

        stopped = await sweep(tmp_path / "children", Settings(stop_interrupt=0.1, stop_terminate=0.1))

    assert sorted(leftover.pid for leftover in stopped) == sorted(pids)
    assert living(marker) == []
    assert list((tmp_path / "children").iterdir()) == []
