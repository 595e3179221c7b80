"""Owns what goes to and comes from authorization servers and people, as plain values.

What this is not: sending (`fetcher`, `driving`). A *flow* is a generator: it yields a request and is sent the answer,
so that every rule can be tested without a socket, a clock or chance; those come in as `Sources`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote, urlencode

from attrs import field

from mcp_actors.auth.urls import place_of
from mcp_actors.errors import RemoteProtocolError
from mcp_actors.jsontypes import Json  # noqa: TC001
from mcp_actors.protocol.jsonrpc import decode_object
from mcp_actors.sent_secrets import longest_first, of_form, of_request
from mcp_actors.values import frozen

__all__ = [
    "Asking",
    "Flow",
    "Purpose",
    "Sources",
    "Visit",
    "WebAnswer",
    "WebRequest",
    "form_request",
    "number_in",
    "text_in",
    "texts_in",
]

T = TypeVar("T")


class Purpose(enum.StrEnum):
    """What a request is for; names it in errors, and decides how it may be made (`fetcher`)."""

    RESOURCE_METADATA = "resource metadata"
    SERVER_METADATA = "authorization server metadata"
    REGISTRATION = "client registration"
    TOKEN = "token request"  # noqa: S105 - a name
    REVOCATION = "token revocation"
    DEVICE = "device authorization"


@frozen
class WebRequest:
    """One request to make; its headers and body are secrets."""

    purpose: Purpose
    url: str = field(repr=place_of)
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its answer must not be quoted with, longest first."""
        form = self.body.decode("utf-8", "replace") if self.body[:1] != b"{" else ""
        return longest_first((*of_request(self.headers, self.url), *of_form(form)))


@frozen
class WebAnswer:
    """Its answer. `headers` maps lower-case name -> value; the body is a secret."""

    status: int
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the status says so; the body may still say otherwise (S264)."""
        return 200 <= self.status < 300

    @property
    def is_outage(self) -> bool:
        """Whether the status tells of a passing condition."""
        return self.status >= 500 or self.status in (408, 425, 429)

    def json(self) -> dict[str, Json] | None:
        """The body as a JSON object; None when it is none (CL 2.1.119)."""
        try:
            return decode_object(self.body)
        except RemoteProtocolError:
            return None


@frozen
class Visit:
    """Send the person to `url`, which leads back to `redirect_uri`. Answered with the whole URL it led back to."""

    # Holds state and challenge.
    url: str = field(repr=place_of)
    redirect_uri: str

    def secrets(self, landing: str) -> tuple[str, ...]:
        """What nobody is to be told of it, longest first: `landing` is where it led back to."""
        pairs = (pair.partition("=") for pair in f"{self.url}&{landing}".replace("?", "&").split("&"))
        return longest_first(unquote(value) for name, _, value in pairs if name in ("code", "state"))


# Yields requests, is sent answers, returns a T.
Asking: TypeAlias = Generator[WebRequest, WebAnswer, T]
# The same with visits, which are answered with a URL. What is sent depends on what was yielded; no type can say that.
Flow: TypeAlias = Generator[WebRequest | Visit, Any, T]


@frozen
class Sources:
    """Where a flow takes time and chance from."""

    # Seconds since the epoch.
    now: Callable[[], float]
    # That many bytes of entropy, as URL-safe text.
    token: Callable[[int], str]


def form_request(
    purpose: Purpose, url: str, form: Mapping[str, str | None], headers: tuple[tuple[str, str], ...] = ()
) -> WebRequest:
    """Build a POST of an HTML form; empty and absent values are left out (fault 63)."""
    body = urlencode({name: value for name, value in form.items() if value}).encode()
    fixed = (("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json"))
    return WebRequest(purpose, url, "POST", (*fixed, *headers), body)


def text_in(document: Mapping[str, Json], key: str) -> str | None:
    """The text under `key`; None when it is absent, empty or no text (fault 62)."""
    value = document.get(key)
    return value if isinstance(value, str) and value else None


def texts_in(document: Mapping[str, Json], key: str) -> tuple[str, ...] | None:
    """The texts under `key`, a list or one text with blanks between (fault 63); None when absent, null or neither."""
    value = document.get(key)
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str) and item)
    return None


def number_in(document: Mapping[str, Json], key: str, *, limit: float = 1e12) -> float | None:
    """The number under `key`, also one written as a text; None when there is none, or none below `limit`."""
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < limit else None
