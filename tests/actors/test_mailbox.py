"""The mailbox keeps its laws: whoever asks is answered or told that nobody will."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import trio
from attrs import frozen
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.mailbox import Ask, Mailbox
from mcp_actors.errors import ActorGone, LocalProtocolError, MailboxFull


@frozen
class Double(Ask[int]):
    number: int


@frozen
class Note:
    text: str


async def doubler(mailbox: Mailbox[Double]) -> None:
    with mailbox:
        while True:
            envelope = await mailbox.receive()
            with envelope:
                await trio.lowlevel.checkpoint()
                envelope.resolve(envelope.message.number * 2)


async def test_ask_is_answered(autojump_clock: object) -> None:
    """An ask returns what the actor resolves it with."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(doubler, mailbox)
        answer = await mailbox.ref.ask(Double(21))
        nursery.cancel_scope.cancel()

    assert answer == 42


def test_a_mailbox_needs_a_bound() -> None:
    """Law 1: there is no default size."""
    with pytest.raises(TypeError):
        Mailbox("actor")  # type: ignore[call-arg]


async def test_tell_nowait_to_a_full_mailbox_raises(autojump_clock: object) -> None:
    """Law 1: what does not fit is refused with the actor's name and its size."""
    mailbox: Mailbox[Note] = Mailbox("noter", size=1)
    mailbox.ref.tell_nowait(Note("a"))

    with pytest.raises(MailboxFull) as caught:
        mailbox.ref.tell_nowait(Note("b"))

    assert (caught.value.actor, caught.value.size) == ("noter", 1)


async def test_a_reply_is_resolved_once(autojump_clock: object) -> None:
    """Law 3: a second answer is a bug of the actor and changes nothing."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=1)

    async def ask() -> None:
        assert await mailbox.ref.ask(Double(1)) == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        envelope = await mailbox.receive()
        envelope.resolve(1)
        with pytest.raises(LocalProtocolError):
            envelope.resolve(2)


@pytest.mark.parametrize(
    "failure", [ValueError("boom"), ExceptionGroup("g", [KeyError("x")]), ActorGone(actor="other")]
)
@pytest.mark.parametrize("is_answered", [False, True])
async def test_an_error_is_its_askers_and_nobody_elses(
    failure: Exception, is_answered: bool, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Law 3: what handling an ask raises reaches its asker, unless that was answered; a bug is loud, weather is not."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=1)

    async def ask() -> None:
        with nullcontext() if is_answered else pytest.raises(type(failure)) as caught:
            await mailbox.ref.ask(Double(1))
        assert is_answered or caught.value is failure

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        with await mailbox.receive() as envelope:
            if is_answered:
                envelope.resolve(2)
            raise failure

    assert ("failed at Double" in caplog.text) is not isinstance(failure, ActorGone)


async def test_a_cancelled_handler_leaves_its_asker_with_the_end_of_the_actor(autojump_clock: object) -> None:
    """Law 3: a cancellation is nobody's answer, and goes on."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=1)

    async def ask() -> None:
        with pytest.raises(ActorGone):
            await mailbox.ref.ask(Double(1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        with trio.CancelScope() as scope, await mailbox.receive():
            scope.cancel()
            await trio.sleep_forever()

    assert scope.cancelled_caught


async def test_an_error_of_a_tell_is_the_actors() -> None:
    """Law 3: where nobody asks, nobody else can be told."""
    mailbox: Mailbox[int] = Mailbox("one", size=1)
    mailbox.ref.tell_nowait(1)

    with pytest.raises(ValueError, match="boom"), await mailbox.receive():
        raise ValueError("boom")


@pytest.mark.parametrize("size", [0, 1, 3])
async def test_exit_fails_buffered_and_blocked_asks(size: int, autojump_clock: object) -> None:
    """Law 4: on exit every ask fails, buffered or still blocked on a full mailbox, and later ones too."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=size)
    failed: list[int] = []

    async def ask(number: int) -> None:
        with pytest.raises(ActorGone):
            await mailbox.ref.ask(Double(number))
        failed.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
        await wait_all_tasks_blocked()
        with mailbox:
            pass
    with pytest.raises(ActorGone):
        await mailbox.ref.ask(Double(9))
    with pytest.raises(ActorGone):
        mailbox.ref.tell_nowait(Double(9))

    assert sorted(failed) == [0, 1, 2, 3, 4]


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope when a task named `name` is about to run for the n-th time."""

    def __init__(self, name: str, step: int, scope: trio.CancelScope) -> None:
        self.name, self.left, self.scope = name, step, scope

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.name in task.name:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


@pytest.mark.parametrize("step", range(1, 16))
async def test_cancel_sweep_leaves_no_asker_waiting(step: int, autojump_clock: object) -> None:
    """An actor cancelled at any of its steps leaves each of four askers with an answer or `ActorGone`."""
    mailbox: Mailbox[Double] = Mailbox("doubler", size=2)
    outcomes: list[object] = []
    scope = trio.CancelScope()
    instrument = CancelAtStep("victim", step, scope)

    async def victim() -> None:
        with scope:
            await doubler(mailbox)

    async def ask(number: int) -> None:
        try:
            outcomes.append(await mailbox.ref.ask(Double(number)))
        except ActorGone:
            outcomes.append("gone")

    trio.lowlevel.add_instrument(instrument)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(victim)
            async with trio.open_nursery() as askers:
                for number in range(4):
                    askers.start_soon(ask, number)
            scope.cancel()
    finally:
        trio.lowlevel.remove_instrument(instrument)

    assert len(outcomes) == 4
