"""Owns the birth of a child process: its pipes, its session, and the descriptor that tells of its end.

What this is not: its life (`process`), nor the choice of program and environment (`commands`, `environment`).

Rule 1: `spawn` is synchronous. Between the birth of a child and its owner knowing it there is no moment at which a task
could be cancelled (fault 94). Spawning blocks for some 150 us, which was measured; a worker thread costs more.
"""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

from mcp_actors.transports.process import Child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["spawn"]


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
    opened: list[int] = []
    popen: subprocess.Popen[bytes] | None = None
    try:
        for _ in range(3):
            opened += os.pipe()
        their_in, stdin, stdout, their_out, stderr, their_err = opened
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
        opened.append(_end_of(popen.pid))
        child = Child(popen, opened[-1], stdin, stdout, stderr)
    except BaseException:
        if popen is not None:  # no descriptor was left for its end, or to hear it by
            popen.kill()
            popen.wait()
        for fd in opened:
            os.close(fd)
        raise
    for fd in (their_in, their_out, their_err):
        os.close(fd)
    for fd in (stdin, stdout, stderr):
        os.set_blocking(fd, False)
    return child


def _end_of(pid: int) -> int:
    """A descriptor that is readable once this child has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, a sandbox
        return _watch_in_thread(pid)


def _watch_in_thread(pid: int) -> int:
    """As a pidfd: the end of a pipe that a thread of the child's own closes. It lives no longer than the child."""
    reader, writer = os.pipe()

    def watch() -> None:
        try:
            # Leaves it to be reaped by the task that owns it.
            while True:
                try:
                    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
                except InterruptedError:
                    continue
                except OSError:
                    pass
                return
        finally:
            os.close(writer)

    threading.Thread(target=watch, name=f"wait-{pid}", daemon=True).start()
    return reader
