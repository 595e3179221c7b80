"""Owns what of our own is taken out of a stranger's words before they are told: the credentials that we gave it.

What this is not: how configuration is shown (`cli.redact`), nor the cleaning of texts (`shown`).

A server that refuses somebody likes to repeat by what: "invalid key sk-1234"; so does a program that was started with
it, and an authorization server that was sent a token. Their words reach errors, statuses and logs, where no secret may
stand (fault 102, S352, S354, S414), and what is one only who sent it knows: a transport, a sign-in. Results of
calls are no words about us but data, and stay as they came.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.errors import McpActorsError

__all__ = [
    "CREDENTIAL_PARTS",
    "SentSecrets",
    "hide",
    "is_credential",
    "longest_first",
    "of_arguments",
    "of_environment",
    "of_form",
    "of_request",
    "starred",
]

# In the place of one.
STARS: Final = "***"
# What is shorter is part of ordinary words: to star each "1" would tell nothing and hide much.
MIN_CHARS: Final = 6
# Headers that are no secret, whoever set them.
_OPEN_HEADERS: Final = (
    r"(?i)accept(-\w+)*|cache-control|connection|content-(length|type)|host|last-event-id|mcp-.*|origin|"
    r"trace(parent|state)|user-agent"
)
# Fields of the forms that authorization servers are sent that are no secret.
_OPEN_FIELDS: Final = frozenset({
    "grant_type", "client_id", "redirect_uri", "resource", "scope", "audience", "token_type_hint",
    "requested_token_type", "subject_token_type", "client_assertion_type",
    "response_type", "code_challenge_method", "prompt",
})  # fmt: skip
# Parts of an error that may hold a stranger's words: a text, or what holds texts.
_QUOTING: Final = ("reason", "said", "message", "remedy", "data", "supported")
# What nests deeper in one of them is not looked through, and not told.
_MAX_DEPTH: Final = 64
# Of each header that a connection sends, so many values are known: more than tokens are renewed while an answer is out.
MAX_VALUES: Final = 16
# Looks the same in a URL, in JSON and in HTML.
_PLAIN: Final = re.compile(r"[\w.~-]*", re.ASCII)
# A part of a variable's name, between underscores, that makes it a credential (S090).
CREDENTIAL_PARTS: Final = frozenset({
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "KEY", "AUTH", "AUTHORIZATION", "COOKIE", "PAT", "DSN",
    "CREDENTIAL", "CREDENTIALS",
})  # fmt: skip
# An option or a header with its value in one word; no URL.
_NAMED: Final = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)(?:=|:\s*)(?!//)(.+)", re.DOTALL)
# What options end in that say where a credential lies.
_PLACES: Final = frozenset({"FILE", "PATH", "DIR"})
_SEPARATORS: Final = re.compile(r"[^A-Z0-9]+")


def is_credential(name: str) -> bool:
    """Whether a variable of this name holds a credential."""
    return not CREDENTIAL_PARTS.isdisjoint(_SEPARATORS.split(name.upper()))


def of_environment(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The credentials among a child's own variables (name -> value), longest first."""
    return longest_first(value for name, value in variables.items() if is_credential(name))


def of_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """The credentials among a child's arguments, longest first: ``--token X``, ``key=X``, headers, parts of URLs."""
    found: list[str] = []
    is_value = False
    for argument in arguments:
        named = _NAMED.match(argument)
        if is_value and not argument.startswith("-"):
            found.append(argument)
        elif named and _is_option_secret(named[1]):
            found += [named[2], named[2].rpartition(" ")[2]]
        elif "://" in argument:
            found += of_request((), argument)
        is_value = argument.startswith("-") and named is None and _is_option_secret(argument)
    return longest_first(found)


def _is_option_secret(name: str) -> bool:
    return is_credential(name) and name.upper().rpartition("-")[2] not in _PLACES


def of_request(headers: Iterable[tuple[str, str]], url: str) -> tuple[str, ...]:
    """The credentials of one request, longest first: values of headers and what they are made of, and of the URL."""
    found: list[str] = []
    for name, value in headers:
        if not _is_open_header(name):
            # The whole value; the token after its scheme; each cookie's value.
            found += [
                value,
                value.rpartition(" ")[2],
                *(pair.partition("=")[2] for pair in re.split(r"[;,]\s*", value)),
                *_of_basic(value),
            ]
    parts = urlsplit(url)
    values = [pair.partition("=")[2] for pair in parts.query.split("&")]
    return longest_first([*found, *values, *map(unquote, values), unquote(parts.password or parts.username or "")])


