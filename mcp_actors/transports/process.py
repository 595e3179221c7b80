"""Owns one child process: waiting for it, its three pipes, its process group.

What this is not: its birth (`spawning`), the order in which it is stopped (`ladder`), nor what is read and written
(`stdio`, `headers_helper`, hooks).

A child is a process of its own with the rights of this user on this machine; no network is between (S071).

Rule 1: a child is always waited for by the one task that owns it, so nothing stays as a zombie (fault 2). That task
hears its pipes too, by way of `selector`. So are those below it whose parent we became because theirs ended, as
process 1 of a container does.
Rule 2: the pipes are ours, as numbers: objects around them cost a tenth of a spawn.
Rule 3: a group is never signalled after it was seen empty: its number may belong to somebody else by then.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.transports import procfs
from mcp_actors.transports.selector import Selector
from mcp_actors.values import define

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

__all__ = ["BIG_PIPE_BYTES", "PIPE_BYTES", "Child", "describe_exit", "enlarge_pipe", "read_now"]

# An ordinary pipe, and so much of one is read at once.
PIPE_BYTES: Final = 64 * 1024
# A 1 MiB result takes a quarter of the wake-ups of the default 64 KiB.
BIG_PIPE_BYTES: Final = 256 * 1024


@define(eq=False)
class Child:
    """A child and its process group. Owned by one task; `wait` is never entered twice at once."""

    # Not shown: it shows the arguments, which may hold a key (S352).
    _popen: subprocess.Popen[bytes] = field(repr=False)
    # Becomes readable when the child ends.
    _end: int
    # Our ends, non-blocking; -1 once closed.
    stdin: int
    stdout: int
    stderr: int
    # What its owner hears of it: its end, and whatever else the owner wants to.
    selector: Selector = field(factory=Selector, repr=False)
    # Whether the group was seen empty (Rule 3).
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

    def __attrs_post_init__(self) -> None:
        self.selector.on_readable(self._end, self._reap)

    def poll(self) -> int | None:
        """Reap the child if it has ended. Returns its exit status, None while it runs."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Wait until the child has ended, and reap it; what the selector has is taken meanwhile.

        Cancellation:
            Safe.
        """
        while (status := self.exit_status) is None:
            await self.selector.turn()
        return status

    async def rest(self, seconds: float) -> None:
        """Let time pass, and take what the selector has meanwhile. Cancellation: safe."""
        with trio.move_on_after(seconds):
            while True:
                await self.selector.turn()

    def hear(self, fd: int, take: Callable[[bytes], object]) -> None:
        """From now on, give `take` what comes out of one of the outputs, until that ends. Must not block or raise."""
        self.selector.on_readable(fd, partial(self._hear, fd, take))

    async def _hear(self, fd: int, take: Callable[[bytes], object]) -> None:
        chunk = read_now(fd, PIPE_BYTES)
        if chunk:
            take(chunk)
        elif chunk is not None:
            self.selector.forget(fd)

    async def hear_out(self) -> None:
        """Wait until both outputs have ended, of what the selector has. Cancellation: safe."""
        while self.stdout in self.selector or self.stderr in self.selector:
            await self.selector.turn()

    def find_strays(self) -> None:
        """Remember the descendants that are in other groups, while the child still links us to them (S140)."""
        known = {(row.pid, row.start) for row in self._strays}
        for row in procfs.descendants(self.pid):
            if row.group != self.pid and (row.pid, row.start) not in known:
                self._strays.append(row)

    def signal(self, number: int) -> None:
        """Send a signal to the whole group and to the strays; nothing happens when they are gone."""
        for row in self._strays:
            if procfs.is_running(row.pid, row.start):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(row.pid, number)
        if not self.is_group_empty():
            # Darwin says "not permitted" for a group of zombies.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def is_group_empty(self) -> bool:
        """Whether the child is reaped and nobody is left in its group. Reaps nobody."""
        if self._is_empty:
            return True
        if self.exit_status is None:
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
            self.selector.forget(fd)
            os.close(fd)

    def close(self) -> None:
        """Give back every descriptor, and reap what was left to us, once. No task may be waiting."""
        self._reap_adopted()
        self.close_input()
        self.selector.close()
        for fd in (self.stdout, self.stderr, self._end):
            os.close(fd)
        self.stdout = self.stderr = self._end = -1

    async def _reap(self) -> None:
        if self.poll() is not None:
            self.selector.forget(self._end)

    def _reap_adopted(self) -> None:
        if self.exit_status is None:  # the number would be that of the child itself
            return
        for number in (-self.pid, *(row.pid for row in self._strays)):
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(number, os.WNOHANG)[0]:
                    pass

    def _has_stray(self) -> bool:
        return any(procfs.is_running(row.pid, row.start) for row in self._strays)


def read_now(fd: int, size: int) -> bytes | None:
    """Read what is there; empty at the end of the pipe, None when nothing is there."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def enlarge_pipe(fd: int) -> int:
    """Ask for a bigger pipe. Returns its size in bytes, or 64 KiB where that cannot be asked or is refused."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, BIG_PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        return PIPE_BYTES


def describe_exit(status: int) -> str:
    """Say in words how a child ended."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
