"""Owns one bounded HTTP exchange in plain values, for rooms that know no HTTP library (`auth` is handed this).

What this is not: a judge of where it may go; that is the caller's (`auth.fetcher`). It follows no redirect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["exchange_once", "is_proxied"]

# The headers of an answer that anybody has a use for.
KEPT_HEADERS: Final = ("content-type", "location", "www-authenticate", "dpop-nonce", "retry-after")


def is_proxied(url: str, environ: Mapping[str, str]) -> bool:
    """Whether a proxy makes the connection (and resolves the name)."""
    return proxy_for(url, environ) is not None


async def exchange_once(
    method: str,
    url: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    address: str | None,
    max_bytes: int,
    environ: Mapping[str, str],
) -> tuple[int, Mapping[str, str], bytes]:
    """Make one exchange over a connection of its own.

    Args:
        method: of the request.
        url: where it goes, http or https.
        headers: name and value pairs.
        body: empty: none.
        address: IP address to connect to, for the URL's host; None: resolved here, or by the proxy.
        max_bytes: longest body.
        environ: for the proxy variables.

    Returns:
        Status, the kept headers (lower-case name -> value), body.

    Raises:
        ConnectFailed: it did not arrive.
        TransportBroken: the connection ended before the answer did.
        RemoteProtocolError: the body is too long.

    Cancellation:
        Safe; the connection is closed.
    """
    client = HttpClient(url, environ=environ, address=address)
    pairs = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
    pairs.append((b"Accept-Encoding", b"identity"))
    try:
        answer = await client.request_once(method, pairs, body)
        try:
            if answer.content_type == "text/event-stream":  # it may never end
                content = b""
            else:
                content = await answer.read(max_bytes)
        finally:
            await answer.aclose()
    finally:
        await client.aclose()
    kept = {name: value for name in KEPT_HEADERS if (value := answer.header(name)) is not None}
    return answer.status, kept, content
