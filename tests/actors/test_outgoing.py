"""Frames of our own making wait for the wire without harm to it."""

from __future__ import annotations

import math

import pytest
import trio
from attrs import define, field

from mcp_actors.actors.outgoing import MAX_ANSWERS, MAX_OURS, Outgoing
from mcp_actors.protocol.types import Frame

ANSWER, CANCEL = Frame(b"{}"), Frame(b"{}", method="notifications/cancelled")


@define
class SlowWire:
    """As much of a transport as is used: takes a frame in so many seconds."""

    seconds: float = 0.0
    is_exchange: bool = True
    sent: list[Frame] = field(factory=list)

    async def send(self, frame: Frame) -> None:
        await trio.sleep(self.seconds)
        self.sent.append(frame)


def outgoing(wire: SlowWire, nursery: trio.Nursery) -> Outgoing:
    return Outgoing(wire, nursery, server="one", on_sent=lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("frame", "bound", "is_cut"), [(ANSWER, MAX_ANSWERS, True), (CANCEL, MAX_OURS, False)], ids=["answers", "ours"]
)
async def test_only_answers_speak_against_a_peer(frame: Frame, bound: int, is_cut: bool) -> None:
    """Rule 1: a burst within the bound waits; beyond it a peer is cut for answers, and never for frames of ours."""
    async with trio.open_nursery() as nursery:
        waiting = outgoing(SlowWire(seconds=math.inf), nursery)

        assert all(waiting.post(frame) for _ in range(bound))
        assert waiting.post(frame) is not is_cut
        assert waiting.unsent == bound
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("is_strict", "arrives"), [(True, True), (False, False)])
@pytest.mark.deadline(1000)
async def test_a_handshake_has_the_deadline_of_the_connect_only(
    is_strict: bool, arrives: bool, autojump_clock: object
) -> None:
    """Rule 2, fault 89: a server may take a minute for `initialize` over HTTP; later frames may not."""
    wire = SlowWire(seconds=60)

    async with trio.open_nursery() as nursery:
        waiting = outgoing(wire, nursery)
        waiting.is_strict = is_strict
        waiting.post(CANCEL)

    assert (wire.sent == [CANCEL], waiting.unsent) == (arrives, 0)
