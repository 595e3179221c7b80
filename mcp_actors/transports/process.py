"""Owns one child process: starting it in a session of its own, waiting for it, its three pipes, its process group.

What this is not: the order in which it is stopped (`ladder`), nor what is read and written (`stdio`).

A child is a process of its own with the rights of this user on this machine; no network is between (S071).

Rule 1: `spawn` is synchronous. Between the birth of a child and its owner knowing it there is no moment at which a task
could be cancelled (fault 94). Spawning blocks for some 150 us, which was measured; a worker thread costs more.
Rule 2: a child is always waited for by the one task that owns it, so nothing stays as a zombie (fault 2).
Rule 3: the pipes are ours, as numbers: objects around them cost a tenth of a spawn.
Rule 4: a group is never signalled after it was seen empty: its number may belong to somebody else by then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from itertools import chain
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, field

from mcp_actors.transports import procfs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Child", "describe_exit", "enlarge_pipe", "read_pipe", "spawn"]

# A 1 MiB result takes a quarter of the wake-ups of the default 64 KiB.
BIG_PIPE_BYTES: Final = 256 * 1024


@define(eq=False)
class Child:
    """A child and its process group. Owned by one task; `wait` is never entered twice at once."""

    _popen: subprocess.Popen[bytes]
    # Becomes readable when the child ends; None where the system has no such thing.
    _pidfd: int | None
    # Our ends, non-blocking; -1 once closed.
    stdin: int
    stdout: int
    stderr: int
    # Whether the group was seen empty (Rule 4).
    _is_empty: bool = False
    # Descendants that left the group, found by `find_strays`; each named by pid and start time.
    _strays: list[procfs.ProcessStat] = field(factory=list)

    @property
    def pid(self) -> int:
        """Process id of the child, and the number of its process group."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """Code, or minus the number of the signal; None while it was not seen to end."""
        return self._popen.returncode

    def poll(self) -> int | None:
        """Reap the child if it has ended. Returns its exit status, None while it runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Wait until the child has ended, and reap it.

        Cancellation:
            Safe.
        """
        while (status := self.poll()) is None:
            if self._pidfd is not None:
                await trio.lowlevel.wait_readable(self._pidfd)
            else:
                await _wait_in_thread(self.pid)
        return status

    def find_strays(self) -> None:
        """Remember the descendants that are in other groups, while the child still links us to them (S140)."""
        known = {(row.pid, row.start) for row in self._strays}
        for row in procfs.descendants(self.pid):
            if row.group != self.pid and (row.pid, row.start) not in known:
                self._strays.append(row)

    def signal(self, number: int) -> None:
        """Send a signal to the whole group and to the strays; nothing happens when they are gone."""
        for row in self._strays:
            now = procfs.read_stat(row.pid)
            if now is not None and now.start == row.start:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(row.pid, number)
        if not self.is_group_empty():
            # Darwin says "not permitted" for a group of zombies.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def is_group_empty(self) -> bool:
        """Whether the child is reaped and nobody is left in its group."""
        if self._is_empty:
            return True
        if self.poll() is None:
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            self._is_empty = True
        except PermissionError:
            # Whoever is left cannot be signalled by us; waiting for them would only take time.
            self._is_empty = True
        return self._is_empty

    def is_gone(self) -> bool:
        """Whether nothing of the tree is left."""
        return self.is_group_empty() and not self._has_stray()

    def is_past_help(self) -> bool:
        """Whether all that is left are zombies that somebody else has to reap. Reads the process table."""
        if self.poll() is None or self._has_stray():
            return False
        if procfs.has_live_member(self.pid) is False:
            self._is_empty = True
        return self._is_empty

    def close_input(self) -> None:
        """Let the child see the end of its input."""
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Give back every descriptor. No task may be waiting on one."""
        self.close_input()
        for fd in (self.stdout, self.stderr, self._pidfd):
            if fd is not None and fd >= 0:
                os.close(fd)
        self.stdout = self.stderr = -1
        self._pidfd = None

    def _has_stray(self) -> bool:
        for row in self._strays:
            now = procfs.read_stat(row.pid)
            if now is not None and now.start == row.start and now.is_alive:
                return True
        return False


def spawn(argv: Sequence[str], *, program: str, environ: Mapping[str, str], cwd: str | None) -> Child:
    """Start `program` with piped standard streams, in a session and process group of its own.

    Its group does not receive what the terminal sends to ours (fault 16), and no descriptor but its own three reaches
    it (fault 4).

    Args:
        argv: what the program sees as its arguments, its name first.
        program: absolute path of the file to start.
        environ: its whole environment.
        cwd: directory it starts in; None: ours.

    Raises:
        OSError: it could not be started.
        ValueError: a NUL character or lone surrogate in an argument or variable.

    Source:
        S066, S069, faults 4, 16, 94.
    """
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in range(3))
        (their_in, stdin), (stdout, their_out), (stderr, their_err) = pipes
        popen = subprocess.Popen(
            argv,
            executable=program,
            env=environ,
            cwd=cwd,
            stdin=their_in,
            stdout=their_out,
            stderr=their_err,
            bufsize=0,
            close_fds=True,
            start_new_session=True,
        )
    except BaseException:
        for fd in chain.from_iterable(pipes):
            os.close(fd)
        raise
    for fd in (their_in, their_out, their_err):
        os.close(fd)
    for fd in (stdin, stdout, stderr):
        os.set_blocking(fd, False)
    return Child(popen, _open_pidfd(popen.pid), stdin, stdout, stderr)


async def read_pipe(fd: int, size: int) -> bytes:
    """Read what is there, waiting for the first byte. Empty at the end of the pipe. Cancellation: safe."""
    while True:
        try:
            return os.read(fd, size)
        except BlockingIOError:
            await trio.lowlevel.wait_readable(fd)
        except OSError:
            return b""


def enlarge_pipe(fd: int) -> int:
    """Ask for a bigger pipe. Returns its size in bytes, or 64 KiB where that cannot be asked or is refused."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, BIG_PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        return 64 * 1024


def describe_exit(status: int) -> str:
    """Say in words how a child ended."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, a sandbox, or no descriptor left
        return None


async def _wait_in_thread(pid: int) -> None:
    def wait() -> None:
        while True:
            try:
                # Leaves it to be reaped by `poll`, in the task that owns it.
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
            return

    # A limiter of its own: children that live long must not use up the threads of everybody else.
    await trio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
