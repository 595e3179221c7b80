"""Owns what a model is told of servers whose tools are missing: that they exist, why they are down, what would help.

What this is not: a server's own words. An error may quote what a stranger wrote; only our codes and remedies are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.remedies import MISSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.actors.lifecycle import ServerStatus

__all__ = ["unavailable"]


def unavailable(servers: Mapping[str, ServerStatus]) -> dict[str, str]:
    """Say of each server that is not up, in order, its state, the reason code and the remedy.

    Args:
        servers: name -> status. What a person switched off is not missed, and left out.

    Source:
        S331, S418. A model reads "unavailable, because", never "no such tool".
    """
    return {name: _told(status) for name, status in servers.items() if _is_missed(status)}


def _is_missed(status: ServerStatus) -> bool:
    return not status.is_connected and (status.state is not ServerState.DISABLED or status.reason in MISSED)


def _told(status: ServerStatus) -> str:
    return f"{status.state} ({status.reason})" + (f": {status.remedy}" if status.remedy else "")
