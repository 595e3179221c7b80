"""Owns the texts about a child for people: how its life ended, what can be done about it, and what it offers.

What this is not: its states and reason codes (`lifecycle`), nor what follows from an end (`restarts`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.config.remedies import sign_in_remedy, switched_off_remedy
from mcp_actors.config.specs import RemoteTarget, TransportName
from mcp_actors.errors import AuthRequired, McpActorsError, TransportError

if TYPE_CHECKING:
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import ServerInfo
    from mcp_actors.transports.base import Diagnostics

__all__ = ["capability_summary", "describe_end", "remedy_for"]

# Reason code -> what a person can do about it; for those with a command of ours see `config.remedies`. Codes that need
# nothing are not listed.
REMEDIES: Final[dict[str, str]] = {
    "crash-loop": "see its error, then restart it",
    "gave-up": "see its error, then restart it",
    "timeout": "see what it says with --debug; MCP_TIMEOUT (milliseconds) or its connectTimeout gives it longer",
    "refused": "correct its entry",
    "exit": "see what it said last, or start its command by hand to see what it lacks",
    "exhausted": "raise what ran out: descriptors (ulimit -n; a server takes five), processes (ulimit -u) or memory",
    "headers-helper": "run its headersHelper by hand: it must print one JSON object of texts and exit with 0",
    "unreachable": "see that the server runs, and that its url is right",
}
# Of what ended a life, kept in its status and by who watches it: an error's text is the peer's to choose.
MAX_TEXT_CHARS: Final = 16_384
# Of a server whose headers come from a program: there is nothing to log in to (S245).
HELPER_REMEDY: Final = "its headersHelper printed what the server does not accept: correct that"
# Of one that is not on HTTP, where only headers say who we are (S085).
HEADER_REMEDY: Final = "put the header that it wants into its entry"

_SOCKETS: Final = frozenset({TransportName.WS, TransportName.WS_IDE})


def remedy_for(reason: str, spec: ServerSpec, told: str | None = None) -> str | None:
    """What a person can do about a state; None where nothing need be done.

    Args:
        reason: its reason code.
        spec: the server's definition.
        told: what the error itself says that asked for a login or refused who we are: it knows more.
    """
    if reason in ("needs-auth", "refused") and told is not None:
        return told
    if reason == "needs-auth" and isinstance(spec.target, RemoteTarget):
        if spec.target.headers_helper is not None:
            return HELPER_REMEDY
        if spec.target.transport in _SOCKETS:
            return HEADER_REMEDY
    if reason == "needs-auth":
        return sign_in_remedy(spec.name)
    return REMEDIES.get(reason) or switched_off_remedy(reason, spec.name)


def capability_summary(info: ServerInfo) -> str:
    """Compact JSON of what a server offers, for the log (S351)."""
    resources = info.capabilities.get("resources")
    summary = {f"has{kind.capitalize()}": info.has(kind) for kind in ("tools", "prompts", "resources")}
    summary["hasResourceSubscribe"] = isinstance(resources, Mapping) and resources.get("subscribe") is True
    version = info.implementation.get("version")
    return json.dumps({**summary, "serverVersion": version}, separators=(",", ":"), default=str)


def describe_end(error: BaseException, seen: Diagnostics, connect_timeout: float, faults: Sequence[str] = ()) -> str:
    """What went wrong with a life, in a few lines, with what the server said before.

    Args:
        error: what ended it.
        seen: what its transport knew at the end.
        connect_timeout: seconds that it had for the handshake.
        faults: what the server did wrong and went on; told where there was no answer (fault 72).
    """
    heard = seen.stderr_tail
    if isinstance(error, trio.TooSlowError):
        text = "\n  ! ".join((f"no answer to the handshake within {connect_timeout:g} s", *faults))
    elif isinstance(error, TransportError):
        text, heard = error.describe(), ()  # which tells it already
    elif isinstance(error, AuthRequired):
        text = error.told  # its remedy is told as the remedy
    else:
        text = error.describe() if isinstance(error, McpActorsError) else f"{type(error).__name__}: {error}"
    if len(text) > MAX_TEXT_CHARS:
        text = text[:MAX_TEXT_CHARS] + "…"
    left_out = seen.noise_count - len(seen.noise_tail)
    lines = [
        text,
        *(f"  note: {line}" for line in seen.notes),
        *(f"  | {line}" for line in heard),
        *((f"  stdout: ({left_out} lines before these)",) if left_out > 0 else ()),
        *(f"  stdout: {line}" for line in seen.noise_tail),
    ]
    return "\n".join(lines)
