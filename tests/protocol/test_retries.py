"""Tests of what is tried again by itself."""

from __future__ import annotations

import pytest

from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
    TransportClosed,
)
from mcp_actors.protocol.features import METHODS
from mcp_actors.protocol.retries import decide_call, may_repeat

READ_ONLY, IDEMPOTENT = {"readOnlyHint": True}, {"idempotentHint": True}


@pytest.mark.parametrize("claims", [None, {}, READ_ONLY, IDEMPOTENT, {"readOnlyHint": "true"}])
def test_a_tool_is_repeated_by_what_it_claims(claims):
    """The server must claim that it does no harm, and the caller let that count: else there are no claims (B19)."""
    assert may_repeat("tools/call", claims) is (claims in (READ_ONLY, IDEMPOTENT))


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_only_read_are_repeated(method):
    """Whatever the table calls safe may run twice, without leave; nothing unknown may."""
    assert may_repeat(method) is METHODS[method].is_safe
    assert not may_repeat("vendor/x", READ_ONLY)


BUSY = {"reason": "busy", "can_retry": True}


@pytest.mark.parametrize(
    ("error", "once", "repeatable"),
    [
        # It certainly did not run.
        (ConnectFailed(reason="refused"), 0.25, 0.25),
        (TransportBroken(http_status=429, **BUSY), 0.25, 0.25),
        (TransportBroken(http_status=429, retry_after=7.0, **BUSY), 7.0, 7.0),
        (TransportBroken(http_status=429, retry_after=0.0, **BUSY), 0.0, 0.0),
        (TransportBroken(http_status=503, retry_after=2.0, **BUSY), 2.0, 2.0),
        (RpcError(code=-32000, message="slow down", http_status=429), 0.25, 0.25),
        # It may have run.
        (TransportBroken(reason="cut"), None, 0.25),
        (TransportBroken(http_status=502, **BUSY), None, 0.25),
        (TransportBroken(http_status=503, **BUSY), None, 0.25),
        # Nothing helps.
        (TransportBroken(http_status=429, retry_after=3600.0, **BUSY), None, None),
        (TransportBroken(http_status=404, reason="gone", can_retry=False), None, None),
        (ConnectFailed(reason="no such host", can_retry=False), None, None),
        (TransportClosed(), None, None),
        (AuthRequired(http_status=401), None, None),
        (RpcError(code=-32603, message="no"), None, None),
        (RemoteProtocolError(reason="garbage"), None, None),
    ],
)
def test_what_follows_a_failed_call(error, once, repeatable):
    """Turned away: again. Lost: again where that does no harm. Refused: never (fault 46, S413)."""
    for expected, is_repeatable in ((once, False), (repeatable, True)):
        step = decide_call(error, tries=1, is_repeatable=is_repeatable)

        assert step == expected


def test_calls_back_off_and_stop():
    """Three tries in all, each pause twice the one before, up to a quarter longer by chance."""
    error = ConnectFailed(reason="refused")

    steps = [decide_call(error, tries=tries, is_repeatable=False) for tries in (1, 2, 3)]

    assert steps[:2] == [0.25, 0.5]
    assert steps[2] is None
    assert decide_call(error, tries=1, is_repeatable=False, chance=1.0) == 0.3125


def test_no_retry_outlives_its_call():
    """A pause that ends after the call's own deadline is not made (fault 46)."""
    busy = TransportBroken(http_status=429, retry_after=5.0, **BUSY)

    assert decide_call(busy, tries=1, is_repeatable=False, remaining=5.1) == 5.0
    assert decide_call(busy, tries=1, is_repeatable=False, remaining=5.0) is None
