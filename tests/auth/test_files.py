"""Tests of `auth.files`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import trio

from mcp_actors.auth.files import open_private_directory, process_lock, read_private, write_private


def mode(path):
    return path.stat().st_mode & 0o777


def test_files_and_directories_are_private_whatever_the_umask(tmp_path):
    """0600 in 0700 (S251)."""
    before = os.umask(0)
    try:
        write_private(tmp_path / "a" / "b" / "c.json", b"x")
    finally:
        os.umask(before)

    assert mode(tmp_path / "a") == 0o700
    assert mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path / "a" / "b" / "c.json") == 0o600
    assert read_private(tmp_path / "a" / "b" / "c.json") == b"x"


def test_an_open_directory_is_closed(tmp_path):
    """One that others can enter is changed before anything is put there."""
    directory = tmp_path / "d"
    directory.mkdir(mode=0o755)

    open_private_directory(directory)

    assert mode(directory) == 0o700


def test_a_file_that_others_can_read_is_not_believed(tmp_path):
    """Nor a directory, nor a link that leads to nothing."""
    path = tmp_path / "c.json"
    path.write_bytes(b"x")
    path.chmod(0o644)

    with pytest.raises(PermissionError):
        read_private(path)
    with pytest.raises(OSError, match=r".*"):
        read_private(tmp_path)
    assert read_private(tmp_path / "none") is None


def test_a_directory_behind_a_link_is_refused(tmp_path):
    """Nobody can redirect our secrets."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(NotADirectoryError):
        open_private_directory(tmp_path / "link")


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    """Atomic: old or new."""
    path = tmp_path / "d" / "c.json"
    write_private(path, b"old")

    with pytest.raises(TypeError):
        write_private(path, "no bytes")  # type: ignore[arg-type]

    assert read_private(path) == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["c.json"]


async def test_a_lock_is_held_by_one_task_at_a_time(tmp_path):
    """Also within this process."""
    inside = 0
    most = 0

    async def enter():
        nonlocal inside, most
        async with process_lock(tmp_path / "l" / "x.lock"):
            inside += 1
            most = max(most, inside)
            await trio.lowlevel.checkpoint()
            inside -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(enter)

    assert most == 1


async def test_a_lock_of_another_process_is_waited_for_and_dies_with_it(tmp_path):
    """The kernel lets go of it when its holder is killed: a file that stays behind holds up nobody (fault 96)."""
    path = tmp_path / "l" / "x.lock"
    open_private_directory(path.parent)
    program = (
        f"import fcntl,os,time; f=open({str(path)!r},'w'); fcntl.flock(f,2); print('held',flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:  # noqa: ASYNC220
        assert await trio.to_thread.run_sync(holder.stdout.readline) == b"held\n"

        with trio.move_on_after(0.05) as scope:
            async with process_lock(path):
                pass
        assert scope.cancelled_caught
        holder.kill()

        with trio.fail_after(10):
            async with process_lock(path):
                pass


async def test_a_lock_that_is_never_let_go_is_given_up(tmp_path):
    """A stopped process does not park us for ever (D22)."""
    path = tmp_path / "x.lock"
    async with process_lock(path):
        with pytest.raises(TimeoutError):
            async with process_lock(path, timeout=0.02):
                pass
