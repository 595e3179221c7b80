"""Owns Ctrl-C and SIGTERM: the first signal stops a verb in order, the second hurries the stop.

What this is not: the stop itself; that is the runtime's, when the scope around it is cancelled.

Theory. The verb runs in a scope of its own, the reader of signals beside it. The first signal cancels the scope, and
all beneath it stops by its own rules, shielded where those say so; the reader stays awake meanwhile, so that a second
signal can take the wait away: it kills what is left of our descendants, and the shielded stop finds them gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.cli import exits, output
from mcp_actors.cli.processes import descendants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

__all__ = ["hurry", "run_interruptibly"]

# SIGTERM counts as an interruption, but for a verb that a unit file starts.
_INTERRUPTED: Final[Mapping[int, int]] = {signal.SIGINT: exits.INTERRUPTED, signal.SIGTERM: exits.INTERRUPTED}


def run_interruptibly(verb: Callable[[], Awaitable[int]], codes: Mapping[int, int] = _INTERRUPTED) -> int:
    """Run a verb under trio until it ends or a signal stops it.

    Args:
        verb: gives the exit code; is cancelled by SIGINT, SIGTERM and SIGHUP.
        codes: maps signal number -> exit code after a clean stop.

    Returns:
        The verb's exit code, or that of the first signal.
    """
    heard = dict(codes)
    # A closed terminal is an interruption, unless somebody said that it is none (nohup).
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.setdefault(signal.SIGHUP, codes[signal.SIGTERM])
    return trio.run(_run, verb, heard)


class _Stop:
    """The scope around a verb, and the signal that cancelled it."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        # Number of the first signal; None until one came.
        self.signal: int | None = None


async def _run(verb: Callable[[], Awaitable[int]], codes: Mapping[int, int]) -> int:
    stop = _Stop()
    code = exits.OK
    with trio.open_signal_receiver(*codes) as arrivals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_signals, arrivals, stop)
            with stop.scope:
                code = await verb()
            nursery.cancel_scope.cancel()
    return code if stop.signal is None else codes[stop.signal]


async def _read_signals(arrivals: AsyncIterator[int], stop: _Stop) -> None:
    async for number in arrivals:
        if stop.signal is None:
            stop.signal = number
            output.note(f"{signal.Signals(number).name}: stopping (again to hurry)")
            stop.scope.cancel()
        else:
            output.note(f"{signal.Signals(number).name}: hurrying")
            hurry()


def hurry() -> None:
    """Kill what our children lead: each descendant that heads a process group takes the group with it."""
    for process in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if process.group == process.pid:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                os.kill(process.pid, signal.SIGKILL)
