"""Owns the classification of 401 and 403: whether a login covers it, more scopes can help, or a person is needed. Pure.

What this is not: how a demand is written (`challenge`), or meeting it (`server_auth`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mcp_actors.auth.scopes import is_useless_step
from mcp_actors.errors import AuthRequired

if TYPE_CHECKING:
    from mcp_actors.auth.challenge import Demand
    from mcp_actors.auth.credentials import Credentials

__all__ = ["is_covered", "required", "why_no_step"]


def is_covered(demand: Demand | None, login: Credentials) -> bool:
    """Whether a login that was made meanwhile does: it may what a step up wants; for anything else, being new does."""
    return demand is None or not demand.is_step_up or set(demand.scope or ()) <= set(login.granted)


def why_no_step(demand: Demand, held: Credentials, pinned: tuple[str, ...] | None, *, is_vain: bool) -> str | None:
    """Why asking for more scopes cannot help; None when it may.

    Args:
        demand: the step up.
        held: the login that may not do.
        pinned: ``oauth.scopes`` of the configuration; None: it does not say.
        is_vain: these scopes were asked for before, and it was no use.

    Source:
        D13, S263, fault 66.
    """
    text = " ".join(sorted(set(demand.scope or ()))) or "a scope that it does not name"
    if pinned is not None and not set(demand.scope or ()) <= set(pinned):
        return f"the server wants {text}, which oauth.scopes does not list: add it there"
    if is_vain or is_useless_step(held.scope, held.granted, demand.scope):
        return f"the server wants {text}, which this login has asked for already"
    return None


def required(demand: Demand, held: Credentials | None, remedy: str) -> AuthRequired:
    """What a person has to do.

    Args:
        demand: of the server.
        held: the login that did not do.
        remedy: the command that signs in.
    """
    if not demand.is_step_up or held is None:
        is_first = held is None or held.tokens is None
        why = "the server asks for a login" if is_first else "the login has ended"
        return AuthRequired(reason=why, http_status=demand.status, remedy=remedy)
    why = f"the server wants more: {' '.join(demand.scope or ()) or 'another scope'}"
    wanted = " ".join(dict.fromkeys((*held.granted, *(demand.scope or ()))))
    # Scopes are a server's words: quoted, for who pastes the line into a shell.
    more = f" --scopes {shlex.quote(wanted)}" if wanted.isprintable() else ""
    return AuthRequired(reason=why, http_status=demand.status, remedy=remedy + more)
