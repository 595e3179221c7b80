"""Owns the decision whether what failed is tried again by itself, and when.

What this is not: restarts of a server and its first connects (`actors.restarts`, S119), nor the second try after a lost
session or a version error, which `outcomes` grants because the request certainly did not run.

Rules.
Rule 1: what certainly did not run may be sent again: it did not arrive, or was turned away with 429, or with 503 and a
time to come back (fault 46). A 502 is surfaced: the call may have run.
Rule 2: what may have run is sent again only where that does no harm, by the table of methods or by the annotations of
the tool, and where the caller allows it (B19). Annotations are claims of the server, so the caller's word is needed.
Rule 3: ``Retry-After`` is obeyed within bounds: longer than the bound or than the call may last is no retry at all.
Rule 4: refused credentials are never tried again blindly (S413).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import ConnectFailed, RpcError, TransportBroken, TransportError
from mcp_actors.protocol.features import METHODS

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import JsonObject

__all__ = ["decide_call", "may_repeat"]

# One call and its repetitions.
MAX_CALL_TRIES: Final = 3
# The longest pause that a server can ask for (fault 46).
MAX_RETRY_AFTER: Final = 60.0
FIRST_BACKOFF: Final = 0.25
MAX_BACKOFF: Final = 30.0
# Pauses grow by up to so much, by chance, so that callers who failed together do not come back together.
_JITTER: Final = 0.25

TOO_MANY_REQUESTS: Final = 429
UNAVAILABLE: Final = 503


def may_repeat(method: str, claims: JsonObject | None = None) -> bool:
    """Whether a request that may have run may run again.

    Args:
        claims: annotations of the tool, for tools/call, where the caller allows that this call is repeated; else None.

    Source:
        B19, spec_client 5.2; MCP 2026-07-28, `ToolAnnotations`.
    """
    row = METHODS.get(method)
    if row is not None and row.is_safe:
        return True
    if method != "tools/call" or not claims:
        return False
    return claims.get("readOnlyHint") is True or claims.get("idempotentHint") is True


def decide_call(
    error: McpActorsError, *, tries: int, is_repeatable: bool, remaining: float = math.inf, chance: float = 0.0
) -> float | None:
    """Decide whether a request that failed is tried again.

    Args:
        error: what it failed with.
        tries: how often it was tried, this time included.
        is_repeatable: see `may_repeat`.
        remaining: seconds that the call may still last.
        chance: a random number from 0 to 1.

    Returns:
        Seconds until it is; None: the error is handed on.
    """
    if tries >= MAX_CALL_TRIES:
        return None
    status = error.http_status if isinstance(error, TransportError | RpcError) else None
    asked = error.retry_after if isinstance(error, TransportError) else None
    if status == TOO_MANY_REQUESTS or (status == UNAVAILABLE and asked is not None):
        return _pause(asked, tries, remaining, chance)
    if isinstance(error, ConnectFailed) and error.can_retry and status is None:
        return _pause(asked, tries, remaining, chance)
    if isinstance(error, TransportBroken) and error.can_retry and is_repeatable:
        return _pause(asked, tries, remaining, chance)
    return None  # it may have run, or another try would end the same way


def _pause(asked: float | None, tries: int, remaining: float, chance: float) -> float | None:
    """Wait as asked, else a backoff; give up where that is too long."""
    backoff = min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** (tries - 1)) * (1 + _JITTER * chance)
    after = max(0.0, backoff if asked is None else asked)
    return after if after <= MAX_RETRY_AFTER and after < remaining else None
