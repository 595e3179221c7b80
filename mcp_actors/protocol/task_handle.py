"""Owns what is needed to find a task again: plain data, to be stored.

What this is not: the course of the task (`tasks`), or an authority: whoever has a handle need not be entitled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.protocol.revisions import REVISIONS
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["TaskHandle", "seconds_in"]


@frozen
class TaskHandle:
    """What is needed to find a task again; plain data, to be stored. Possession is not authority (spec_client 12)."""

    server: str
    task_id: str
    revision: str
    # As the server wrote it.
    created_at: str = ""
    # Seconds that the server keeps it; None for as long as it likes.
    ttl: float | None = None

    def to_json(self) -> JsonObject:
        """Write it as JSON."""
        return {
            "server": self.server,
            "taskId": self.task_id,
            "revision": self.revision,
            "createdAt": self.created_at,
            "ttl": self.ttl,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> TaskHandle:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it did not, or the revision is one that we do not speak.
        """
        match value:
            case {"server": str(server), "taskId": str(task_id), "revision": str(revision), "createdAt": str(created)}:
                if revision in REVISIONS:
                    return cls(server, task_id, revision, created, seconds_in(value.get("ttl"), 1.0))
        raise ValueError("no stored task")


def seconds_in(value: Json, unit: float) -> float | None:
    """Read a length of time; None for what is none. A number too large for its type is one that never ends."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value > 2**53:
        return None
    return float(value) * unit
