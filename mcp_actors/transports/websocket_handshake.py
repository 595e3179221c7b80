"""Owns what goes along with the handshake of a WebSocket, and what its refusal comes to.

What this is not: making the handshake (`websocket`), or bounding what it brings (`watched_stream`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.errors import AuthRequired, ConnectFailed
from mcp_actors.protocol.refusals import is_outage
from mcp_actors.transports.http_exchange import retry_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_actors.errors import McpActorsError

__all__ = ["HEAD_END", "read_head", "refused", "split_host"]

HEAD_END: Final = b"\r\n\r\n"


def split_host(headers: Iterable[tuple[bytes, bytes]], host: str) -> tuple[str, list[tuple[bytes, bytes]]]:
    """The Host of the handshake, a configured one first, and the headers besides those of the handshake itself."""
    extra: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        key = name.lower()
        if key == b"host":
            host = value.decode()
        elif key != b"upgrade" and not key.startswith(b"sec-websocket-"):
            extra.append((name, value))
    return host, extra


def read_head(data: bytes) -> tuple[int | None, dict[bytes, bytes]]:
    """Status and headers (lower-case name -> value) of an HTTP answer; no status where it is none."""
    first, *lines = data.partition(HEAD_END)[0].split(b"\r\n")
    parts = first.split(b" ")
    if not first.startswith(b"HTTP/1.") or len(parts) < 2 or not parts[1].isdigit() or len(parts[1]) != 3:
        return None, {}
    pairs = (line.partition(b":") for line in lines)
    return int(parts[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def refused(place: str, status: int, headers: Mapping[bytes, bytes], now: float) -> McpActorsError:
    """The error for a handshake that was answered with `status`.

    Args:
        place: where, fit to be shown.
        status: of the answer.
        headers: maps lower-case name -> value.
        now: seconds since the epoch, for a moment to wait for.

    Source:
        S085: only configured headers can help; there is no OAuth here.
    """
    reason = f"{place} refused the WebSocket handshake: HTTP {status}"
    if status in (401, 403):
        remedy = "give credentials by headers or headersHelper"
        return AuthRequired(reason=reason, remedy=remedy, http_status=status)
    wait = headers.get(b"retry-after", b"").decode("latin-1")
    return ConnectFailed(
        reason=reason, http_status=status, can_retry=is_outage(status), retry_after=retry_after(wait, now=now)
    )
