"""Owns what of a configured entry may be shown: the ``${VAR}`` form, and stars where a literal secret stands. Pure.

What this is not: a proof that a text holds no secret. It goes by the names of keys and options and by how tokens look;
where there is doubt, stars are shown.

Source:
    S030.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["STARS", "redact_entry", "redact_place", "redact_url"]

STARS: Final = "***"

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")
_SECRET_KEY: Final = re.compile(
    r"(?i)(auth|bearer|token|secret|passw|pwd|credential|cookie|session|signature|private|(^|[-_.])(api|access)?[-_]?key($|[-_.s]))"
    r"|(?i:apikey|accesskey)"
)
# Headers whose literal value is harmless; every other literal header value is starred.
_OPEN_HEADERS: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_SCHEME: Final = re.compile(r"(?i)(bearer|basic|token|dpop|apikey)\s+")
_TOKEN: Final = re.compile(
    r"(sk|pk|rk|gh[opsur]|github_pat|glpat|xox[abprs]|npm|pypi|hf|AKIA|ASIA|ya29|eyJ)[-_.]?[A-Za-z0-9_\-]{10,}.*"
    r"|(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9+_=\-]{28,}"
)
# A part of a path that is no word: letters among digits, unlike in "v1" or "mcp-2025", or more than a few digits.
_KEY_IN_PATH: Final = re.compile(
    r"(?=.*[0-9][A-Za-z])(?=.*[A-Za-z][0-9])[A-Za-z0-9]{8,}|(?=(?:.*[0-9]){5})[A-Za-z0-9]{10,}"
)
# What says that the next part is one.
_NAME_IN_PATH: Final = re.compile(r"(?i)(api[-_]?)?keys?|tokens?|secrets?")
_PATH_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")
_PLACE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*://)?[^/?#]*")
# Maps key of an entry -> whether its texts may hold ids that are none of our business.
_OAUTH_OPEN: Final = frozenset({"scopes", "callbackPort", "authServerMetadataUrl"})


def _star(text: str) -> str:
    """Star a secret's text; references stay (without their default), and so does the scheme of an Authorization."""
    if not text:
        return text
    scheme = _SCHEME.match(text)
    kept = scheme.group() if scheme else ""
    names = [f"${{{match.group(1)}}}" for match in _REFERENCE.finditer(text)]
    rest = _REFERENCE.sub("", text[len(kept) :])
    return kept + "".join(names) + (STARS if rest.strip() or not names else "")


def _looks_secret(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def _show(key: str, text: str) -> str:
    return _star(text) if _SECRET_KEY.search(key) or _looks_secret(text) else text


def redact_url(url: str) -> str:
    """Star a URL's password, its literal query values, its fragment, and segments of its path that may be keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return STARS
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{STARS if user else ''}{at}{host}"
    segments = parts.path.split("/")
    path = "/".join(map(_show_segment, ["", *segments], segments))
    query = "&".join(
        f"{name}={_star(value)}" if separator else _star(name)
        for name, separator, value in (pair.partition("=") for pair in parts.query.split("&"))
    )
    return urlunsplit((parts.scheme, netloc, path, query, STARS if parts.fragment else ""))


def redact_place(url: str) -> str:
    """The same without what follows the host: enough where no entry is shown, as in errors."""
    return _PLACE.match(redact_url(url))[0]  # type: ignore[index]  # it matches anything


def _show_segment(before: str, segment: str) -> str:
    """A segment of a path, stars for a key; also where the one before it says that it is one: ``/key/abc``."""
    if _REFERENCE.search(segment):
        return segment
    is_key = _looks_secret(segment) or any(map(_KEY_IN_PATH.fullmatch, _PATH_WORDS.split(segment)))
    return STARS if segment and (is_key or _NAME_IN_PATH.fullmatch(before)) else segment


def _redact_args(arguments: Sequence[Json]) -> list[Json]:
    shown: list[Json] = []
    is_value_secret = False
    for argument in arguments:
        if not isinstance(argument, str):
            shown.append(argument)
            continue
        name, equals, value = argument.partition("=")
        if is_value_secret and not argument.startswith("-"):
            shown.append(_star(argument))
        elif _URL.match(argument):
            shown.append(redact_url(argument))
        elif equals:
            shown.append(f"{name}={redact_url(value) if '://' in value else _show(name, value)}")
        elif _SCHEME.search(argument):
            # A whole header as one word: "Authorization: Bearer ...".
            head, colon, tail = argument.partition(":")
            shown.append(f"{head}{colon} {_star(tail.strip())}" if colon else _star(argument))
        else:
            shown.append(_star(argument) if _looks_secret(argument) else argument)
        is_value_secret = argument.startswith("-") and not equals and _SECRET_KEY.search(argument) is not None
    return shown


def _redact_headers(headers: JsonObject) -> dict[str, Json]:
    return {
        name: value if name.lower() in _OPEN_HEADERS or not isinstance(value, str) else _star(value)
        for name, value in headers.items()
    }


def _redact_value(key: str, value: Json) -> Json:
    if isinstance(value, str):
        return redact_url(value) if "://" in value else _show(key, value)
    if isinstance(value, Mapping):
        if key == "headers":
            return _redact_headers(value)
        return {name: inner if name in _OAUTH_OPEN else _redact_value(name, inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return _redact_args(value)
    return value


def redact_entry(entry: JsonObject) -> dict[str, Json]:
    """Copy an entry as written, with stars where a literal secret stands; unknown keys and order are kept."""
    return {key: _redact_value(key, value) for key, value in entry.items()}
