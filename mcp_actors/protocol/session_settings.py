"""Owns what a session is told about us, and the names of its states.

What this is not: numbers of the runtime (`config.settings`); these are towards one server.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.protocol.outbound import Composer, compose_initialize
from mcp_actors.protocol.recovery import SessionExpiry
from mcp_actors.protocol.revisions import REVISIONS
from mcp_actors.values import frozen
from mcp_actors.version import VERSION

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import Era, Frame, RequestId

__all__ = ["SessionSettings", "SessionState"]


class SessionState(enum.StrEnum):
    """Where the conversation stands."""

    IDLE = "IDLE"
    PROBING = "PROBING"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    FAILED = "FAILED"
    CLOSED = "CLOSED"


def _own_name() -> JsonObject:
    return {"name": "mcp-actors", "version": VERSION}


@frozen
class SessionSettings:
    """What we are and what we can, towards one server."""

    # Messages travel as HTTP requests: mirrored headers, and the HTTP rules of the probe.
    is_http: bool = False
    # By the server's entry, and never left; None: find out.
    pinned_era: Era | None = None
    # What an earlier handshake found: an assumption, which a refusal ends (A06).
    remembered_era: Era | None = None
    # `name` and `version`, for the server's logs (S109).
    client_info: JsonObject = field(factory=_own_name)
    # The least severe log message that every modern request asks for; None: none is wanted (F13).
    log_level: str | None = None
    # Only what a handler exists for (S110).
    capabilities: JsonObject = field(factory=dict)
    # Server requests that become events; all others are answered -32601.
    handled_methods: frozenset[str] = frozenset()
    # By what evidence a wire session counts as lost (S407).
    session_expiry: SessionExpiry = SessionExpiry.DUAL
    # Silence that means legacy on stdio-like wires; None on HTTP, where it means an outage (spec_client 3.4, 3.5).
    probe_timeout: float | None = None
    # Cancelled requests whose late answers are still recognised: more than one burst of calls.
    max_tombstones: int = 1024
    # Server requests that are open at once; more are refused.
    max_server_requests: int = 256
    # Messages in one array: enough for any real batch, and one array cannot hold the loop for long.
    max_batch: int = 1000
    # Frames that wait to be drained; one receive makes at most a batch of them.
    max_outbox: int = 1024

    def composer_for(self, revision: str) -> Composer:
        """Make what writes our messages in this revision."""
        return Composer(REVISIONS[revision], self.is_http, self.capabilities, self.client_info, self.log_level)

    def compose_initialize(self, request_id: RequestId, revision: str) -> Frame:
        """Make the legacy handshake request."""
        return compose_initialize(request_id, revision, self.capabilities, self.client_info)
