"""Owns what this room asks of URLs: which may be used, the canonical resource, what covers what. Pure.

What this is not: fetching them (`fetcher`), nor where metadata lies (`discovery`).
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from mcp_actors import origins
from mcp_actors.errors import AuthFailed
from mcp_actors.origins import is_loopback, origin_of

__all__ = [
    "canonical_resource",
    "check_url",
    "covers",
    "host_of",
    "is_same_origin",
    "place_of",
    "same_issuer",
]

_WELL_KNOWN: Final = re.compile(
    r"/\.well-known/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)"
)


def place_of(url: str) -> str:
    """Origin of `url`, and which well-known document it names: all that may be shown here (S030). Never fails."""
    document = _WELL_KNOWN.search(url)
    return origins.place_of(url) + (document.group() if document else "")


def is_same_origin(one: str, other: str) -> bool:
    """Whether both lead to the same scheme, host and port; false when either is no URL."""
    try:
        return origin_of(one) == origin_of(other)
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Host name or address without brackets, in lower case; empty when there is none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def check_url(url: str, what: str) -> str:
    """Return `url` if it may be used at all: absolute, https (http for loopback), no credentials, no fragment.

    Raises:
        AuthFailed: it may not; the text names `what`, never the URL's query.

    Source:
        MCP, authorization, "Communication Security"; E01, faults 53, 105, 106.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AuthFailed(reason=f"{what} is no usable URL") from None
    host = parts.hostname
    is_printable = url.isascii() and not any(char.isspace() or not char.isprintable() for char in url)
    if not host or not is_printable or parts.fragment or parts.username is not None or port == 0:
        raise AuthFailed(reason=f"{what} is no usable URL: {place_of(url) if is_printable else 'odd characters'}")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return url
    raise AuthFailed(reason=f"{what} must be an https URL, not {place_of(url)}")


def canonical_resource(server_url: str) -> str:
    """The resource indicator of a server that publishes none: no query, fragment or trailing slash.

    Source:
        MCP, authorization, "Canonical Server URI"; D06.
    """
    return f"{origin_of(server_url)}{urlsplit(server_url).path.rstrip('/')}"


def covers(resource: str, server_url: str) -> bool:
    """Whether the resource that metadata names is this server: same origin, and its path leads to the server's.

    Source:
        RFC 9728, section 3.3; D04.
    """
    if not is_same_origin(resource, server_url):
        return False
    ours, theirs = urlsplit(server_url).path.rstrip("/"), urlsplit(resource).path.rstrip("/")
    return ours == theirs or ours.startswith(theirs + "/")


def same_issuer(one: str, other: str) -> bool:
    """Whether two issuer identifiers are the same text, a slash at the end of a bare origin aside.

    Libraries that re-serialise URLs add that slash to what they publish (fault 60); a URL with and without it is the
    same resource by RFC 3986, 6.2.3. A path is never touched. (`iss` of a redirect is compared without this: D08.)

    Source:
        RFC 8414, section 3.3; D03, fault 54.
    """
    if one == other:
        return True
    return any(long == f"{short}/" and urlsplit(long).path == "/" for long, short in ((one, other), (other, one)))
