"""What is remembered of servers that named no transport."""

from __future__ import annotations

from attrs import evolve

from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec
from mcp_actors.transports.found import Found

SPEC = ServerSpec("s", RemoteTarget("http://h/sse", is_guess=True))


def test_found():
    """A finding holds for its spec wherever that came from, not for a changed one, and can be taken back."""
    found = Found()
    assert not found.is_older(SPEC)

    found.remember(SPEC, is_older=True)
    assert found.is_older(evolve(SPEC, scope=Scope.USER, source="elsewhere"))
    assert not found.is_older(evolve(SPEC, target=RemoteTarget("http://h/mcp", is_guess=True)))

    found.remember(SPEC, is_older=False)
    assert not found.is_older(SPEC)
