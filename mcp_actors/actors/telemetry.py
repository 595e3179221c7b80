"""Owns what a change of a server's state is for telemetry: the event ``mcp_server_connection``, in the field's names.

What this is not: sending it, nor the change itself (`StatusChange`). No secrets; names only where asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.config.specs import Scope

if TYPE_CHECKING:
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.actors.registry import StatusChange
    from mcp_actors.jsontypes import Json

__all__ = ["connection_event"]

EVENT: Final = "mcp_server_connection"
# Ends that somebody wanted: they have no error code.
_WANTED: Final = frozenset({ServerState.DISABLED, None})


def connection_event(change: StatusChange, *, has_names: bool = False) -> dict[str, Json] | None:
    """Tell a change as the event of a connection.

    Args:
        change: as a watcher gives it.
        has_names: say which server it is; without that an event may leave the machine.

    Returns:
        ``event``, ``status`` (connected, failed or disconnected), ``transport_type``, ``server_scope``, ``is_plugin``;
        ``duration_ms`` of a connect, ``error_code`` (our reason code) of what went wrong, ``server_name`` where asked
        for. None: the change is about no connection.

    Source:
        S364.
    """
    was_up = change.old is not None and change.old.is_connected
    about = change.new or change.old
    status = _status(was_up, change.old, change.new)
    if status is None or about is None:
        return None
    event: dict[str, Json] = {
        "event": EVENT,
        "status": status,
        "transport_type": about.transport,
        "server_scope": about.scope,
        "is_plugin": about.scope == Scope.PLUGIN,
    }
    if status == "connected":
        event["duration_ms"] = round(((about.connect_seconds or 0.0) + (about.list_seconds or 0.0)) * 1000)
    elif (None if change.new is None else change.new.state) not in _WANTED:
        event["error_code"] = about.reason
    return {**event, "server_name": change.name} if has_names else event


def _status(was_up: bool, old: ServerStatus | None, new: ServerStatus | None) -> str | None:
    if new is not None and new.is_connected:
        is_same = old is not None and old.is_connected and old.generation == new.generation
        return None if is_same else "connected"
    if was_up:
        return "disconnected"
    if new is None or not _is_failure(new) or (old is not None and _is_failure(old) and old.attempt == new.attempt):
        return None
    return "failed"


def _is_failure(status: ServerStatus) -> bool:
    """Whether a try has failed: for good, for want of a login, or until the next one."""
    return status.state in (ServerState.FAILED, ServerState.NEEDS_AUTH) or status.phase is Phase.BACKING_OFF
