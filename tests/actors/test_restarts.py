"""What follows a death is decided by tables: kind of end, restart type, history."""

from __future__ import annotations

import itertools

import pytest
import trio

from mcp_actors.actors.exits import classify
from mcp_actors.actors.restarts import (
    Exit,
    ExitKind,
    History,
    Leave,
    Park,
    RestartAfter,
    decide,
    may_start,
)
from mcp_actors.config.specs import RestartPolicy, RestartType
from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    TransportBroken,
    TransportClosed,
)

_FAILURES = {ExitKind.CRASH, ExitKind.TIMEOUT, ExitKind.EXHAUSTED, ExitKind.BUG}
_RESTARTS: dict[RestartType, set[ExitKind]] = {
    RestartType.PERMANENT: {ExitKind.NORMAL, *_FAILURES},
    RestartType.TRANSIENT: _FAILURES,
    RestartType.TEMPORARY: {ExitKind.EXHAUSTED},
}


@pytest.mark.parametrize("restart", RestartType)
@pytest.mark.parametrize("kind", ExitKind)
def test_restart_type_decides_which_ends_are_restarted(restart: RestartType, kind: ExitKind) -> None:
    """Permanent restarts every end of its own, transient only failures, temporary none; refusals never (S117)."""
    end = Exit(kind)

    decision = decide(end, History().ended(end), restart, RestartPolicy(), now=0.0)

    assert isinstance(decision, RestartAfter) is (kind in _RESTARTS[restart])


@pytest.mark.parametrize(
    ("cause", "was_ready", "tries", "delay"),
    [
        (TransportBroken(reason="x", http_status=502), False, 1, 1.0),
        (TransportBroken(reason="x", http_status=502), False, 3, 4.0),
        (TransportBroken(reason="x", http_status=429, retry_after=2.0), False, 1, 2.0),
        (TransportBroken(reason="x", http_status=503, retry_after=10.0), False, 1, 10.0),
        # Too often, too long for who waits, not its own word, not a first connect, nothing that passes.
        (TransportBroken(reason="x", http_status=502), False, 4, None),
        (TransportBroken(reason="x", http_status=503, retry_after=10.5), False, 1, None),
        (ConnectFailed(reason="Connection refused"), False, 1, None),
        (TransportBroken(reason="x", http_status=502), True, 1, None),
        (TransportBroken(reason="x", http_status=404, can_retry=False), False, 1, None),
        (trio.TooSlowError(), False, 1, None),
    ],
)
def test_a_server_that_cannot_serve_just_now_is_tried_again(cause, was_ready, tries, delay) -> None:
    """Also one that is left as it ends is tried three times more while it says that this passes (S119, fault 46)."""
    end = classify(cause, was_ready=was_ready)

    decision = decide(end, History(tries=tries), RestartType.TEMPORARY, RestartPolicy(), now=0.0)

    assert decision == (Leave() if delay is None else RestartAfter(delay))


def _flap(policy: RestartPolicy, *, is_proven: bool, life: float) -> tuple[list[float], object]:
    """Starts of a permanent server that dies `life` seconds after each start, until it is parked."""
    now, history, starts = 0.0, History(), []
    while True:
        starts.append(now)
        history = history.started(now, policy.period)
        now += life
        end = Exit(ExitKind.CRASH, was_ready=True, was_proven=is_proven)
        history = history.ended(end)
        decision = decide(end, history, RestartType.PERMANENT, policy, now=now)
        if not isinstance(decision, RestartAfter):
            return starts, decision
        now += decision.delay
        if len(starts) > 100:
            return starts, decision


def test_backoff_doubles_and_the_fifth_failed_retry_parks() -> None:
    """An unreachable server is tried again after 1, 2, 4, 8 and 16 seconds, then parked (S116, S119)."""
    starts, decision = _flap(RestartPolicy(), is_proven=False, life=0.0)

    assert starts == [0, 1, 3, 7, 15, 31]
    assert decision == Park("gave-up")


