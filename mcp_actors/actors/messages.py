"""Owns the messages of the actors: frozen pure data, imperative for what is wanted, past tense for what happened.

What this is not: tool calls. Those do not queue here; see `connection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_actors.actors.mailbox import Ask
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.tools.catalog import Tool

__all__ = [
    "AddServer",
    "ApplySpecs",
    "DisableServer",
    "EnableServer",
    "EnsureConnected",
    "Flush",
    "Listing",
    "RegistryMessage",
    "RemoveServer",
    "Reorder",
    "RestartServer",
    "ServerListed",
    "ServerRemoved",
    "StatusChanged",
    "Stop",
    "SupervisorMessage",
]


# ── to the supervisor ────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class AddServer(Ask[None]):
    """Run this server too; a spec of a known name replaces it. Answered when it is adopted, not when it is up."""

    spec: ServerSpec


@frozen
class RemoveServer(Ask[None]):
    """Stop this server and forget it. Answered when nothing of it lives."""

    name: str


@frozen
class ApplySpecs(Ask[None]):
    """Run what another configuration says. Answered when what was removed is gone and the others are adopted.

    A server in `put` that runs already gets another generation: new calls wait, those in flight have `drain` seconds.
    """

    # New and changed servers, in configuration order.
    put: tuple[ServerSpec, ...] = ()
    # Names.
    removed: tuple[str, ...] = ()
    # Names of all servers, in configuration order.
    order: tuple[str, ...] = ()
    # Seconds.
    drain: float = 0.0


@frozen
class RestartServer(Ask[None]):
    """Stop this server and start it with a clean history. Answered when the new life has begun to queue."""

    name: str


@frozen
class EnableServer(Ask[None]):
    """Run a server that was disabled."""

    name: str


@frozen
class DisableServer(Ask[None]):
    """Stop this server and keep it stopped. Answered when nothing of it lives."""

    name: str
    reason: str = "user"


@frozen
class EnsureConnected(Ask["Connection"]):
    """Bring this server up if it may be, joining what is under way (S125). Answered with its connection."""

    name: str


@frozen
class Stop(Ask[None]):
    """Stop all servers, in parallel. Answered when nothing of them lives."""


SupervisorMessage: TypeAlias = (
    AddServer | RemoveServer | ApplySpecs | RestartServer | EnableServer | DisableServer | EnsureConnected | Stop
)


# ── to the registry ──────────────────────────────────────────────────────────────────────────────────────────────────


@frozen(eq=False)
class Listing:
    """What one connection listed: whole lists, replacing what was known of the server (S367).

    A list is None where the server does not offer its kind (fault 69), or where it could not be fetched yet.
    """

    tools: tuple[Tool, ...] | None = None
    # Undecoded items, in the server's order.
    resources: tuple[bytes, ...] | None = None
    prompts: tuple[bytes, ...] | None = None
    # What was wrong with the lists, for people.
    warnings: tuple[str, ...] = ()


@frozen(eq=False)
class StatusChanged:
    """A server's status changed; `connection` takes its calls while it is connected."""

    status: ServerStatus
    connection: Connection | None = None


@frozen(eq=False)
class ServerListed:
    """A connection fetched its lists, at first or again."""

    server: str
    generation: int
    listing: Listing


@frozen(eq=False)
class ServerRemoved:
    """A server is configured no more."""

    name: str


@frozen
class Reorder:
    """The configuration has another order now: names of its servers. Those that it does not name come last."""

    names: tuple[str, ...]


@frozen
class Flush(Ask[None]):
    """Publish now what was told before. Answered when it is published."""

    # Names of servers that the asker awaits: when the last one of them has been tried, that is published at once, too.
    awaited: tuple[str, ...] = ()


RegistryMessage: TypeAlias = StatusChanged | ServerListed | ServerRemoved | Reorder | Flush
