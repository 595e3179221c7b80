"""Owns the way to a host: TCP, a proxy's tunnel, TLS; for what does not go through the HTTP library.

What this is not: anything above a stream of bytes. HTTP has its own connections (`http_client`).

A proxy is asked for a tunnel (CONNECT) for plain connections too, as RFC 6455 wants it. Proxies of http:// and https://
are spoken to; SOCKS is not.
"""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote, urlsplit

import trio

from mcp_actors.errors import ConnectFailed
from mcp_actors.origins import DEFAULT_PORTS, place_of
from mcp_actors.transports.http_answer import BROKEN_ERRORS, explain
from mcp_actors.transports.http_client import tls_context
from mcp_actors.transports.proxies import proxy_for

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping
    from urllib.parse import SplitResult

__all__ = ["Dial", "dial"]

SECURE: Final = frozenset({"wss", "https"})
# Of a proxy's answer; any real one has a few lines.
MAX_HEAD_BYTES: Final = 16 * 1024


class Dial(Protocol):
    """Opens the stream under a WebSocket: `dial`, or a test's or host's own."""

    async def __call__(self, url: str, *, environ: Mapping[str, str] | None = None) -> trio.abc.Stream:
        """Connect to the host of `url`.

        Raises:
            ConnectFailed: it did not come up.
        """
        ...


async def dial(
    url: str, *, environ: Mapping[str, str] | None = None, context: ssl.SSLContext | None = None
) -> trio.abc.Stream:
    """Open a connection to the host of `url`, through the environment's proxy where there is one.

    Args:
        url: ws, wss, http or https.
        environ: maps variable name -> text, for proxies and TLS; None: no proxy, and what is shipped is trusted.
        context: for TLS; None: what the variables say.

    Returns:
        A stream, after its TLS handshake. The caller closes it.

    Raises:
        ConnectFailed: it did not come up; says why, and shows neither query nor credentials.

    Cancellation:
        Safe; what was opened is closed.

    Source:
        S093, fault 49; RFC 6455, section 4.1.
    """
    target = urlsplit(url)
    proxy = proxy_for(url, environ) if environ else None
    stream: trio.abc.Stream
    if proxy is None:
        async with _translating(url):
            stream = await _reach(target)
    else:
        hop = urlsplit(proxy)
        if hop.scheme not in ("http", "https"):
            raise ConnectFailed(reason=f"a proxy of the scheme {hop.scheme} cannot be used here", can_retry=False)
        async with _translating(f"{hop.scheme}://{hop.netloc.rpartition('@')[2]}", "the proxy "):
            stream = await _reach(hop)
            try:
                if hop.scheme in SECURE:
                    stream = await _secured(stream, hop, context or tls_context(environ or {}))
                await _tunnel(stream, target, hop)
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
    if target.scheme not in SECURE:
        return stream
    try:
        async with _translating(url):
            return await _secured(stream, target, context or tls_context(environ or {}))
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise


@asynccontextmanager
async def _translating(url: str, who: str = "") -> AsyncIterator[None]:
    """Turn what a socket or TLS raises into our words."""
    try:
        yield
    except BROKEN_ERRORS as exc:
        place = place_of(url).rstrip("/")
        raise ConnectFailed(reason=f"cannot reach {who}{place}: {explain(exc)}") from exc
    except UnicodeError as exc:  # a label of the host is empty or too long
        raise ConnectFailed(reason=f"{who}{place_of(url)} is not a usable URL", can_retry=False) from exc


async def _reach(parts: SplitResult) -> trio.SocketStream:
    return await trio.open_tcp_stream(parts.hostname or "", _port_of(parts))


async def _secured(stream: trio.abc.Stream, parts: SplitResult, context: ssl.SSLContext) -> trio.abc.Stream:
    secure = trio.SSLStream(stream, context, server_hostname=parts.hostname or "", https_compatible=True)
    await secure.do_handshake()
    return secure


async def _tunnel(stream: trio.abc.Stream, target: SplitResult, hop: SplitResult) -> None:
    """Have the proxy connect us to `target`."""
    host = target.hostname or ""
    place = f"[{host}]:{_port_of(target)}" if ":" in host else f"{host}:{_port_of(target)}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if hop.username:
        pair = f"{unquote(hop.username)}:{unquote(hop.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    await stream.send_all("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = await stream.receive_some(MAX_HEAD_BYTES)
        head += chunk
        if not chunk or len(head) > MAX_HEAD_BYTES:
            raise ConnectFailed(reason=f"the proxy {hop.hostname} did not answer CONNECT as a proxy does")
    status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
    if not head.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
        raise ConnectFailed(reason=f"the proxy {hop.hostname} did not answer CONNECT as a proxy does")
    if not 200 <= int(status[0]) < 300:
        raise ConnectFailed(reason=f"the proxy {hop.hostname} refused the way to {place}: HTTP {int(status[0])}")
    if not head.endswith(b"\r\n\r\n"):
        # Whoever speaks first here is not the host we want: both WebSocket and TLS begin with us.
        raise ConnectFailed(reason=f"the proxy {hop.hostname} sent more than its answer")


def _port_of(parts: SplitResult) -> int:
    return parts.port or DEFAULT_PORTS.get(parts.scheme, 443)
