"""What is remembered of a server's era, and for how long."""

from __future__ import annotations

from mcp_actors.actors.remembered_era import LEGACY_VERDICT_LIFE, RememberedEra
from mcp_actors.protocol.types import Era


def test_an_assumption_that_holds_is_no_younger_for_it():
    """A server that reconnects twice a day is probed again after a day all the same (spec_client 3.3)."""
    known, probes = RememberedEra(), 0
    for now in range(0, 10 * int(LEGACY_VERDICT_LIFE), int(LEGACY_VERDICT_LIFE) // 2):
        probes += known.at(now) is None
        known = known.shown(Era.LEGACY, now)

    assert probes == 10


def test_what_a_handshake_found_takes_the_place_of_what_was_remembered():
    """Modern is remembered for good; a legacy verdict after it begins its day then."""
    modern = RememberedEra(Era.LEGACY, 0.0).shown(Era.MODERN, 10.0)

    assert modern.at(10.0 + 2 * LEGACY_VERDICT_LIFE) is Era.MODERN
    assert modern.shown(Era.LEGACY, 20.0) == RememberedEra(Era.LEGACY, 20.0)
