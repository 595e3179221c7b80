"""Owns which URL of a server may be opened in a person's browser, and what a person is told about it.

What this is not: opening it. Nothing here, and nothing before consent, fetches anything of it (E03).

Rule 1: https only; http to loopback. Everything else is an error (E02, fault 105).
Rule 2: what is shown is what is opened: every character that is not plain ASCII of a URL is percent-encoded (a host:
in its xn-- form), so that nothing in it can be invisible, reordered or taken for something else.
Rule 3: the whole of it is shown, however long (S284).
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlsplit

from mcp_actors.origins import address_of, is_loopback
from mcp_actors.values import frozen

__all__ = ["MAX_URL_CHARS", "JudgedUrl", "RefusedUrl", "judge_url"]

# One argument of a program may have 128 KiB on Linux.
MAX_URL_CHARS: Final = 65_536

_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\\u2028\u2029]")
# Everything that RFC 3986 lets stand in a URL, "%" included; the rest is encoded.
_URL_CHARS: Final = "!#$%&'()*+,/:;=?@[]~"
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@frozen
class JudgedUrl:
    """A URL that may be opened after consent."""

    # What is shown and opened: ASCII without spaces and quotes, whole.
    text: str
    # The host in it, to be highlighted.
    host: str
    # What a person should know before consenting, in words.
    warnings: tuple[str, ...] = ()


@frozen
class RefusedUrl:
    """A URL that must not be opened, and why. The URL is not quoted: it may hold anything."""

    reason: str


def judge_url(url: str) -> JudgedUrl | RefusedUrl:
    """Judge a URL that a server wants a person to open.

    Source:
        S284, E02, E03, fault 105; spec_client 12.
    """
    if len(url) > MAX_URL_CHARS:
        return RefusedUrl(f"the URL has more than {MAX_URL_CHARS} characters")
    if _FORBIDDEN.search(url):
        return RefusedUrl("the URL holds spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        ascii_host = host.encode("ascii" if host.isascii() else "idna").decode().lower()
    except (ValueError, UnicodeError):
        return RefusedUrl("the URL is malformed")
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https"):
        return RefusedUrl("only https URLs are opened")
    if not host or not url[len(scheme) :].startswith("://"):
        return RefusedUrl("the URL names no host")
    if scheme == "http" and not is_loopback(ascii_host):
        return RefusedUrl("only https URLs are opened; http only to this machine")
    if not re.fullmatch(r"[a-z0-9._:-]+", ascii_host):
        return RefusedUrl("the URL has a host that is no host")
    before, _, _ = parts.netloc.rpartition("@")
    netloc = parts.netloc if host.isascii() else _with_host(parts.netloc, ascii_host)
    plain = f"{scheme}://{netloc}{url[len(scheme) + 3 + len(parts.netloc) :]}"
    text = quote(plain, safe=_URL_CHARS)
    is_odd = text != plain or _BAD_PERCENT.search(plain) is not None
    warnings = _warnings(ascii_host, has_credentials=bool(before), is_odd=is_odd)
    return JudgedUrl(text, ascii_host, tuple(warnings))


def _with_host(netloc: str, ascii_host: str) -> str:
    """Put the ASCII form of the host into `netloc`; credentials before it and the port behind it stay."""
    before, at, after = netloc.rpartition("@")
    _, colon, port = after.partition(":")
    return f"{before}{at}{ascii_host}{colon}{port}"


def _warnings(host: str, *, has_credentials: bool, is_odd: bool) -> list[str]:
    found: list[str] = []
    if any(label.startswith("xn--") for label in host.split(".")):
        found.append("the host is written in international characters (xn--...): it may look like another one")
    if has_credentials:
        found.append(f"what stands before the @ is no host: this leads to {host}")
    if not is_loopback(host):
        if address_of(host) is not None:
            found.append("the host is a bare address, not a name")
        elif re.fullmatch(r"(0x[0-9a-f]+|[0-9.]+)", host):
            found.append("the host is an address in disguise")
    if is_odd:
        found.append("it holds unusual characters")
    return found
