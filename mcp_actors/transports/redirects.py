"""Owns which redirects a request may follow, and how a URL is shown (fault 38, C15). Pure.

What this is not: following; that is `http_client`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

from mcp_actors.errors import ConnectFailed

__all__ = ["REDIRECTS", "origin_of", "place_of", "redirected"]

# These keep method and body; the others would turn a POST into a GET.
REPEATABLE: Final = frozenset({307, 308})
REDIRECTS: Final = frozenset({301, 302, 303}) | REPEATABLE
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Of a URL in an error or a log line.
MAX_SHOWN_CHARS: Final = 300


def redirected(method: str, url: str, location: str, status: int) -> str:
    """Where a redirect leads, if method, body and headers may go along.

    Args:
        method: of the request.
        url: where it went.
        location: the header's value, relative or absolute.
        status: one of `REDIRECTS`.

    Returns:
        The URL to repeat the request at: the same origin, or https instead of http on the same host.

    Raises:
        ConnectFailed: it must not be repeated there; says why, and shows origins only.

    Source:
        Fault 38, C15.
    """
    try:
        target = urldefrag(urljoin(url, location)).url
        old, new = origin_of(url), origin_of(target)
    except ValueError as exc:
        raise ConnectFailed(
            reason=f"{place_of(url)} redirects to no usable URL", http_status=status, can_retry=False
        ) from exc
    where = "another path of its own" if old == new else place_of(target)
    text = f"{place_of(url)} redirects ({status}) to {where}"
    if status not in REPEATABLE:
        why = f"a {method} is not repeated there"
    elif old == new or _is_upgrade(old, new):
        return target
    elif (old[0], new[0]) == ("https", "http"):
        why = "refused, from https to http, which would expose the request"
    else:
        why = "refused, another origin"
    raise ConnectFailed(reason=f"{text}: {why}; configure the final URL", http_status=status, can_retry=False)


def place_of(url: str) -> str:
    """Origin of `url`: all that may be shown of it, for paths hold keys as often as queries do (S030). Never fails."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "<unusable URL>"
    host = f"[{host}]" if ":" in host else host
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    place = f"{parts.scheme}://{host}{port}"
    if not place.isprintable():  # a peer may have named it
        place = "".join(char if char.isprintable() else "�" for char in place)
    return place if len(place) <= MAX_SHOWN_CHARS else f"{place[:MAX_SHOWN_CHARS]}..."


def origin_of(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of `url`.

    Raises:
        ValueError: it is no URL.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)


def _is_upgrade(old: tuple[str, str | None, int | None], new: tuple[str, str | None, int | None]) -> bool:
    same_port = old[2] == new[2] or (old[2], new[2]) == (80, 443)
    return (old[0], new[0]) == ("http", "https") and old[1] == new[1] and same_port
