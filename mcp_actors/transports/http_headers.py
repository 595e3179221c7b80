"""Owns the headers that every request to a server carries: the configured ones, made sendable.

What this is not: the headers of one message, which its frame brings, nor credentials of an auth flow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import ConfigError
from mcp_actors.transports.http_client import basic_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.specs import RemoteTarget

__all__ = ["SESSION_HEADER", "fixed_headers", "user_headers"]

SESSION_HEADER: Final = "Mcp-Session-Id"
# Headers that are ours to set: a configured one of this name is left out (S078).
OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "content-type",
        "content-length",
        "transfer-encoding",
        "connection",
        "last-event-id",
        SESSION_HEADER.lower(),
    }
)
NAME_PATTERN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
VALUE_PATTERN: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def fixed_headers(target: RemoteTarget, *, server: str) -> list[tuple[bytes, bytes]]:
    """Headers of every request to `target`, in the order sent.

    Raises:
        ConfigError: a configured header cannot be sent.
    """
    headers = user_headers(target.headers, url=target.url, server=server)
    if not any(name.lower() == b"accept-encoding" for name, _ in headers):
        # Compression makes proxies hold event streams back, and a small body may hide a large one.
        headers.append((b"Accept-Encoding", b"identity"))
    return headers


def user_headers(headers: Mapping[str, str], *, url: str, server: str | None = None) -> list[tuple[bytes, bytes]]:
    """Make the configured headers sendable.

    Args:
        headers: maps name -> value, as configured and expanded.
        url: the endpoint; a user and password in it become an Authorization header, unless there is one.
        server: name of the server, for errors.

    Returns:
        Name and value pairs, in the order given, without those that are ours to set.

    Raises:
        ConfigError: a name or a value cannot be sent; it names the header, never its value.

    Source:
        S078.
    """
    pairs: list[tuple[bytes, bytes]] = []
    for name, value in headers.items():
        if NAME_PATTERN.fullmatch(name) is None:
            raise ConfigError(
                server=server, reason="a header name has characters that HTTP forbids", key=f"headers.{name!r}"
            )
        text = value.strip()
        if VALUE_PATTERN.fullmatch(text) is None:
            raise ConfigError(server=server, reason="the header's value has control characters", key=f"headers.{name}")
        if name.lower() not in OWN_HEADERS:
            pairs.append((name.encode(), text.encode()))
    if "@" in url and not any(name.lower() == b"authorization" for name, _ in pairs):
        credentials = basic_credentials(url)
        if credentials is not None:
            pairs.append((b"Authorization", credentials.encode()))
    return pairs
