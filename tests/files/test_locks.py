"""Tests of `locks`."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio

from mcp_actors.files.locks import blocking_lock, process_lock
from mcp_actors.files.private import open_private_directory


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
        with pytest.raises(TimeoutError), blocking_lock(path, timeout=0.02):
            pass

    with blocking_lock(path, timeout=0.02):
        assert path.stat().st_mode & 0o777 == 0o600
