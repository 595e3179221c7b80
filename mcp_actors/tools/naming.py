"""Owns the names that a model calls tools by: ``mcp__server__tool``, made from raw names and parsed back.

What this is not: the identity of a tool. That is the route (server, raw name), which the catalog keeps beside the
callable name; parsing a name back is for rules and displays that have nothing else (S180).

Rule 1: one character becomes one character, ``_`` where it is not allowed, without collapsing (S175, S176).
Rule 2: a name longer than the bound is cut and ends in a hash of its route, so that it is the same after every restart
and unlike its neighbours (fault 82). S185 would drop such a tool; a shorter name keeps it usable and never ambiguous.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_actors.errors import UnknownServer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MAX_CALLABLE_NAME_CHARS",
    "ParsedName",
    "ToolNames",
    "callable_name",
    "contested_name",
    "normalise",
    "normalise_rule",
    "normalise_server",
    "parse",
    "server_prefix",
    "unknown_server",
]

# The strictest model interface in use takes 64 (fault 82).
MAX_CALLABLE_NAME_CHARS: Final = 64
HEAD: Final = "mcp"
SEPARATOR: Final = "__"
HASH_CHARS: Final = 8
# How the display names of an account's connectors begin.
CONNECTOR: Final = "claude.ai "

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_IN_RULES = re.compile(r"[^a-zA-Z0-9_*-]")
_UNDERSCORES = re.compile(r"_+")


class ParsedName(NamedTuple):
    """A callable name taken apart; both parts in normal form. `tool` is None where the name ends with the server."""

    server: str
    tool: str | None


class ToolNames(NamedTuple):
    """What a rule may call a tool by."""

    callable: str
    # The same, where the bound cut it: whoever writes a rule may know nothing of that.
    whole: str
    # How the callable names of its server begin, separator included; empty where nothing is known of a server.
    prefix: str = ""


def normalise(text: str) -> str:
    """Replace each character outside ``[a-zA-Z0-9_-]`` by one underscore.

    Source:
        S175, S176.
    """
    return _NOT_ALLOWED.sub("_", text)


def normalise_server(name: str) -> str:
    """Normalise a server's name; of a claude.ai connector's display name runs of underscores become one, ends go.

    Source:
        S181: "claude.ai Slack (2)" would otherwise give a name that cannot be parsed back.
    """
    normal = normalise(name)
    return _UNDERSCORES.sub("_", normal).strip("_") if name.startswith(CONNECTOR) else normal


def normalise_rule(name: str) -> str:
    """Replace what no callable name holds in a name with stars, which a person may have written with raw names.

    Source:
        S231: "Server part compares with the normalised name."
    """
    head, *rest = name.split(SEPARATOR)
    if head == HEAD and rest and "*" not in rest[0]:
        rest[0] = normalise_server(rest[0])
    return _NOT_IN_RULES.sub("_", SEPARATOR.join((head, *rest)))


@lru_cache(maxsize=1_024)
def server_prefix(server: str) -> str:
    """Begin of a server's callable names with the separator, so that ``git`` never means ``github`` (S177, S367)."""
    return f"{HEAD}{SEPARATOR}{normalise_server(server)}{SEPARATOR}"


def callable_name(
    server: str, tool: str, *, visible: str | None = None, max_chars: int = MAX_CALLABLE_NAME_CHARS
) -> str:
    """Name a tool for a model.

    Args:
        server: raw name of the server.
        tool: raw name of the tool.
        visible: the tool's cleaned name, where that differs from the raw one (S191).
        max_chars: longest name that is made, at least 16.

    Returns:
        ``mcp__server__tool`` in normal form; where that is longer than `max_chars`, its begin, an underscore and eight
        hex digits that depend on the raw names alone.

    Source:
        S174-S178, fault 82.
    """
    name = server_prefix(server) + normalise(tool if visible is None else visible)
    return name if len(name) <= max_chars else _hashed(name, server, tool, max_chars)


def contested_name(
    server: str, tool: str, *, visible: str | None = None, max_chars: int = MAX_CALLABLE_NAME_CHARS
) -> str:
    """Name a tool whose `callable_name` another tool of its server has: the hash follows however short it is.

    Names in other scripts normalise to underscores alone, so that all of one length would be one (faults 81, 82).
    """
    name = server_prefix(server) + normalise(tool if visible is None else visible)
    return _hashed(name, server, tool, max_chars)


def _hashed(name: str, server: str, tool: str, max_chars: int) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{name[: max_chars - HASH_CHARS - 1]}_{digest}"


def parse(name: str) -> ParsedName | None:
    """Take a callable name apart.

    Returns:
        None when `name` is not of the form ``mcp__server`` or ``mcp__server__tool``. An empty tool is returned as is;
        it matches nothing. A server whose own name contains ``__`` cannot be told from its tool.

    Source:
        S179.
    """
    head, *rest = name.split(SEPARATOR)
    if head != HEAD or not rest or not rest[0]:
        return None
    return ParsedName(rest[0], SEPARATOR.join(rest[1:]) if len(rest) > 1 else None)


def unknown_server(name: str, known: Iterable[str]) -> UnknownServer:
    """Make the error for a name that no server has; it tells the nearest of those that are known."""
    from difflib import get_close_matches  # costs a millisecond, and is needed for mistakes alone

    nearest = get_close_matches(name, list(known), n=3, cutoff=0.5) if isinstance(name, str) else ()
    return UnknownServer(name=name, nearest=tuple(nearest))
