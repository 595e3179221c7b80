"""Owns the memory of which servers without a named transport speak HTTP+SSE, for the later connections of one runtime.

What this is not: finding it out (`fallback`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.config.specs import ServerSpec

__all__ = ["Found"]


@define
class Found:
    """Which servers turned out to speak the older transport. One per runtime, as large as the fleet at most."""

    # Fingerprints of specs: a changed one is looked at anew.
    _older: set[str] = field(factory=set)

    def is_older(self, spec: ServerSpec) -> bool:
        """Whether the last look at this server found HTTP+SSE."""
        return spec.fingerprint() in self._older

    def remember(self, spec: ServerSpec, *, is_older: bool) -> None:
        """Keep what was found."""
        (self._older.add if is_older else self._older.discard)(spec.fingerprint())
