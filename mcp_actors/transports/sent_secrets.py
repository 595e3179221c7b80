"""Owns what of our own is taken out of a stranger's words before they are told: the credentials that we gave it.

What this is not: how configuration is shown (`cli.redact`), nor the cleaning of texts (`shown`).

A server that refuses somebody likes to repeat by what: "invalid key sk-1234"; so does a program that was started with
it. Their words reach errors, statuses and logs, where no secret may stand (fault 102, S352, S354, S414), and what is a
secret only their transport knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["CREDENTIAL_PARTS", "is_credential", "of_environment", "of_request", "starred"]

# In the place of one.
STARS: Final = "***"
# What is shorter is part of ordinary words: to star each "1" would tell nothing and hide much.
MIN_CHARS: Final = 6
# Headers that are no secret, whoever set them.
_OPEN_HEADERS: Final = re.compile(
    r"(?i)accept(-\w+)*|cache-control|connection|content-(length|type)|host|last-event-id|mcp-.*|origin|traceparent|"
    r"user-agent"
)
# A part of a variable's name, between underscores, that makes it a credential (S090).
CREDENTIAL_PARTS: Final = frozenset(
    {
        *("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "KEY", "AUTH", "COOKIE", "PAT", "DSN"),
        *("CREDENTIAL", "CREDENTIALS"),
    }
)
_SEPARATORS: Final = re.compile(r"[^A-Z0-9]+")


def is_credential(name: str) -> bool:
    """Whether a variable of this name holds a credential."""
    return not CREDENTIAL_PARTS.isdisjoint(_SEPARATORS.split(name.upper()))


def of_environment(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The credentials among a child's own variables (name -> value), longest first."""
    return _sorted(value for name, value in variables.items() if is_credential(name))


def of_request(headers: Iterable[tuple[str, str]], url: str) -> tuple[str, ...]:
    """The credentials of one request, longest first: values of headers and what they are made of, and of the query."""
    found: list[str] = []
    for name, value in headers:
        if _OPEN_HEADERS.fullmatch(name) is None:
            # The whole value; the token after its scheme; each cookie's value.
            found += [
                value,
                value.rpartition(" ")[2],
                *(pair.partition("=")[2] for pair in re.split(r"[;,]\s*", value)),
            ]
    query = urlsplit(url).query
    values = [pair.partition("=")[2] for pair in query.split("&")]
    return _sorted([*found, *values, *map(unquote, values)])


def starred(text: str, secrets: Iterable[str]) -> str:
    """Put stars in the place of each of them."""
    for secret in secrets:
        text = text.replace(secret, STARS)
    return text


def _sorted(secrets: Iterable[str]) -> tuple[str, ...]:
    # A part of another comes after it, or that other would be found no more.
    return tuple(sorted({each for each in secrets if len(each) >= MIN_CHARS}, key=lambda each: (-len(each), each)))
