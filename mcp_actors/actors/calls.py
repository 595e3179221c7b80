"""Owns the calls in flight over one session and one wire: their slots, their deadlines, their withdrawal.

What this is not: the connection, which decides when there is a wire; nor the meaning of an answer (`protocol.session`).

A call costs no mailbox hop, no nursery and no cancel scope: the session gives id and frame, the transport takes it in
the caller's own task, the caller waits on its `Slot`, and the transport's reader fills that. The deadlines are looked
at when the runtime's `Alarms` say so; a call whose deadline is later than the next look costs one comparison. On
transports whose `send` is the whole exchange, or has to wait for room, that runs in a task of the connection: the
caller is reached by progress and by its deadline, and the end of `send` can be cut without the caller's.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.agenda import Agenda
from mcp_actors.actors.slots import SendAgain, Slot
from mcp_actors.errors import McpActorsError
from mcp_actors.protocol.clocks import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_actors.actors.alarms import Alarms
    from mcp_actors.actors.slots import OpenSlot, Request
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.budget import Budget
    from mcp_actors.protocol.clocks import CallClocks
    from mcp_actors.protocol.session import Session
    from mcp_actors.protocol.types import Frame, RequestId
    from mcp_actors.transports.base import Transport

__all__ = ["Calls"]

# How many of the peer's faults an error about silence tells: enough to see a pattern.
SHOWN_FAULTS: Final = 3


class Calls:
    """The calls in flight; `ask` is called by many."""

    def __init__(
        self,
        session: Session[Slot],
        transport: Transport,
        nursery: trio.Nursery,
        alarms: Alarms,
        *,
        post: Callable[[Frame], None],
        react: Callable[[], None],
    ) -> None:
        self._session = session
        self._transport = transport
        # Where exchanges and full wires are waited for, and looks at deadlines.
        self._nursery = nursery
        self._alarms = alarms
        # Does what the session wants after it was told something.
        self._react = react
        # Puts a frame of our own making on the wire without waiting.
        self._post = post
        # Waiting callers by request id; the session knows them too, this is for deadlines and exchanges.
        self._slots: dict[RequestId, Slot] = {}
        # When each of them is looked at. The newest are not in it before the next look; most calls are over by then.
        self._agenda: Agenda[RequestId] = Agenda()
        # When deadlines are looked at next: no later than the first of them.
        self._looks_at = math.inf
        # Why there will be no answers any more; None while there may be.
        self._error: McpActorsError | None = None
        # What the peer did wrong lately, oldest first, and when: a silence may be an answer that nobody could match.
        self._faults: tuple[tuple[float, str], ...] = ()
        # Budgets of calls that are between two exchanges, and of a renewal, and what ends with them.
        self._rests: dict[Budget, trio.CancelScope] = {}
        # Calls that wait at the gate -> what ends that wait.
        self._gated: dict[Slot, trio.CancelScope] = {}
        # What each pause in progress has stopped.
        self._pauses: list[list[CallClocks | Budget]] = []
        # Where new requests wait while a wire session is renewed; None while none is.
        self._gate: trio.Event | None = None

    def __len__(self) -> int:
        return len(self._slots)

    async def ask(self, request: Request) -> bytes:
        """Send one request and wait for its answer. See `Connection.request`."""
        slot = Slot(trio.current_time(), request.timeouts, request.budget)
        try:
            return await self._ask_once(request, slot, is_resend=False)
        except SendAgain:
            again = Slot(slot.begun_at, request.timeouts, request.budget)
            return await self._ask_once(request, again, is_resend=True)

    async def _ask_once(self, request: Request, slot: Slot, *, is_resend: bool) -> bytes:
        while self._gate is not None:
            for stopped in self._pauses:  # it came while a person is asked, and waits for the same
                slot.clocks.pause(trio.current_time())
                stopped.append(slot.clocks)
            with trio.CancelScope(deadline=slot.clocks.next_deadline) as scope:
                self._gated[slot] = scope
                try:
                    await self._gate.wait()
                finally:
                    del self._gated[slot]
            clock = slot.clocks.expired(trio.current_time())
            if clock is not None:
                raise trio.TooSlowError(f"the {clock} clock ran out: the server's session was being renewed")
            slot.deadline = min(slot.deadline, slot.budget.deadline)
        if self._error is not None:
            raise evolve(self._error)
        on_progress = request.on_progress
        frame = self._session.request(
            request.method,
            request.params,
            slot,
            wants_progress=on_progress is not None,
            is_resend=is_resend,
            headers=request.headers,
        )
        request_id = frame.request_id
        assert request_id is not None
        self._slots[request_id] = slot
        self.watch_for(slot.deadline)
        try:
            if self._transport.is_exchange or self._transport.is_full:
                self._nursery.start_soon(self._run_exchange, frame, slot)
            else:
                await self._transport.send(frame)
                self._note_sent(request_id, slot)
            return await slot.wait(on_progress)
        finally:
            del self._slots[request_id]
            self._agenda.drop(request_id)
            if slot.is_open:
                self._withdraw(request_id, slot, "cancelled by the caller")

    async def begin(self, method: str, params: JsonObject, slot: OpenSlot, *, is_resend: bool = False) -> None:
        """Send a request that stays open, without a deadline; nobody waits for its end, which the slot tells.

        For modern servers: their wire session is never renewed.

        Raises:
            McpActorsError: it could not be sent; the slot may have been told so.

        Cancellation:
            Safe. Whoever gives up on it withdraws it, or ends the wire.
        """
        if self._error is not None:
            raise evolve(self._error)
        frame = self._session.request(method, params, slot, is_resend=is_resend)
        slot.request_id = frame.request_id
        if self._transport.is_exchange:
            self._nursery.start_soon(self._run_exchange, frame, slot)
        else:
            await self._transport.send(frame)
            slot.sent(trio.current_time())

    def withdraw(self, slot: OpenSlot) -> None:
        """Give up on what was begun; the slot is not told."""
        if slot.request_id is not None:
            self._withdraw(slot.request_id, slot, "cancelled by the caller")

    def hold(self) -> None:
        """Let new requests wait: a wire session is being renewed."""
        if self._gate is None:
            self._gate = trio.Event()

    def release(self) -> None:
        """Let those that wait go on."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.set()

    async def _run_exchange(self, frame: Frame, slot: Slot) -> None:
        with trio.CancelScope() as slot.exchange:
            if frame.request_id is None or not self._session.is_waiting(frame.request_id):
                return  # failed or withdrawn before it began
            if self._transport.is_exchange:
                self._note_sent(frame.request_id, slot)
            try:
                await self._transport.send(frame)
            except McpActorsError as error:
                slot.fail(error)
                return
            if slot.sent_at is None:
                self._note_sent(frame.request_id, slot)

    def _note_sent(self, request_id: RequestId, slot: Slot) -> None:
        """Learn that the transport has it: only now the server can be slow."""
        slot.sent(trio.current_time())
        if request_id in self._agenda:  # it was looked at while it waited for room
            self._move(request_id, slot)

    def watch_for(self, deadline: float | None) -> None:
        """Look at the deadlines no later than this."""
        if deadline is not None and deadline < self._looks_at and self._error is None:
            self._looks_at = deadline
            self._alarms.set(self, deadline)

    def _first_deadline(self) -> float:
        for request_id, slot in reversed(self._slots.items()):
            if request_id in self._agenda:  # so are those that came before it
                break
            self._agenda.set(request_id, slot.deadline)
        handshake = self._session.next_deadline
        return self._agenda.first if handshake is None else min(self._agenda.first, handshake)

    def wake(self, now: float) -> None:
        """Look at the deadlines: the first that was watched for has come. What it was for may be over long since."""
        if self._first_deadline() <= now:
            self._nursery.start_soon(self._look)
        else:
            self._watch()

    def _watch(self) -> None:
        self._looks_at = math.inf
        self.watch_for(self._first_deadline())

    async def _look(self) -> None:
        """Fail each call at its deadline and tell the server; tell the session of its own."""
        now = trio.current_time()
        self._session.receive_timeout(now)
        self._react()
        for request_id in self._agenda.take(now):
            self._look_at(request_id, self._slots[request_id], now)
        self._watch()

    def _look_at(self, request_id: RequestId, slot: Slot, now: float) -> None:
        """Fail the call if one of its clocks has run out; else look again when the next one may."""
        clock = slot.clocks.expired(now)
        if clock is None:
            self._move(request_id, slot)
            return
        # Not looked at again: its caller may be busy with progress for a while before it takes the slot away.
        slot.deadline = math.inf
        text = f"the {clock} clock ran out after {slot.clocks.timeout_of(clock):g} s"
        slot.fail(trio.TooSlowError("; meanwhile ".join((text, *self.faults_since(slot.begun_at)))))
        self._withdraw(request_id, slot, f"the {clock} clock ran out")

    def _move(self, request_id: RequestId, slot: Slot) -> None:
        """Look at the call when the next of its clocks may run out."""
        slot.deadline = slot.clocks.next_deadline
        if request_id in self._slots:
            self._agenda.set(request_id, slot.deadline)
            self.watch_for(slot.deadline)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clocks of all calls while the block runs: a person is asked (S202)."""
        waiting = (*self._slots.values(), *self._gated)
        stopped: list[CallClocks | Budget] = [*(slot.clocks for slot in waiting), *self._rests]
        for clock in stopped:
            clock.pause(trio.current_time())
        self._follow_rests()
        self._pauses.append(stopped)
        try:
            yield
        finally:
            self._pauses = [each for each in self._pauses if each is not stopped]
            for clock in stopped:
                clock.resume(trio.current_time())
            self._follow_rests()
            for request_id, slot in self._slots.items():  # of calls that were stopped, perhaps another exchange by now
                self._move(request_id, slot)

    @contextmanager
    def resting(self, budget: Budget) -> Iterator[None]:
        """Hold a call to its budget while it does something else than to wait for an answer.

        Raises:
            trio.TooSlowError: it is spent.
        """
        with trio.CancelScope(deadline=budget.deadline) as scope:
            self._rests[budget] = scope
            try:
                yield
            finally:
                del self._rests[budget]
        if scope.cancelled_caught:
            raise trio.TooSlowError(f"the {Clock.WALL} clock ran out after {budget.timeout:g} s")

    def _follow_rests(self) -> None:
        for budget, scope in self._rests.items():
            scope.deadline = budget.deadline
        for slot, scope in self._gated.items():
            scope.deadline = slot.clocks.next_deadline

    def note_first_byte(self, request_id: RequestId | None) -> None:
        """Learn that the first byte of an answer has come: its clock stops."""
        slot = self._slots.get(request_id) if request_id is not None else None
        if slot is not None:
            slot.clocks.answered(trio.current_time())

    def _withdraw(self, request_id: RequestId, slot: Slot, reason: str) -> None:
        """Tell the session once, which tells the server in the era's form (B17, B18) of what it has seen."""
        if slot.exchange is not None:
            slot.exchange.cancel()
        cancel = self._session.cancel(request_id, reason)
        if cancel is not None and slot.sent_at is not None:
            self._post(cancel)

    def note_fault(self, text: str) -> None:
        """Learn what the peer did wrong and went on."""
        self._faults = (*self._faults, (trio.current_time(), text))[-SHOWN_FAULTS:]

    def faults_since(self, moment: float) -> tuple[str, ...]:
        """The last few things that the peer did wrong since then, each once, oldest first (fault 72)."""
        return tuple(dict.fromkeys(text for at, text in self._faults if at >= moment))

    def fail_all(self, error: McpActorsError) -> None:
        """Fail every call, each with an error of its own: a raised exception collects tracebacks."""
        self._error = error
        self._alarms.drop(self)
        self.release()
        for slot in self._session.abandon():
            slot.fail(evolve(error))
            if slot.exchange is not None:
                slot.exchange.cancel()
