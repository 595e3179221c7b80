"""Owns how the options of ``add`` become an entry.

What this is not: whether the entry can run or may be there (`entry_writing`), nor writing it (`changing`).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["TRANSPORTS", "build_entry"]

TRANSPORTS: Final = ("stdio", "http", "sse", "ws")
_URL: Final = re.compile(r"(?i)(https?|wss?)://")


def build_entry(own: argparse.Namespace, words: Sequence[str]) -> JsonObject:
    """Make an entry of the options of ``add``.

    Args:
        own: transport, env, header, client_id, client_secret, callback_port and timeout, as the options name them.
        words: the command and its arguments, or the address.

    Raises:
        UsageError: they do not fit together.
    """
    if not words:
        raise UsageError("name a command or an address after the server's name")
    kind = own.transport or _transport(words[0])
    entry: dict[str, Json] = {"type": kind}
    if kind == "stdio":
        oauth_options = {"--client-id": own.client_id, "--callback-port": own.callback_port}
        _refuse_options(kind, {"-H": own.header, **oauth_options, "--client-secret": own.client_secret})
        entry |= {"command": words[0], "args": list(words[1:])}
        if own.env:
            entry["env"] = _pairs(own.env, "=", "-e K=V")
    else:
        if len(words) > 1:
            raise UsageError(f"a server of type {kind} takes an address and nothing more, not {words[1]!r}")
        _refuse_options(kind, {"-e": own.env})
        entry["url"] = words[0]
        if own.header:
            entry["headers"] = _pairs(own.header, ":", "-H 'K: V'")
        oauth = {"clientId": own.client_id, "callbackPort": own.callback_port}
        if any(value is not None for value in oauth.values()):
            entry["oauth"] = {key: value for key, value in oauth.items() if value is not None}
    if own.timeout is not None:
        if not (math.isfinite(own.timeout) and own.timeout >= 1):
            raise UsageError("--timeout takes at least one second")
        entry["timeout"] = round(own.timeout * 1000)
    return entry


def _transport(word: str) -> str:
    match = _URL.match(word)
    return "stdio" if match is None else "ws" if match[1].lower().startswith("ws") else "http"


def _refuse_options(kind: str, given: Mapping[str, object]) -> None:
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise UsageError(f"a server of type {kind} has no {' and no '.join(wrong)}")


def _pairs(texts: Sequence[str], sign: str, shape: str) -> dict[str, Json]:
    pairs: dict[str, Json] = {}
    for number, text in enumerate(texts, start=1):
        key, found, value = text.partition(sign)
        if not found or not key.strip():  # the text itself may be a secret
            raise UsageError(f"value {number} of {shape.split()[0]} has another shape than {shape}")
        pairs[key if sign == "=" else key.strip()] = value if sign == "=" else value.strip()
    return pairs
