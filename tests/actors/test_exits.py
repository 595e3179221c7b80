"""Which one of the errors that end a life together is the cause, and what kind of end that makes."""

from __future__ import annotations

import errno
import itertools

import pytest
import trio

from mcp_actors.actors.exits import cause_of, classify
from mcp_actors.actors.restarts import ExitKind
from mcp_actors.errors import (
    ActorGone,
    AuthRequired,
    ConfigError,
    ConnectFailed,
    McpActorsError,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
    TransportClosed,
    UnsupportedRevision,
)

CLOSED = TransportClosed()
BUG, BROKEN, SLOW, FULL = KeyError("x"), TransportBroken(reason="reset"), trio.TooSlowError(), OSError(28, "full")
LOGIN = AuthRequired(reason="HTTP 401")


@pytest.mark.parametrize(
    ("errors", "cause"),
    [
        ([CLOSED], CLOSED),
        ([CLOSED, SLOW], SLOW),
        ([CLOSED, FULL], FULL),
        ([CLOSED, BROKEN, SLOW], BROKEN),
        ([CLOSED, BROKEN, LOGIN], LOGIN),
        ([CLOSED, BROKEN, LOGIN, BUG], BUG),
    ],
)
def test_the_most_telling_error_is_the_cause(errors: list[Exception], cause: McpActorsError) -> None:
    """In any order and nesting; that we closed the wire is told where nothing else was (S419)."""
    for order in itertools.permutations(errors):
        assert cause_of(ExceptionGroup("life", list(order))) is cause
        assert cause_of(ExceptionGroup("life", [order[0], ExceptionGroup("in", list(order))])) is cause


KINDS = [
    (None, ExitKind.NORMAL),
    (TransportClosed(), ExitKind.SHUTDOWN),
    (TransportBroken(reason="x"), ExitKind.CRASH),
    (TransportBroken(reason="x", exit_status=1), ExitKind.CRASH),
    (TransportBroken(reason="x", exit_status=0), ExitKind.NORMAL),
    (ConnectFailed(reason="refused"), ExitKind.CRASH),
    (ConnectFailed(reason="no such command", can_retry=False), ExitKind.REFUSED),
    (AuthRequired(), ExitKind.NEEDS_LOGIN),
    (ConfigError(reason="x"), ExitKind.REFUSED),
    (UnsupportedRevision(offered=["a"]), ExitKind.REFUSED),
    (RpcError(code=-32603, message="x"), ExitKind.REFUSED),
    (RemoteProtocolError(reason="x"), ExitKind.CRASH),
    (ActorGone(actor="x"), ExitKind.CRASH),
    (trio.TooSlowError(), ExitKind.TIMEOUT),
    (ConnectionRefusedError(), ExitKind.CRASH),
    (ZeroDivisionError(), ExitKind.BUG),
]


@pytest.mark.parametrize(("cause", "kind"), KINDS, ids=lambda value: getattr(value, "name", type(value).__name__))
def test_an_end_is_named_by_its_cause(cause: BaseException | None, kind: ExitKind) -> None:
    """Each class of error has one kind of end; what is not weather is a bug."""
    assert classify(cause, was_ready=True).kind is kind


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (ConnectFailed(reason="cannot reach http://host"), "unreachable"),
        (ConnectFailed(reason="answered 503", http_status=503), "http"),
        (ConnectFailed(reason="headersHelper failed", code="headers-helper"), "headers-helper"),
        (ConnectFailed(reason="no such command", can_retry=False), "refused"),
        (TransportBroken(reason="exited", exit_status=1), "exit"),
        (TransportBroken(reason="the stream ended"), "crash"),
        (trio.TooSlowError(), "timeout"),
    ],
)
def test_a_reason_code_says_what_a_person_can_look_at(cause: BaseException, reason: str) -> None:
    """What never came up has not crashed: it is unreachable, or answered something else."""
    assert classify(cause).reason == reason


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_machine_that_ran_out_is_no_fault_of_the_server(number: int) -> None:
    """Fault 98: the connect fails with the cause and is tried again, whatever the restart type."""
    error = ConnectFailed(reason="could not start")
    error.__cause__ = OSError(number, "out of it")

    assert classify(error).kind is ExitKind.EXHAUSTED
    assert classify(ConnectFailed(reason="refused")).kind is ExitKind.CRASH


def test_a_machine_that_ran_out_is_recognised_behind_a_library_s_errors() -> None:
    """Fault 98: some are raised in place of another without a cause, and several addresses fail as a group."""
    inner = ValueError("of a library")
    inner.__context__ = ExceptionGroup("all addresses", [OSError(errno.EMFILE, "Too many open files")])
    outer = ConnectFailed(reason="cannot reach it")
    outer.__cause__ = inner
    other = ConnectFailed(reason="cannot reach it")
    other.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    assert classify(outer).kind is ExitKind.EXHAUSTED
    assert classify(other).kind is ExitKind.CRASH


def test_exit_status_zero_before_ready_is_a_crash() -> None:
    """A server that ends in order without having shaken hands has not served (fault 91, variant)."""
    assert classify(TransportBroken(reason="x", exit_status=0)).kind is ExitKind.CRASH