def test_backoff_stops_at_its_cap() -> None:
    """The delay never exceeds `backoff_max` (S116)."""
    policy = RestartPolicy(max_tries=8, intensity=100)

    starts, decision = _flap(policy, is_proven=False, life=0.0)

    assert [b - a for a, b in itertools.pairwise(starts)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert decision == Park("gave-up")


@pytest.mark.parametrize("tries", [1, 5, 1025, 1_000_000])
@pytest.mark.parametrize("factor", [1, 1.01, 2, 2.0, 10.0])
def test_a_server_may_fail_for_years(factor: float, tries: int) -> None:
    """An entry that allows any number of tries backs off to its cap and stays there, however often it fails (S116)."""
    policy = RestartPolicy(max_tries=10**9, intensity=10**9, backoff_factor=factor)
    history = History(tries=tries)

    decision = decide(Exit(ExitKind.CRASH), history, RestartType.PERMANENT, policy, now=0.0)

    assert isinstance(decision, RestartAfter)
    assert policy.backoff_first <= decision.delay <= policy.backoff_max
    assert decision.delay == (policy.backoff_max if tries > 1000 and factor > 1 else decision.delay)


def test_a_server_that_works_a_moment_and_dies_is_still_bounded() -> None:
    """Rule 1: proof of health resets the backoff, not the intensity: ten starts a minute, then parked (fault 91)."""
    starts, decision = _flap(RestartPolicy(), is_proven=True, life=0.5)

    assert len(starts) == 10
    assert decision == Park("crash-loop")


def test_a_server_that_lives_long_is_always_restarted() -> None:
    """Lives longer than the period never add up."""
    _starts, decision = _flap(RestartPolicy(), is_proven=True, life=70.0)

    assert isinstance(decision, RestartAfter)
    assert decision.delay == 1.0


def test_jitter_scales_the_delay_only_where_asked() -> None:
    """Chance is an argument: with jitter the delay is chance times backoff, without it the backoff (S116)."""
    end = Exit(ExitKind.CRASH)
    history = History().ended(end)

    plain = decide(end, history, RestartType.PERMANENT, RestartPolicy(), now=0.0, chance=0.25)
    spread = decide(end, history, RestartType.PERMANENT, RestartPolicy(has_jitter=True), now=0.0, chance=0.25)

    assert (plain, spread) == (RestartAfter(1.0), RestartAfter(0.25))


def test_parked_servers_are_probed_only_where_asked() -> None:
    """`park_probe` is carried by the decision (S118)."""
    policy = RestartPolicy(intensity=1, park_probe=300.0)
    end = Exit(ExitKind.CRASH)
    history = History().started(0.0, policy.period).ended(end)

    assert decide(end, history, RestartType.PERMANENT, policy, now=1.0) == Park("crash-loop", 300.0)


def test_starts_leave_the_window() -> None:
    """A start counts for `period` seconds (rule 1)."""
    policy = RestartPolicy(intensity=1, period=60.0)
    history = History().started(0.0, policy.period)

    assert [may_start(history, policy, now) for now in (59.9, 60.0)] == [False, True]


def test_our_own_stop_is_no_failure() -> None:
    """S142: what we ended leaves no trace in the history, and asks for nothing."""
    end = classify(TransportClosed(), was_ready=True)

    assert History().ended(end) == History()
    assert decide(end, History(), RestartType.PERMANENT, RestartPolicy(), now=0.0) == Leave()


REASONS = [
    (TransportBroken(reason="x", exit_status=3), "exit"),
    (ConnectFailed(reason="x", http_status=502), "http"),
    (ConnectFailed(reason="x", can_retry=False), "refused"),
    (trio.TooSlowError(), "timeout"),
    (AuthRequired(), "needs-auth"),
    (ZeroDivisionError(), "bug"),
]


@pytest.mark.parametrize(("cause", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_every_end_has_a_reason_code(cause: BaseException, reason: str) -> None:
    """Invariant 7: a state has a reason."""
    assert classify(cause).reason == reason


@pytest.mark.parametrize(("asked", "delay"), [(None, 1.0), (0.0, 1.0), (7.0, 7.0), (86400.0, 60.0)])
def test_a_server_that_asks_for_a_pause_gets_it_within_bounds(asked: float | None, delay: float) -> None:
    """Fault 46: Retry-After lengthens the backoff, up to a minute, and never shortens it."""
    end = classify(ConnectFailed(reason="HTTP 503", http_status=503, retry_after=asked))

    decision = decide(end, History().ended(end), RestartType.PERMANENT, RestartPolicy(), now=0.0)

    assert decision == RestartAfter(delay)
