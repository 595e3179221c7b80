"""Owns what every room asks of URLs: where one leads, whether that is this machine, and all that may be shown of it.

What this is not: which URLs a room takes (`auth.urls`, `elicitation.urls`, `config.patterns`), nor an entry of a
configuration as its writer sees it (`cli.redact`).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp_actors.shown import cut
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from urllib.parse import SplitResult

__all__ = ["DEFAULT_PORTS", "Origin", "address_of", "is_loopback", "origin_of", "place_of"]

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
# Of a URL in an error or a log line.
MAX_SHOWN_CHARS: Final = 300


@frozen
class Origin:
    """Where a URL leads, in lower case. `port` is the default one where the URL names none, None where there is none.

    As a text it has no default port and no slash.
    """

    scheme: str
    host: str
    port: int | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        has_port = self.port is not None and self.port != DEFAULT_PORTS.get(self.scheme)
        return f"{self.scheme}://{host}" + (f":{self.port}" if has_port else "")


def origin_of(url: str) -> Origin:
    """Where `url` leads.

    Raises:
        ValueError: it is no URL.
    """
    parts = urlsplit(url)
    return _origin(parts, parts.port)


def _origin(parts: SplitResult, port: int | None) -> Origin:
    return Origin(parts.scheme, parts.hostname or "", DEFAULT_PORTS.get(parts.scheme) if port is None else port)


def place_of(url: str) -> str:
    """Origin of `url`: all that may be shown of it, for paths hold keys as often as queries do (S030). Never fails."""
    try:
        parts = urlsplit(url)
        if not parts.netloc:
            return f"{cut(parts.scheme, MAX_SHOWN_CHARS)}:" if parts.scheme else "<relative URL>"
        try:
            port = parts.port
        except ValueError:
            port = None
        place = str(_origin(parts, port))
    except ValueError:
        return "<unusable URL>"
    if not place.isprintable():  # a peer may have named it
        place = "".join(char if char.isprintable() else "\ufffd" for char in place)
    return cut(place, MAX_SHOWN_CHARS)


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is, with brackets or without; None: it is a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address, is this machine."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = address_of(name)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address is not None and address.is_loopback
