"""`sweeping`: what a killed run left is found by more than its pid, and stopped beside the start."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
import trio

from mcp_actors.config.settings import Settings
from mcp_actors.transports import procfs
from mcp_actors.transports.ladder import Hurry
from mcp_actors.transports.leftovers import Leftover, open_journal
from mcp_actors.transports.sweeping import find_leftovers
from tests.transports.stdio_kit import CHILDREN, PYTHON, SHORT, dead_pid, living, stubborn_child
from tests.transports.test_faults_stdio import killed_runtime


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "state" / "children"
    path.mkdir(mode=0o700, parents=True)
    return path


@pytest.fixture
def child():
    """A child that ignores signals, in a group of its own, and is killed and reaped afterwards."""
    with stubborn_child() as child:
        yield child


def write(directory, pid, **changes):
    row = procfs.read_stat(pid)
    entry = {
        "format": 1,
        "server": "s",
        "command": "c",
        "owner_start": 40,
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


async def sweep(directory, settings=SHORT) -> tuple[Leftover, ...]:
    """Find and stop what is left; gives what was found."""
    found = find_leftovers(directory, settings, Hurry())
    leftovers = tuple(found.under_way.values())
    await found.run()
    assert not found.under_way
    return leftovers


async def test_leftover_of_a_dead_owner_is_stopped(directory, child) -> None:
    """Boot, pid and start time match and the owner is dead: its group is stopped and the entry removed (fault 4)."""
    path = write(directory, child.pid)

    with trio.fail_after(10):
        stopped = await sweep(directory)

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

    stopped = await sweep(directory)

    assert (child.poll() is None) is not is_reused_owner
    assert len(stopped) == int(is_reused_owner)
    assert path.exists() is is_kept


async def test_child_of_a_living_owner_is_left_alone(directory, child) -> None:
    """Another runtime that lives keeps its children and its entries."""
    own = procfs.read_stat(os.getpid())
    assert own is not None
    path = write(directory, child.pid, owner_pid=os.getpid(), owner_start=own.start)

    assert await sweep(directory) == ()
    assert child.poll() is None
    assert path.exists()


async def test_foreign_files_stay(directory) -> None:
    """What is not an entry is neither read as one nor removed."""
    for name in ("notes.txt", "junk.child", "1.child"):
        (directory / name).write_text("junk")
    (directory / "dir.child").mkdir()

    assert await sweep(directory) == ()
    assert len(list(directory.iterdir())) == 4


async def test_missing_or_open_directory_is_not_swept(tmp_path, child) -> None:
    """Nothing is believed that others could have written (fault 99)."""
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    write(open_to_all, child.pid)
    open_to_all.chmod(0o777)

    assert await sweep(tmp_path / "none") == ()
    assert await sweep(open_to_all) == ()
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
        assert await sweep(directory) == ()
        assert open_journal(directory) is not None

    assert child.poll() is None
    assert caplog.text.count("is not for this user alone: others may write there") == 1


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
async def test_an_entry_that_others_may_touch_is_none_of_ours(directory, child, mode) -> None:
    """Ours are 0600 from their first moment on."""
    write(directory, child.pid).chmod(mode)

    assert await sweep(directory) == ()
    assert child.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_an_entry_of_another_user_is_none_of_ours(directory, child) -> None:
    """Nor a directory."""
    path = write(directory, child.pid)
    os.chown(path, 12345, 12345)
    assert await sweep(directory) == ()

    os.chown(path, 0, 0)
    os.chown(directory, 12345, 12345)
    assert await sweep(directory) == ()
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
        stopped = await sweep(directory)
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


async def test_only_the_server_of_its_name_waits(directory, child) -> None:
    """A server waits for the leftovers of its name, all of them, and for nothing once they are gone (invariant 2)."""
    with stubborn_child() as other:
        for pid in (child.pid, other.pid):
            write(directory, pid)
        found = find_leftovers(directory, Settings(stop_interrupt=60.0), Hurry())
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                await nursery.start(found.run)
                child.kill()
                waited, free = found.wait_for("s"), found.wait_for("t")
                assert waited is not None
                while len(found.under_way) == 2:
                    await trio.lowlevel.checkpoint()
                is_set_early = waited.is_set()
                found.hurry.press()
                await waited.wait()

        assert (free, is_set_early, found.wait_for("s")) == (None, False, None)
        assert other.wait() == -signal.SIGKILL


async def test_an_entry_that_was_written_anew_stays(directory, child) -> None:
    """The number of what is gone may be given to a new child, which has its entry by then (Rule 1)."""
    path = write(directory, child.pid)
    found = find_leftovers(directory, SHORT, Hurry())
    write(directory, child.pid, server="new")

    with trio.fail_after(10):
        await found.run()

    assert child.wait() == -signal.SIGKILL
    assert path.exists()


async def test_a_run_that_is_cancelled_ends_what_it_began(directory, child) -> None:
    """A stop while leftovers are swept leaves none of them (S143)."""
    path = write(directory, child.pid)
    found = find_leftovers(directory, SHORT, Hurry())

    with trio.fail_after(10), trio.CancelScope() as scope:
        scope.cancel()
        await found.run()

    assert child.wait() == -signal.SIGKILL
    assert not path.exists()
