"""What a definition leaves unsaid about restarts is said by whoever runs it."""

from __future__ import annotations

import pytest

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
