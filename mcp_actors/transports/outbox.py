"""Owns writing to a pipe: frames go out whole, in as few writes as possible, and nobody waits without need.

What this is not: the pipe's owner. It is given a descriptor and tells through `on_broken` that nobody reads it now.

Rule 1: a frame that was begun or appended goes out whole; a sender cancelled before that leaves nothing of it.
Rule 2: at most `MAX_BACKLOG` bytes and one frame are held; beyond that senders wait (fault 18).
Rule 3: on a quiet wire `put` writes by itself and passes no checkpoint: that is the hot path. Once a frame is on its
way and nothing was read since, further frames are collected, so that what one scheduler turn sends becomes one write.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_BACKLOG", "Outbox"]

MAX_BACKLOG: Final = 1024 * 1024
# So many frames go out at once before the peer says something: a notification and the request behind it.
_MAX_UNREAD: Final = 2


@define(eq=False)
class Outbox:
    """The writing half of a pipe. `put` may be called from any task."""

    # Non-blocking.
    fd: int
    # Starts `run` in a task, the first time that something has to wait: most wires never need it.
    start: Callable[[], None]
    # Called, possibly more than once, when the peer closed its end.
    on_broken: Callable[[], None]
    # Frames that wait, oldest first; the first may be the rest of one that was begun.
    _frames: list[bytes | memoryview] = field(factory=list, repr=False)
    # Bytes in `_frames` and in the write under way.
    _backlog: int = 0
    # Writes made by `put` itself since something was last read.
    _unread: int = 0
    _is_started: bool = False
    # The task in `run` while it waits for work.
    _idle: trio.lowlevel.Task | None = field(default=None, repr=False)
    # Senders that wait for room.
    _crowd: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot, repr=False)
    _is_closed: bool = False

    @property
    def backlog(self) -> int:
        """Bytes that were accepted and are not yet in the pipe."""
        return self._backlog

    def heard(self) -> None:
        """Learn that the peer sent something: it keeps up, so the next frame may go out at once."""
        self._unread = 0

    async def put(self, line: bytes) -> bool:
        """Send one line. Returns False when it did not go out because the pipe is closed.

        Cancellation:
            Safe. The line goes out whole or not at all.
        """
        if not self._backlog and self._unread < _MAX_UNREAD and not self._is_closed:
            self._unread += 1
            try:
                written = os.write(self.fd, line)
            except BlockingIOError:
                written = 0
            except OSError:
                self._break()
                return False
            if written < len(line):
                # Begun, so it is appended without waiting for room.
                self._append(memoryview(line)[written:])
            return True
        while self._backlog > MAX_BACKLOG and not self._is_closed:
            await self._crowd.park()
        if self._is_closed:
            return False
        self._append(line)
        return True

    async def run(self) -> None:
        """Write what was collected. Runs until cancelled or until the peer closes its end."""
        while not self._is_closed:
            if not self._frames:
                await self._wait_for_work()
            batch = memoryview(self._frames[0] if len(self._frames) == 1 else b"".join(self._frames))
            self._frames.clear()
            try:
                while batch and not self._is_closed:
                    try:
                        written = os.write(self.fd, batch)
                    except BlockingIOError:
                        await trio.lowlevel.wait_writable(self.fd)
                        continue
                    except OSError:
                        self._break()
                        return
                    batch = batch[written:]
                    self._backlog -= written
                    if self._backlog <= MAX_BACKLOG:
                        self._crowd.unpark_all()
            finally:
                # Cancelled inside a frame: its rest stays first in line, so that `close` tears nothing by itself.
                if batch and not self._is_closed:
                    self._frames.insert(0, batch)
            if self._frames:
                # A peer that reads as fast as we write must not keep the others from running.
                await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Accept nothing more; senders that wait are told. What the pipe takes at once still goes out, in order."""
        if not self._is_closed and self._frames:
            with contextlib.suppress(OSError):
                os.write(self.fd, b"".join(self._frames))
        self._break_off()

    def _append(self, line: bytes | memoryview) -> None:
        self._frames.append(line)
        self._backlog += len(line)
        if not self._is_started:
            self._is_started = True
            self.start()
        elif self._idle is not None:
            trio.lowlevel.reschedule(self._idle)
            self._idle = None

    async def _wait_for_work(self) -> None:
        self._idle = trio.lowlevel.current_task()

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._idle = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _break(self) -> None:
        self._break_off()
        self.on_broken()

    def _break_off(self) -> None:
        self._is_closed = True
        self._frames.clear()
        self._backlog = 0
        self._crowd.unpark_all()
        if self._idle is not None:
            trio.lowlevel.reschedule(self._idle)
            self._idle = None
