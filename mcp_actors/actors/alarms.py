"""Owns the one clock that all connections of a runtime are woken by.

What this is not: a deadline. Whoever has some keeps them, asks to be woken for the first, and looks when it is.

Rules.

1. One task for all, however many they are, and one moment for each: who is woken says when to wake it next. A later
   moment than the one that it is woken at anyway is kept by whoever has it, and costs nothing here.
2. What is done when the moment has come is done elsewhere, in the task of whoever is woken: its failure is its own.
"""

from __future__ import annotations

from typing import Protocol

import trio

from mcp_actors.actors.agenda import Agenda

__all__ = ["Alarms", "Sleeper"]


class Sleeper(Protocol):
    """Who wants to be woken at some moment."""

    def wake(self, now: float) -> None:
        """Learn that the moment has come. Must not block or raise."""


class Alarms:
    """Wakes each who asked for it, once, at its moment on trio's clock. `run` is its task."""

    def __init__(self) -> None:
        # Who is to be woken, and when.
        self._agenda: Agenda[Sleeper] = Agenda()
        # Ends when the first of them has come.
        self._sleep = trio.CancelScope()

    def set(self, sleeper: Sleeper, moment: float) -> None:
        """Wake it then, and not when it wanted before."""
        self._agenda.set(sleeper, moment)
        if moment < self._sleep.deadline:
            self._sleep.deadline = moment

    def drop(self, sleeper: Sleeper) -> None:
        """Wake it no more."""
        self._agenda.drop(sleeper)

    async def run(self) -> None:
        """Wake whoever asked for it. Runs until cancelled."""
        while True:
            with trio.CancelScope(deadline=self._agenda.first) as self._sleep:
                await trio.sleep_forever()
            now = trio.current_time()
            for sleeper in self._agenda.take(now):
                sleeper.wake(now)
