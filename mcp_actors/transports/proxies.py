"""Owns the choice of a proxy for a URL from environment variables (S093, fault 49). Pure.

What this is not: the connection through it; that is `http_client`.

The rules are curl's and Python's: the lower-case name wins over the upper-case one, `ALL_PROXY` is the last resort,
`NO_PROXY` lists hosts, domains (with or without a leading dot), ``host:port`` pairs, addresses and networks, or ``*``.
Ours on top: loopback is never proxied, whatever the variables say.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_actors.origins import DEFAULT_PORTS, address_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["proxy_for"]


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Choose the proxy for a request.

    Args:
        url: where the request goes.
        environ: maps variable name -> text.

    Returns:
        The proxy's URL, with its credentials (a secret); None for a direct connection.

    Source:
        S093, fault 49.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").lower()
    if is_loopback(host):
        return None
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    if any(_spares(rule, host, port) for rule in _read(environ, "no_proxy").split(",")):
        return None
    secure = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    proxy = _read(environ, f"{secure}_proxy") or _read(environ, "all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _read(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _spares(rule: str, host: str, port: int) -> bool:
    """Whether one entry of NO_PROXY names this host."""
    rule = rule.strip().lower()
    if not rule:
        return False
    if rule == "*":
        return True
    if "/" in rule:
        return _in_network(rule, host)
    name, rule_port = _split_port(rule)
    if rule_port is not None and rule_port != port:
        return False
    name = name.removeprefix("*").strip(".")
    if address_of(name) is not None or address_of(host) is not None:
        return address_of(name) == address_of(host)
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split_port(rule: str) -> tuple[str, int | None]:
    if rule.startswith("["):
        name, _, tail = rule[1:].partition("]")
        digits = tail.removeprefix(":")
    elif rule.count(":") == 1:
        name, digits = rule.split(":")
    else:
        return rule, None
    return name, int(digits) if digits.isascii() and digits.isdigit() else None


def _in_network(rule: str, host: str) -> bool:
    address = address_of(host)
    try:
        return address is not None and address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False