def of_form(text: str) -> tuple[str, ...]:
    """The credentials of a form, or of a query, that an authorization server was sent or sent somebody with."""
    try:
        pairs = parse_qsl(text, max_num_fields=100)
    except ValueError:
        return ()
    return longest_first(value for name, value in pairs if name not in _OPEN_FIELDS)


@define(eq=False)
class SentSecrets:
    """What the requests of one connection carried: its peer may repeat an earlier one, a token that was renewed since.

    Of each header, and of the address, the last `MAX_VALUES` values are known.
    """

    # Maps header, "" for the address -> its values, the one that was sent longest ago first.
    _values: dict[str, dict[str, None]] = field(factory=dict, init=False, repr=False)
    # What they come to; None: to be found out.
    _secrets: tuple[str, ...] | None = field(default=(), init=False, repr=False)

    def note(self, headers: Iterable[tuple[str, str]], url: str) -> None:
        """Learn that a request with these headers goes to this address."""
        for name, value in (*headers, ("", url)):
            if _is_open_header(name):
                continue
            values = self._values.setdefault(name, {})
            if value not in values:
                self._secrets = None
            values.pop(value, None)
            values[value] = None
            if len(values) > MAX_VALUES:
                del values[next(iter(values))]

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials among it, longest first."""
        if self._secrets is None:
            sent = [(name, value) for name, values in self._values.items() if name for value in values]
            found = set(of_request(sent, ""))
            for url in self._values.get("", ()):
                found.update(of_request((), url))
            self._secrets = _longest_first(found)
        return self._secrets


@lru_cache(maxsize=256)
def _is_open_header(name: str) -> bool:
    return re.fullmatch(_OPEN_HEADERS, name) is not None


def longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    """In the order in which they are taken out, in every way in which they are written, without the short ones."""
    return _longest_first({spelling for each in secrets if len(each) >= MIN_CHARS for spelling in _spellings(each)})


def _longest_first(spellings: set[str]) -> tuple[str, ...]:
    # A part of another comes after it, or that other would be found no more.
    return tuple(sorted(spellings, key=lambda each: (-len(each), each)))


def starred(text: str, secrets: Iterable[str]) -> str:
    """Put stars in the place of each of them."""
    for secret in secrets:
        text = text.replace(secret, STARS)
    return text


def hide(error: McpActorsError, secrets: Iterable[str]) -> None:
    """Take them out of the words of an error, in place: it is on its way to whoever catches it."""
    secrets = tuple(secrets)
    for name in _QUOTING if secrets else ():
        said = getattr(error, name, None)
        if said is not None and (clean := _cleaned(said, secrets, _MAX_DEPTH)) != said:
            setattr(error, name, clean)


def _cleaned(said: object, secrets: tuple[str, ...], depth: int) -> object:
    """The same with stars in every text of it: names too, and those in lists and objects of a decoded JSON."""
    match said:
        case str():
            return starred(said, secrets)
        case Mapping() | list() | tuple() if not depth:
            return STARS
        case Mapping():
            return {_cleaned(name, secrets, depth): _cleaned(each, secrets, depth - 1) for name, each in said.items()}
        case list() | tuple():
            return type(said)(_cleaned(each, secrets, depth - 1) for each in said)
    return said


def _of_basic(value: str) -> tuple[str, ...]:
    """The secret in ``Authorization: Basic``, as it was encoded and as it was meant: a key may come as the user."""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ()
    secret = password or user
    return secret, unquote(secret)


def _spellings(secret: str) -> tuple[str, ...]:
    """As it is, and as it stands in a URL, a form, HTML and the JSON of those who escape more than they must."""
    if _PLAIN.fullmatch(secret):
        return (secret,)
    import html  # with a table of all that HTML can write, which few secrets need

    escaped = json.dumps(secret)[1:-1]
    return (
        *(secret, quote(secret, safe=""), quote(secret), quote_plus(secret), html.escape(secret)),
        *(escaped, escaped.replace("/", "\\/"), escaped.replace("+", "\\u002B")),
        json.dumps(secret, ensure_ascii=False)[1:-1],
    )
