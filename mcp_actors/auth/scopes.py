"""Owns which scopes are requested: at first, and when a server wants more. Pure.

What this is not: requesting them (`flow`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_actors.auth.discovery import Discovery

__all__ = ["MAX_STEPS", "first_scope", "is_useless_step", "stepped_scope"]

OFFLINE: Final = "offline_access"
# Authorizations that one operation may cost, the first one included (D13).
MAX_STEPS: Final = 3


def first_scope(
    found: Discovery, *, pinned: tuple[str, ...] | None, demanded: tuple[str, ...] | None
) -> tuple[str, ...]:
    """What is requested at first: configuration, else the server's configured document, else the challenge, else what
    the resource says, else nothing. `offline_access` is added where the authorization server lists it (but not alone:
    an absent scope means the server's default).

    Source:
        MCP, authorization, "Scope Selection Strategy"; D12, S260.
    """
    configured = found.scopes if found.is_configured else None
    scope = tuple(dict.fromkeys(pinned or configured or demanded or found.scopes or ()))
    if scope and OFFLINE in (found.server.scopes or ()) and OFFLINE not in scope:
        scope = (*scope, OFFLINE)
    return scope


def stepped_scope(requested: tuple[str, ...], demanded: tuple[str, ...] | None) -> tuple[str, ...]:
    """What is requested when a server wants more: both, so that nothing that worked stops working (D13, fault 66)."""
    return tuple(dict.fromkeys((*requested, *(demanded or ()))))


def is_useless_step(
    requested: tuple[str, ...], granted: tuple[str, ...] | None, demanded: tuple[str, ...] | None
) -> bool:
    """Whether asking again cannot help: all that is demanded was granted or asked for already (fault 66)."""
    return set(demanded or ()) <= {*requested, *(granted or ())}
