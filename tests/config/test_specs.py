"""What a definition leaves unsaid about restarts is said by whoever runs it."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.config.specs import (
    LIBRARY_RESTARTS,
    SERVICE_RESTARTS,
    InProcessTarget,
    RemoteTarget,
    RestartDefaults,
    RestartPolicy,
    RestartType,
    ServerSpec,
    StdioTarget,
    Target,
)
from mcp_actors.errors import ConfigError


async def nobody(link: object) -> None:
    """Serve nothing."""


LOCAL, INSIDE, REMOTE = StdioTarget("npx"), InProcessTarget(nobody), RemoteTarget("https://h.example.com/mcp")
ROWS: list[tuple[RestartDefaults, Target, RestartType]] = [
    (LIBRARY_RESTARTS, LOCAL, RestartType.TEMPORARY),
    (LIBRARY_RESTARTS, INSIDE, RestartType.TEMPORARY),
    (LIBRARY_RESTARTS, REMOTE, RestartType.PERMANENT),
    (SERVICE_RESTARTS, LOCAL, RestartType.TRANSIENT),
    (SERVICE_RESTARTS, INSIDE, RestartType.TRANSIENT),
    (SERVICE_RESTARTS, REMOTE, RestartType.PERMANENT),
]


@pytest.mark.parametrize(("defaults", "target", "kind"), ROWS)
def test_the_restart_type_follows_the_batch_and_who_runs_it(
    defaults: RestartDefaults, target: Target, kind: RestartType
) -> None:
    """S117, S118, S120: a library leaves a dead program to the next call, a service starts it again."""
    assert defaults.fill(ServerSpec("a", target)).restart is kind


@pytest.mark.parametrize("defaults", [LIBRARY_RESTARTS, SERVICE_RESTARTS])
@pytest.mark.parametrize("kind", RestartType)
def test_a_definition_has_the_last_word(defaults: RestartDefaults, kind: RestartType) -> None:
    """What an entry says of type, jitter and probes holds whoever runs it."""
    policy = RestartPolicy(has_jitter=False, park_probe=7.0)
    spec = ServerSpec("a", LOCAL, restart_type=kind, restart_policy=policy)

    assert defaults.fill(spec) == spec


def test_a_service_spreads_and_probes() -> None:
    """S116, S118, fault 90: off in the deterministic default, on in a service; other numbers stay."""
    spec = ServerSpec("a", REMOTE, restart_policy=RestartPolicy(intensity=9))

    library, service = (each.fill(spec).restart_policy for each in (LIBRARY_RESTARTS, SERVICE_RESTARTS))
    assert (library.has_jitter, library.park_probe, library.intensity) == (False, None, 9)
    assert (service.has_jitter, service.park_probe, service.intensity) == (True, 300.0, 9)


NONSENSE = [
    lambda: ServerSpec(5, LOCAL),
    lambda: ServerSpec("", LOCAL),
    lambda: ServerSpec("a", None),
    lambda: ServerSpec("a", "npx"),
    lambda: ServerSpec("a", LOCAL, call_timeout=float("nan")),
    lambda: ServerSpec("a", LOCAL, connect_timeout="5"),
    lambda: ServerSpec("a", LOCAL, request_timeout=-1.0),
    lambda: evolve(ServerSpec("a", LOCAL), target=None),
    lambda: StdioTarget(5),
    lambda: StdioTarget("npx", "-y"),
    lambda: StdioTarget("npx", (6,)),
    lambda: StdioTarget("npx", environment={"A": 5}),
    lambda: StdioTarget("npx", environment=["A"]),
    lambda: StdioTarget("npx", cwd=5),
    lambda: RemoteTarget(None),
    lambda: RemoteTarget("https://h.example.com/mcp", "http"),
    lambda: RemoteTarget("https://h.example.com/mcp", headers={"A": None}),
    lambda: RemoteTarget("https://h.example.com/mcp", headers="A: b"),
    lambda: RemoteTarget("https://h.example.com/mcp", headers_helper=5),
    lambda: InProcessTarget(None),
]


@pytest.mark.parametrize("make", NONSENSE)
def test_a_definition_that_is_none_is_refused_where_it_is_made(make) -> None:
    """Whoever makes it learns it, and no actor ever sees it; the error shows no value (S354)."""
    with pytest.raises(ConfigError) as refused:
        make()

    assert "npx" not in str(refused.value)
