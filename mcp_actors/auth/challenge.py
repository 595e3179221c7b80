"""Owns the parsing of ``WWW-Authenticate``, and what a server demands with it. Pure.

What this is not: meeting the demand (`server_auth`).

The grammar is RFC 9110, section 11: several challenges may share one header, parameters are quoted or bare, and a
comma separates both. Unquoted URLs, which are not allowed, are understood.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Challenge", "Demand", "parse_challenges", "read_demand"]

# Servers send a few hundred; what is longer is cut.
MAX_CHARS: Final = 16 * 1024
MAX_CHALLENGES: Final = 32
_SKIP: Final = re.compile(r"[\s,]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_EQUALS: Final = re.compile(r"[ \t]*=[ \t]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"?', re.DOTALL)
_BARE: Final = re.compile(r"[^\s,]*")
_TOKEN68: Final = re.compile(r"[ \t]+([A-Za-z0-9\-._~+/]+=*)(?=[ \t]*(?:,|$))")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


@frozen
class Challenge:
    """One challenge. `params` maps lower-case name -> value, the first one where a name comes twice."""

    scheme: str
    params: Mapping[str, str] = field(factory=dict)


def parse_challenges(values: Iterable[str]) -> tuple[Challenge, ...]:
    """Parse the values of all ``WWW-Authenticate`` headers of an answer. Never fails; takes linear time.

    Source:
        RFC 9110, section 11.6.1; D01.
    """
    found: list[Challenge] = []
    text = ", ".join(values)[:MAX_CHARS]
    position = 0
    params: dict[str, str] = {}
    while True:
        skipped = _SKIP.match(text, position)
        position = skipped.end() if skipped else position
        word = _TOKEN.match(text, position)
        if word is None:
            if position >= len(text):
                return tuple(found)
            position += 1  # not a token: step over it
            continue
        position = word.end()
        equals = _EQUALS.match(text, position)
        if equals is not None and found:
            position, value = _value(text, equals.end())
            params.setdefault(word.group().lower(), value)
            continue
        if len(found) >= MAX_CHALLENGES:
            return tuple(found)
        params = {}
        found.append(Challenge(word.group(), params))
        token68 = _TOKEN68.match(text, position)
        if token68 is not None:
            position = token68.end()


def _value(text: str, position: int) -> tuple[int, str]:
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        return quoted.end(), _ESCAPE.sub(r"\1", quoted.group(1))
    bare = _BARE.match(text, position)
    return (bare.end(), bare.group()) if bare else (position, "")


@frozen
class Demand:
    """What a server demands with a 401 or a 403. `scope` is what this operation needs, None when it does not say."""

    status: int
    # Lower-case schemes of its challenges, in order.
    schemes: tuple[str, ...] = ()
    resource_metadata: str | None = None
    scope: tuple[str, ...] | None = None
    error: str | None = None

    @property
    def is_step_up(self) -> bool:
        """Whether more scopes are wanted: a refresh is useless then (S263)."""
        return self.status == 403 and self.error == "insufficient_scope"

    @property
    def is_nonce_wanted(self) -> bool:
        """Whether a DPoP proof with the nonce of this answer will do (RFC 9449, section 9)."""
        return self.status == 401 and self.error == "use_dpop_nonce"

    @property
    def is_dpop_wanted(self) -> bool:
        """Whether only tokens that are bound to a key are taken."""
        return "dpop" in self.schemes and "bearer" not in self.schemes


def read_demand(status: int, values: Iterable[str]) -> Demand:
    """Read what an answer demands: of all Bearer and DPoP challenges, the first one to name a thing counts.

    Source:
        MCP, authorization, "Protected Resource Metadata Discovery Requirements"; RFC 6750, section 3; D01.
    """
    challenges = parse_challenges(values)
    merged: dict[str, str] = {}
    for challenge in challenges:
        if challenge.scheme.lower() in ("bearer", "dpop"):
            for name, value in challenge.params.items():
                if value:
                    merged.setdefault(name, value)
    return Demand(
        status=status,
        schemes=tuple(challenge.scheme.lower() for challenge in challenges),
        resource_metadata=merged.get("resource_metadata"),
        scope=tuple(merged["scope"].split()) or None if "scope" in merged else None,
        error=merged.get("error"),
    )
