"""Tests of `groups`."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.errors import ActorGone
from mcp_actors.groups import bare_errors, causes, leaves


def test_leaves_flatten_in_order():
    """Groups in groups come apart in order."""
    one, two, three = ValueError("1"), ValueError("2"), ValueError("3")

    assert list(leaves(ExceptionGroup("a", [ExceptionGroup("b", [one, two]), three]))) == [one, two, three]
    assert list(leaves(one)) == [one]


def test_causes_lie_behind_each_other():
    """A cause goes first, then what a group holds, then what an error was raised beside."""
    root, beside, cause = OSError("root"), KeyError("beside"), ValueError("cause")
    top = RuntimeError("top")
    top.__context__, top.__cause__ = beside, cause
    cause.__context__ = group = ExceptionGroup("g", [root, KeyError("second")])

    assert list(causes(top)) == [top, cause, group, root]
    assert list(causes(None)) == []


def test_causes_come_to_an_end():
    """However long a chain is, or if it bites its tail."""
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one

    assert list(causes(one)) == [one, two] * 5


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_lone_error_comes_out_bare(depth):
    """However deep it is wrapped; its own cause stays, and a traceback shows no group."""
    error: Exception = ValueError("x")
    error.__cause__ = cause = KeyError("y")
    wrapped = error
    for _ in range(depth):
        wrapped = ExceptionGroup("g", [wrapped])

    with pytest.raises(ValueError, match="x") as caught, bare_errors():
        raise wrapped

    assert (caught.value, caught.value.__cause__) == (error, cause)


def test_several_errors_stay_together():
    """None of them is lost."""
    group = ExceptionGroup("g", [ValueError("1"), KeyError("2")])

    with pytest.raises(ExceptionGroup) as caught, bare_errors():
        raise group

    assert caught.value is group


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt("x"), SystemExit("x")], ids=repr)
@pytest.mark.parametrize("beside", [[], [ActorGone(actor="registry")], [ActorGone(actor="a"), ActorGone(actor="b")]])
def test_that_an_actor_is_gone_adds_nothing(error, beside):
    """Whoever asked it while it ended tells a consequence: `except KeyboardInterrupt` sees what was the cause."""
    with pytest.raises(type(error), match="x") as caught, bare_errors():
        raise BaseExceptionGroup("g", [BaseExceptionGroup("h", [*beside, error]), *beside])

    assert caught.value is error


def test_that_an_actor_is_gone_is_told_where_nothing_else_is():
    """Then that is the cause, as far as anybody knows."""
    with pytest.raises(ActorGone), bare_errors():
        raise ExceptionGroup("g", [ActorGone(actor="registry")])


@pytest.mark.parametrize("is_body", [False, True])
async def test_a_nursery_gives_the_error_of_its_body_or_of_a_task(is_body):
    """What the error cancelled on its way adds nothing to it."""

    async def work(is_failing: bool) -> None:
        if is_failing:
            raise ValueError("x")
        await trio.sleep_forever()

    async def use() -> None:
        with bare_errors():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work, not is_body)
                await work(is_body)

    with pytest.raises(ValueError, match="x"):
        await use()


async def test_an_error_that_meets_a_cancellation_comes_out_bare():
    """It takes its place, as it does where there is no nursery."""

    async def fail() -> None:
        with bare_errors():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError("x")

    with trio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(ValueError, match="x"):
            await fail()


async def test_a_cancellation_alone_stays_one():
    """Whoever was cancelled ends in the scope that did it."""
    with trio.CancelScope() as scope, bare_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
            await trio.sleep_forever()

    assert scope.cancelled_caught
