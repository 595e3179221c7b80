"""Owns which redirects a request may follow (fault 38, C15). Pure.

What this is not: following; that is `http_client`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urldefrag, urljoin

from mcp_actors.errors import ConnectFailed
from mcp_actors.origins import Origin, origin_of, place_of

__all__ = ["REDIRECTS", "redirected"]

# These keep method and body; the others would turn a POST into a GET.
REPEATABLE: Final = frozenset({307, 308})
REDIRECTS: Final = frozenset({301, 302, 303}) | REPEATABLE


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
    elif (old.scheme, new.scheme) == ("https", "http"):
        why = "refused, from https to http, which would expose the request"
    else:
        why = "refused, another origin"
    raise ConnectFailed(reason=f"{text}: {why}; configure the final URL", http_status=status, can_retry=False)


def _is_upgrade(old: Origin, new: Origin) -> bool:
    same_port = old.port == new.port or (old.port, new.port) == (80, 443)
    return (old.scheme, new.scheme) == ("http", "https") and old.host == new.host and same_port
