"""Owns what the last lives of a server showed of its era, for its next handshake.

What this is not: a pin, which an entry makes and nothing leaves; nor the finding out (`protocol.handshake`).

Rules (spec_client 3.3).
Rule 1: what is remembered is an assumption: it spares a server its probe, and goes when a handshake by it fails.
Rule 2: a legacy verdict is believed for a day: a stale one would work silently for ever.
Rule 3: a fresh start, by a person's command, remembers nothing.

Source: A06.
"""

from __future__ import annotations

from typing import Final

from mcp_actors.protocol.types import Era
from mcp_actors.values import frozen

__all__ = ["RememberedEra"]

LEGACY_VERDICT_LIFE: Final = 24 * 3600.0


@frozen
class RememberedEra:
    """The era that a handshake found, and when, in seconds on trio's clock; None where nothing is known."""

    era: Era | None = None
    since: float = 0.0

    def at(self, now: float) -> Era | None:
        """What may be assumed at this moment."""
        is_stale = self.era is Era.LEGACY and now - self.since >= LEGACY_VERDICT_LIFE
        return None if is_stale else self.era

    def shown(self, era: Era, now: float) -> RememberedEra:
        """What to remember after a handshake: an assumption that held is no younger for it (rule 2)."""
        return self if era is Era.LEGACY and self.at(now) is era else RememberedEra(era, now)
