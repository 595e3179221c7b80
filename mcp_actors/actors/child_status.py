"""Owns the public status of one child: moves it along the table of states, tells the registry, wakes who waits for it.

What this is not: a decision. `child` decides and moves it; the table is `lifecycle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus, advance
from mcp_actors.actors.messages import StatusChanged
from mcp_actors.actors.wording import remedy_for
from mcp_actors.errors import AuthRequired, ServerNotReady

if TYPE_CHECKING:
    from typing import Unpack

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.lifecycle import StatusChanges
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.config.specs import ServerSpec

__all__ = ["ChildStatus"]


class ChildStatus:
    """The status of one server under supervision. Moved by its child only; read and waited for by anybody."""

    def __init__(self, spec: ServerSpec, registry: Ref[RegistryMessage], *, generation: int = 0) -> None:
        self.status = _first_status(spec, generation)
        # What the error that ended the last life says itself that a person can do.
        self.last_remedy: str | None = None
        self._spec = spec
        self._registry = registry
        # Rung at each move.
        self._moved = Bell()

    async def move(
        self,
        state: ServerState,
        phase: Phase,
        reason: str,
        *,
        connection: Connection | None = None,
        **changes: Unpack[StatusChanges],
    ) -> None:
        """Go there and tell it.

        Args:
            connection: what takes the calls from now on.
            changes: other fields of `ServerStatus` to set.

        Raises:
            LocalProtocolError: the table has no such transition; nothing was changed.
        """
        changes["remedy"] = remedy_for(reason, self._spec, self.last_remedy)
        self.status = advance(self.status, state, phase, reason, now=trio.current_time(), **changes)
        self._moved.ring()
        await self._registry.tell(StatusChanged(self.status, connection))

    def nudge(self) -> None:
        """Have whoever waits look again."""
        self._moved.ring()

    async def moved(self) -> None:
        """Wait for the next move or nudge. Cancellation: safe."""
        await self._moved.wait()

    def not_ready(self) -> ServerNotReady | AuthRequired:
        """Why the server takes no calls, as an error (S100, S417)."""
        status = self.status
        if status.state is ServerState.NEEDS_AUTH:
            reason = status.error or "the server asks for a login"
            return AuthRequired(server=status.name, reason=reason, remedy=status.remedy)
        reason = status.reason if status.error is None else f"{status.reason}: {status.error}"
        return ServerNotReady(server=status.name, state=status.state, reason=reason, remedy=status.remedy)


def _first_status(spec: ServerSpec, generation: int) -> ServerStatus:
    now = trio.current_time()
    if spec.is_enabled:
        state, phase, reason, error, remedy = ServerState.PENDING, Phase.QUEUED, "queued", None, None
    else:
        state, phase, reason = ServerState.DISABLED, Phase.STOPPED, spec.disabled_reason
        error, remedy = spec.disabled_detail or None, remedy_for(spec.disabled_reason, spec)
    return ServerStatus(
        name=spec.name,
        state=state,
        phase=phase,
        reason=reason,
        transport=spec.transport,
        scope=spec.scope,
        since=now,
        generation=generation,
        error=error,
        remedy=remedy,
    )
