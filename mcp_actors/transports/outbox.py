"""Owns writing to a pipe: frames go out whole, in as few writes as possible, and nobody waits without need.

What this is not: the pipe's owner. It is given a descriptor, and asks for `flush` when what waits can go out. Before
there is a pipe it takes what will go out first.

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
from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_BACKLOG", "Outbox"]

MAX_BACKLOG: Final = 1024 * 1024
# So many frames go out at once before the peer says something: a notification and the request behind it.
_MAX_UNREAD: Final = 2


@define(eq=False)
class Outbox:
    """The writing half of a pipe. `put` may be called from any task."""

    # Non-blocking; -1 before `begin`.
    fd: int = field(default=-1, init=False)
    # See `begin`.
    _ask_owner: Callable[[], None] = field(init=False, repr=False)
    # What is left of what was begun, and the frames that wait behind it, oldest first.
    _rest: memoryview = field(default=memoryview(b""), repr=False)
    _frames: list[bytes] = field(factory=list, repr=False)
    # Bytes in both: accepted and not yet in the pipe.
    _backlog: int = 0
    # Writes made by `put` itself since something was last read.
    _unread: int = 0
    # Whether `flush` was asked for and will be called.
    _has_asked: bool = False
    # Senders that wait for room; None: nobody ever had to.
    _crowd: trio.lowlevel.ParkingLot | None = field(default=None, repr=False)
    _is_closed: bool = False
    # Whether the peer closed its end.
    is_broken: bool = False

    @property
    def is_full(self) -> bool:
        """Whether senders wait for room."""
        return self._backlog > MAX_BACKLOG and not self._is_closed

    def begin(self, fd: int, ask: Callable[[], None]) -> None:
        """Write to this pipe from now on, and what was put before at once.

        Args:
            fd: non-blocking.
            ask: asks for calls of `flush` whenever the pipe takes bytes or is broken, until that says that nothing
                waits.
        """
        self.fd, self._ask_owner = fd, ask
        if self._frames and self.flush():
            self._ask_owner()

    def heard(self) -> None:
        """Learn that the peer sent something: it keeps up, so the next frame may go out at once."""
        self._unread = 0

    async def put(self, line: bytes) -> bool:
        """Send one line. Returns False when it did not go out because the pipe is closed.

        Cancellation:
            Safe. The line goes out whole or not at all.
        """
        if not self._backlog and self._unread < _MAX_UNREAD and self.fd >= 0 and not self._is_closed:
            self._unread += 1
            written = self._write(line)
            if written < len(line) and not self.is_broken:
                # Begun, so it is kept without waiting for room.
                self._rest = memoryview(line)[written:]
                self._backlog = len(self._rest)
                self._ask()
            return not self.is_broken
        while self.is_full:
            self._crowd = self._crowd or trio.lowlevel.ParkingLot()
            await self._crowd.park()
        if self._is_closed:
            return False
        self._frames.append(line)
        self._backlog += len(line)
        self._ask()
        return True

    def flush(self) -> bool:
        """Write what the pipe takes of what waits. Returns whether more does; if not, it asks anew when needed."""
        if not self._rest:
            self._rest = memoryview(b"".join(self._frames))
            self._frames.clear()
        written = self._write(self._rest) if self._rest else 0
        self._rest = self._rest[written:]
        self._backlog -= written
        if self._crowd is not None and not self.is_full:
            self._crowd.unpark_all()
        self._has_asked = self._backlog > 0
        return self._has_asked

    def close(self) -> None:
        """Accept nothing more; senders that wait are told. What the pipe takes at once still goes out, in order."""
        if self._backlog:
            with contextlib.suppress(OSError):
                os.write(self.fd, b"".join((self._rest, *self._frames)))
        self._break_off()

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.is_broken = True
            self._break_off()
            self._ask()  # so the owner learns it
            return 0

    def _break_off(self) -> None:
        self._is_closed = True
        self._frames.clear()
        self._rest = memoryview(b"")
        self._backlog = 0
        if self._crowd is not None:
            self._crowd.unpark_all()

    def _ask(self) -> None:
        if not self._has_asked and self.fd >= 0:
            self._has_asked = True
            self._ask_owner()
