"""Owns the small values that every room speaks of: ids, eras, frames, a server's self-description.

What this is not: the wire format (`jsonrpc`) or the state of a conversation (`session`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeAlias

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject

__all__ = [
    "Era",
    "Frame",
    "Refusal",
    "RequestId",
    "ServerInfo",
]

# An id keeps its JSON type: 1 is not "1" (A14).
RequestId: TypeAlias = int | str


class Era(enum.StrEnum):
    """How a revision holds state: legacy has sessions, modern is stateless."""

    LEGACY = "legacy"
    MODERN = "modern"


@frozen(eq=False)
class Frame:
    """One outgoing message with its mirrored values. Transports move it and read nothing inside `data`."""

    # One JSON text in UTF-8, without a line end.
    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    # The id that an answer will carry; None for notifications and for our own answers.
    request_id: RequestId | None = None
    # Method of a request or notification; None for our own answers.
    method: str | None = None
    # Header name -> value, for transports that have headers (B02, C08); never holds a secret.
    headers: tuple[tuple[str, str], ...] = ()


@frozen(eq=False)
class Refusal:
    """An HTTP answer that is not an MCP message: what the session needs to judge it (spec_client 3.5, C10)."""

    status: int
    # Lower-case media type without parameters; empty when the peer sent none.
    content_type: str = ""
    # At most 64 KiB of it.
    body: bytes = field(default=b"", repr=False)
    # Whether our request carried a wire session id (C04).
    had_session: bool = False
    # Value of WWW-Authenticate, all challenges joined by ", ".
    challenge: str | None = field(default=None, repr=False)
    # Seconds from Retry-After, None when absent or unreadable.
    retry_after: float | None = None
    # Where it came from, without query and credentials, for messages.
    url: str = ""


@frozen
class ServerInfo:
    """What a server said of itself in the handshake; untrusted (E05, S112).

    `capabilities` maps capability name -> settings, as sent. `implementation` is ``{"name": ..., "version": ...}``.
    """

    revision: str
    era: Era
    capabilities: JsonObject = field(factory=dict)
    implementation: JsonObject = field(factory=dict)
    instructions: str | None = None

    def has(self, capability: str) -> bool:
        """Whether the server declared this top-level capability (fault 69)."""
        return capability in self.capabilities

    @property
    def name(self) -> str | None:
        """The server's own name; for display only."""
        name = self.implementation.get("name")
        return name if isinstance(name, str) else None
