"""Owns the match of an address against a pattern with ``*``, part by part.

What this is not: which list a pattern stands in and what a match means (`policy`).

Rules. Scheme, host, port and path are matched apart, so that no wildcard of one runs into the next. Scheme and host
have no case, a dot at the end of a host says nothing, a path has case. A pattern without path takes any path; one
without query any query; one without port takes the scheme's own. Different spellings of a path are the same path
(`Address.paths`).
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

__all__ = ["Address", "UrlPattern", "glob", "parse_address", "parse_pattern"]

PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
# Numbers that every resolver takes for an address: 127.0.0.1, 127.1, 0x7f.1, 2130706433.
NUMERIC_HOST = re.compile(r"(?:(?:0x[0-9a-f]+|[0-9]+)\.){0,3}(?:0x[0-9a-f]+|[0-9]+)")
UNRESERVED = re.compile(r"[A-Za-z0-9\-._~]")


class UrlPattern(NamedTuple):
    """A pattern, taken apart. None: not said, so that anything (path) or the default (port) fits."""

    scheme: str
    host: str
    port: str | None
    path: str | None

    def matches(self, address: Address, *, in_every_spelling: bool) -> bool:
        """Whether `address` fits.

        `in_every_spelling`: an allow list must hold for each spelling of the path, a deny list for any.
        """
        if not (glob(self.scheme, address.scheme) and glob(self.host, address.host)):
            return False
        # "https://*" means every host on every port; "https://h" the usual port of h.
        port = self.port if self.port is not None else "*" if self.host.endswith("*") else PORTS.get(address.scheme, "")
        if not glob(port, address.port):
            return False
        if self.path is None:
            return True
        fits = [glob(self.path, path if "?" in self.path else path.partition("?")[0]) for path in address.paths]
        return all(fits) if in_every_spelling else any(fits)


class Address(NamedTuple):
    """An address, taken apart and made comparable. `paths`: as written, and with needless escapes and dots undone."""

    scheme: str
    host: str
    port: str
    paths: tuple[str, ...]


def parse_pattern(text: str) -> UrlPattern:
    """Take a pattern apart. Without ``://`` it holds for any scheme."""
    scheme, host, port, path = _split(text)
    path = "/" + path if path.startswith("?") else path
    return UrlPattern((scheme or "*").lower(), _host(host), _port(port), path or None)


def parse_address(url: str) -> Address:
    """Take an address apart.

    Source:
        S051.
    """
    scheme, host, port, path = _split(url.strip())
    scheme = (scheme or "").lower()
    path = path if path.startswith("/") else "/" + path
    return Address(
        scheme, _host(host), _port(port) or PORTS.get(scheme, ""), tuple(dict.fromkeys((path, _plain_path(path))))
    )


def glob(pattern: str, text: str) -> bool:
    """Match ``*`` as any run of characters, everything else as it is. Linear for each piece between stars."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _split(text: str) -> tuple[str | None, str, str | None, str]:
    """Scheme, host, port, and path with query; without fragment and user."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
    rest = rest.partition("#")[0]
    # A backslash is a slash to many clients: taken as one, no host can hide behind it.
    cut = next((i for i, character in enumerate(rest) if character in "/?\\"), len(rest))
    authority, path = rest[:cut].rpartition("@")[2], rest[cut:].replace("\\", "/")
    if authority.startswith("["):
        host, _, after = authority.partition("]")
        return scheme or None, host + "]", after.removeprefix(":") or None, path
    host, colon, port = authority.rpartition(":")
    return (scheme or None, host, port or None, path) if colon else (scheme or None, authority, None, path)


def _host(host: str) -> str:
    """Without case, escapes, compatibility forms and the last dot; names in ASCII, addresses in their usual form."""
    host = PERCENT.sub(lambda match: chr(int(match[1], 16)), host)
    host = unicodedata.normalize("NFKC", host).lower().removesuffix(".")
    if host.startswith("["):
        with suppress(ValueError):
            address = IPv6Address(host.strip("[]"))
            return f"[{address}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)
    if host.isascii():
        return _dotted(host) if NUMERIC_HOST.fullmatch(host) else host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _dotted(host: str) -> str:
    """An IPv4 address as four decimal numbers, read as `inet_aton` does: the last number fills what is left."""
    try:
        *heads, last = (
            int(part, 0 if part.startswith("0x") else 8 if part[0] == "0" else 10) for part in host.split(".")
        )
    except ValueError:  # 08 is no octal number
        return host
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return host
    return str(IPv4Address(sum(head << 8 * (3 - place) for place, head in enumerate(heads)) + last))


def _port(port: str | None) -> str | None:
    """Without leading zeros."""
    return port and (port.lstrip("0") or "0" if port.isdigit() else port)


def _plain_path(path: str) -> str:
    """The path with needless escapes undone and its dot segments resolved (RFC 3986, 6.2.2); the query stays."""

    def plain(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if UNRESERVED.fullmatch(character) else match[0].upper()

    bare, mark, query = path.partition("?")
    segments: list[str] = []
    for segment in PERCENT.sub(plain, bare).split("/")[1:]:
        if segment == "..":
            segments = segments[:-1]
        elif segment != ".":
            segments.append(segment)
    if re.search(r"/\.\.?$", bare):
        segments.append("")
    return "/" + "/".join(segments) + mark + query
