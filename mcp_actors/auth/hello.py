"""Owns one ``initialize`` request sent without a login, so that a 401 or 403 tells what the server demands.

What this is not: the reading of a demand (`challenge`), nor meeting it (`server_auth`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.auth.challenge import read_demand
from mcp_actors.errors import ConnectFailed, RemoteProtocolError
from mcp_actors.protocol.revisions import LATEST_LEGACY
from mcp_actors.protocol.session_settings import SessionSettings

if TYPE_CHECKING:
    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.fetcher import Exchange
    from mcp_actors.config.specs import RemoteTarget

__all__ = ["ask_demand"]

# Seconds that a server may take to say that it wants a login.
HELLO_SECONDS: Final = 30.0
MAX_ANSWER_BYTES: Final = 64 * 1024


async def ask_demand(exchange: Exchange, target: RemoteTarget) -> Demand | None:
    """Ask a server what it demands, as if to open a session; None: it demands nothing.

    Raises:
        ConnectFailed: it did not answer, or not in time.

    Cancellation:
        Safe.
    """
    hello = SessionSettings().compose_initialize(1, LATEST_LEGACY)
    headers = [
        *((name, value) for name, value in target.headers.items()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ]
    with trio.move_on_after(HELLO_SECONDS) as scope:
        try:
            status, kept, _ = await exchange(
                "POST", target.url, headers, hello.data, address=None, max_bytes=MAX_ANSWER_BYTES
            )
        except RemoteProtocolError:
            return None
    if scope.cancelled_caught:
        raise ConnectFailed(reason="the server did not answer in time")
    challenge = kept.get("www-authenticate")
    return read_demand(status, [challenge] if challenge else []) if status in (401, 403) else None
