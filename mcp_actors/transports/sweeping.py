"""Owns the stop of what a killed run left behind, beside the start of this one (fault 4).

What this is not: the normal stop, which leaves nothing to find, nor the journal (`leftovers`). A child that watches its
input ends by itself when its runtime is killed; this is for those that do not.

Rule 1: nothing is touched while its owner lives.
Rule 2: all are stopped at once, and only a server of the same name waits: two of it could meet at one file or port.
What others share with a leftover is not known to us; a command is none of it, as half the servers are `npx`.
Rule 3: whoever waits waits no longer than the ladder takes, also for what outlives it.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.files.private import is_private, why_doubted
from mcp_actors.transports import ladder, procfs
from mcp_actors.transports.leftovers import entries, read_leftover
from mcp_actors.values import define

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.config.settings import Settings
    from mcp_actors.transports.leftovers import Leftover

__all__ = ["Sweep", "find_leftovers"]

_log = logging.getLogger("mcp_actors.transports.leftovers")

_POLL: Final = 0.02


@define(eq=False)
class Sweep:
    """What dead runtimes left behind. `run` stops it and is called once."""

    settings: Settings
    # Skips the waits of its ladders.
    hurry: ladder.Hurry = field(repr=False)
    # Journal entry -> what it says of a process that was seen alive; those that are done are gone from here.
    under_way: dict[Path, Leftover] = field(factory=dict)
    # Server name -> set when nothing of that name is under way any more.
    _done: dict[str, trio.Event] = field(factory=dict, init=False, repr=False)

    def wait_for(self, server: str) -> trio.Event | None:
        """What a server of this name waits for before it starts; None: for nothing."""
        if all(leftover.server != server for leftover in self.under_way.values()):
            return None
        return self._done.setdefault(server, trio.Event())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stop it all at once, and clean the journal.

        Cancellation:
            Shielded for at most `ladder.bound` seconds. Entries of processes that still live stay for the next run.

        Source:
            fault 4.
        """
        task_status.started()
        async with trio.open_nursery() as nursery:
            for path, leftover in self.under_way.items():
                nursery.start_soon(self._stop, path, leftover)

    async def _stop(self, path: Path, leftover: Leftover) -> None:
        tree = _LeftoverTree(leftover)
        _log.info("[MCP:%s] stopping a leftover of a previous run pid=%d", leftover.server, leftover.pid)
        await ladder.climb(tree, ladder.rungs(self.settings), self.hurry)
        if tree.is_gone():
            _log.warning("[MCP:%s] stopped pid=%d, left behind by an earlier run", leftover.server, leftover.pid)
            # The number may belong to a new child of ours by now, and the entry with it.
            if read_leftover(path) == leftover:
                _remove(path)
        else:
            _log.warning("[MCP:%s] could not stop pid=%d, left behind by an earlier run", leftover.server, leftover.pid)
        del self.under_way[path]
        if self.wait_for(leftover.server) is None and leftover.server in self._done:
            self._done.pop(leftover.server).set()


def find_leftovers(directory: Path, settings: Settings, hurry: ladder.Hurry) -> Sweep:
    """Look into the journal, and drop what is gone from it. Blocks for a moment.

    Args:
        directory: the one that is given to `open_journal` after this; need not exist.
        settings: the waits of the ladder.
        hurry: skips those waits.
    """
    # Told once for a run.
    for path, what in ((directory.parent, "the state directory"), (directory, "the journal of children")):
        if (why := why_doubted(path)) is not None:
            _log.warning("%s %s is not for this user alone: %s; what stands there may not be believed", what, path, why)
    sweep, boot = Sweep(settings, hurry), procfs.boot_id()
    if boot is None or not is_private(directory):
        return sweep
    for path, leftover in entries(directory):
        if leftover.boot == boot and procfs.is_running(leftover.owner_pid, leftover.owner_start):
            continue
        if leftover.boot == boot and procfs.is_running(leftover.pid, leftover.start):
            sweep.under_way[path] = leftover
        else:
            _remove(path)
    return sweep


@define(eq=False)
class _LeftoverTree:
    """A `ladder.Tree` over a process that is no child of ours: it is looked at, not waited for.

    It is made while the leader was seen alive. From then on the group's number stays taken until the group is empty,
    so it may be signalled as long as nobody saw it empty.
    """

    leftover: Leftover
    _is_gone: bool = False

    def close_input(self) -> None:
        """Nothing to do: it was closed when the owner died."""

    def find_strays(self) -> None:
        """Nothing to do: what left the group cannot be told from what was meant to stay."""

    def signal(self, number: int) -> None:
        """Send a signal to the group, or to the process alone when it leads none."""
        pid = self.leftover.pid
        if self.is_gone():
            return
        row = procfs.read_stat(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if row is not None and row.start == self.leftover.start and row.group != pid:
                os.kill(pid, number)
            else:
                os.killpg(pid, number)

    def is_gone(self) -> bool:
        """Whether neither the process nor anybody in its group runs."""
        if not self._is_gone and not procfs.is_running(self.leftover.pid, self.leftover.start):
            self._is_gone = not procfs.has_live_member(self.leftover.pid)
        return self._is_gone

    def is_past_help(self) -> bool:
        """As `is_gone`, which does not count zombies."""
        return self.is_gone()

    async def wait(self) -> None:
        """Wait until the leader has ended."""
        while procfs.is_running(self.leftover.pid, self.leftover.start):  # noqa: ASYNC110  no event tells the end of a stranger
            await trio.sleep(_POLL)

    async def rest(self, seconds: float) -> None:
        """Let time pass."""
        await trio.sleep(seconds)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
