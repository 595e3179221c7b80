"""Frames of our own making wait for the wire without harm to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.outgoing import MAX_ANSWERS, MAX_BYTES, MAX_EXCHANGES, MAX_OURS, TIMEOUT, Outgoing
from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.types import Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ANSWER, CANCEL = Frame(b"{}"), Frame(b"{}", method="notifications/cancelled")
INITIALIZE = Frame(b"{}", method="initialize")


@define
class SlowWire:
    """As much of a transport as is used: takes a frame in so many seconds."""

    seconds: float = 0.0
    is_exchange: bool = True
    is_eager: bool = False
    sent: list[Frame] = field(factory=list)

    async def send(self, frame: Frame) -> None:
        await trio.sleep(self.seconds)
        self.sent.append(frame)


@define
class Hanging(SlowWire):
    """Frames of one method hang, or fail with `error`; by default answers, which have none."""

    error: TransportBroken | None = None
    hanging: int = 0
    hangs_for: str | None = None

    async def send(self, frame: Frame) -> None:
        if frame.method != self.hangs_for:
            await super().send(frame)
            return
        if self.error is not None:
            raise self.error
        self.hanging += 1
        try:
            await trio.sleep_forever()
        finally:
            self.hanging -= 1


@asynccontextmanager
async def outgoing(wire: SlowWire) -> AsyncIterator[Outgoing]:
    async with trio.open_nursery() as nursery:
        waiting = Outgoing(wire, nursery, server="one", bell=Bell())  # type: ignore[arg-type]
        yield waiting
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("frame", "bound", "is_cut"),
    [
        (ANSWER, MAX_ANSWERS, True),
        (CANCEL, MAX_OURS, False),
        (Frame(b"a" * 500_000), MAX_BYTES // 500_000 + 1, True),
        (Frame(b"a" * 500_000, method="notifications/cancelled"), MAX_BYTES // 500_000 + 1, False),
        (Frame(b"a" * MAX_BYTES * 2), 1, True),
    ],
    ids=["answers", "ours", "large answers", "ours, large", "a huge answer"],
)
async def test_only_answers_speak_against_a_peer(frame: Frame, bound: int, is_cut: bool) -> None:
    """Rule 1: a burst within the bound waits; beyond it a peer is cut for answers, and never for frames of ours."""
    other = CANCEL if is_cut else ANSWER

    async with outgoing(SlowWire()) as waiting:
        assert all(waiting.post(frame) for _ in range(bound))
        assert waiting.post(frame) is not is_cut
        assert waiting.post(other)


async def test_what_has_gone_out_weighs_nothing() -> None:
    """A peer that reads what it asks for may ask for as much as it likes."""
    wire = SlowWire(is_exchange=False)

    async with outgoing(wire) as waiting:
        for _ in range(3):
            assert waiting.post(Frame(b"a" * MAX_BYTES))
            await wait_all_tasks_blocked()


@pytest.mark.parametrize(("is_handshake", "arrives"), [(True, True), (False, False)])
@pytest.mark.deadline(1000)
async def test_a_handshake_has_the_deadline_of_the_connect_only(
    is_handshake: bool, arrives: bool, autojump_clock: object
) -> None:
    """Rule 2, fault 89: a server may take a minute for `initialize` over HTTP; later frames may not."""
    wire = SlowWire(seconds=60)

    async with outgoing(wire) as waiting:
        waiting.post(CANCEL, is_handshake=is_handshake)
        before = waiting.unsent
        await trio.sleep(100)
        after = waiting.unsent

    assert (before, after) == (int(is_handshake), 0)
    assert (wire.sent == [CANCEL]) is arrives


@pytest.mark.deadline(1000)
async def test_hanging_answers_hold_up_no_cancel(autojump_clock: object) -> None:
    """Rule 3: over exchanges a cancel goes out at once, however many answers hang; these are bounded in number."""
    wire = Hanging()

    async with outgoing(wire) as waiting:
        for _ in range(MAX_EXCHANGES + 5):
            waiting.post(ANSWER)
        waiting.post(CANCEL)
        await wait_all_tasks_blocked()
        at_once = (wire.hanging, wire.sent)
        await trio.sleep(TIMEOUT + 1)
        later = wire.hanging

    assert at_once == (MAX_EXCHANGES, [CANCEL])
    assert later == 5


@pytest.mark.deadline(1000)
async def test_an_answer_that_fails_is_not_the_end_of_a_handshake(autojump_clock: object) -> None:
    """What is left of the session before neither ends the next handshake nor is waited for."""
    wire = Hanging(error=TransportBroken(reason="reset"))

    async with outgoing(wire) as waiting:
        waiting.post(ANSWER)
        await wait_all_tasks_blocked()
        assert waiting.unsent == 0

    assert wire.sent == []


@pytest.mark.deadline(1000)
async def test_cancels_hold_up_no_handshake_and_are_not_the_end_of_one(autojump_clock: object) -> None:
    """Rule 3, S205: what is withdrawn while a session is renewed may hang or fail; the renewal does not notice."""
    wire = Hanging(hangs_for="notifications/cancelled")

    async with outgoing(wire) as waiting:
        for _ in range(MAX_EXCHANGES + 5):
            waiting.post(CANCEL)
        waiting.post(INITIALIZE, is_handshake=True)
        await wait_all_tasks_blocked()
        at_once = (wire.sent, waiting.unsent)
        wire.error = TransportBroken(reason="reset")
        waiting.post(CANCEL)
        await trio.sleep(TIMEOUT + 1)

    assert at_once == ([INITIALIZE], 0)
    assert wire.sent == [INITIALIZE]


@pytest.mark.deadline(1000)
async def test_a_stream_takes_all_in_order(autojump_clock: object) -> None:
    """Rule 3: on a message stream answers and cancels go out in the order they were made."""
    wire = SlowWire(seconds=1, is_exchange=False)
    frames = [ANSWER, CANCEL, ANSWER, ANSWER, CANCEL]

    async with outgoing(wire) as waiting:
        for frame in frames:
            waiting.post(frame)
        await trio.sleep(10)

    assert wire.sent == frames


@pytest.mark.deadline(1000)
async def test_a_handshake_on_a_stream_is_sent_by_whoever_shakes_hands(autojump_clock: object) -> None:
    """Rule 3: it goes out in order with what waits, takes no task, and leaves to one what waits behind it."""
    wire = SlowWire(seconds=1, is_exchange=False)

    async with outgoing(wire) as waiting:
        waiting.post(INITIALIZE, is_handshake=True)
        await trio.sleep(10)
        before = list(wire.sent)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiting.flush)
            await wait_all_tasks_blocked()
            waiting.post(ANSWER)
            waiting.post(INITIALIZE, is_handshake=True)
            waiting.post(CANCEL)
        flushed = (list(wire.sent), waiting.unsent)
        is_more = await waiting.flush()
        await trio.sleep(10)

    assert before == []
    assert flushed == ([INITIALIZE, ANSWER, INITIALIZE], 0)
    assert not is_more
    assert wire.sent == [INITIALIZE, ANSWER, INITIALIZE, CANCEL]


async def test_a_frame_posted_after_the_end_is_dropped() -> None:
    """Who withdraws a call after the wire ended is not held responsible for that."""
    wire = SlowWire()

    async with outgoing(wire) as waiting:
        waiting.close()
    assert waiting.post(CANCEL)
    assert wire.sent == []
