"""Owns what a person is told to do about a server by commands of ours; names stand in them as a shell takes them.

What this is not: when that is told (`actors.wording`, `cli.diagnosis`), or what is not ours to do (`actors.wording`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MISSED", "SWITCHED_OFF", "sign_in_remedy", "switched_off_remedy"]

# Reason code of a definition that does not run by somebody's word -> what to do about it (S041).
SWITCHED_OFF: Final[Mapping[str, str]] = {
    "pending-approval": "look at it and allow it: mcp-actors approve {name}, or allow all with --approve-project",
    "rejected": "a settings file rejects it: take its name out of disabledMcpjsonServers",
    "policy": "ask whoever wrote the rule",
    "user": "switch it on: mcp-actors enable {name}",
    "not-configured": "give it a url",
}
# Those of them for which a server is missed by somebody: a project brought it along, or a rule forbids it.
MISSED: Final = frozenset({"pending-approval", "policy"})


def switched_off_remedy(reason: str, name: str) -> str | None:
    """What to do about a definition that does not run for this reason; None where it is none of `SWITCHED_OFF`."""
    remedy = SWITCHED_OFF.get(reason)
    return None if remedy is None else remedy.format(name=shlex.quote(name))


def sign_in_remedy(name: str) -> str:
    """What to do about a server that wants a login (S268)."""
    return f"sign in with: mcp-actors login {shlex.quote(name)}"
