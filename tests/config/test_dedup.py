"""Tests of `config.dedup`."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve

from mcp_actors.config.dedup import deduplicate
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget

LOCAL_TARGET, REMOTE_TARGET = StdioTarget("x", ("y",), {"A": "b"}), RemoteTarget("https://h/mcp")


def reading(scope: Scope, *specs: ServerSpec, rank: int = 0, file: str = "f") -> SourceReading:
    return SourceReading(scope, file, rank, tuple(evolve(spec, scope=scope, source=file) for spec in specs))


def names(scope: Scope, *readings: SourceReading, **options: object) -> list[str]:
    left = deduplicate(readings, **options).readings
    return [spec.name for item in left for spec in item.specs if spec.scope is scope]


MANUAL = [Scope.USER, Scope.PROJECT, Scope.LOCAL, Scope.DYNAMIC]


@pytest.mark.parametrize("target", [LOCAL_TARGET, REMOTE_TARGET])
@pytest.mark.parametrize("scope", MANUAL)
def test_plugin_server_gives_way_to_a_manual_one(scope: Scope, target: object) -> None:
    """The same endpoint under another name suppresses the plugin's, with a record (S021)."""
    plugin = reading(Scope.PLUGIN, ServerSpec(name="plugin:p:s", target=target))
    manual = reading(scope, ServerSpec(name="s", target=target))

    for order in itertools.permutations([plugin, manual]):
        result = deduplicate(order)

        assert [spec.name for item in result.readings for spec in item.specs] == ["s"]
        [lost] = result.suppressed
        assert (lost.name, lost.winner, lost.by, lost.is_different) == ("plugin:p:s", "s", "endpoint", False)


@pytest.mark.parametrize(
    "other",
    [
        StdioTarget("x", ("y",), {"A": "c"}),
        StdioTarget("x", ("y",)),
        StdioTarget("x", ("y", "z"), {"A": "b"}),
        RemoteTarget("https://h/mcp2"),
    ],
)
def test_different_endpoints_stay(other: object) -> None:
    """Another env, argument or address is another server (S021)."""
    plugin = reading(Scope.PLUGIN, ServerSpec(name="plugin:p:s", target=LOCAL_TARGET))

    assert names(Scope.PLUGIN, plugin, reading(Scope.USER, ServerSpec(name="s", target=other))) == ["plugin:p:s"]


def test_first_loaded_plugin_wins() -> None:
    """Of two plugins with one endpoint the one loaded first stays, whatever the order given (S021)."""
    first = reading(Scope.PLUGIN, ServerSpec(name="plugin:a:s", target=LOCAL_TARGET), rank=1, file="a")
    second = reading(Scope.PLUGIN, ServerSpec(name="plugin:b:s", target=LOCAL_TARGET), rank=2, file="b")

    assert names(Scope.PLUGIN, second, first) == ["plugin:a:s"]


def test_connector_gives_way_by_url() -> None:
    """A connector whose address is a manual server's is hidden, headers aside; a plugin's address hides none (S022)."""
    connector = reading(Scope.CLAUDEAI, ServerSpec(name="claude.ai X", target=REMOTE_TARGET))
    same = ServerSpec(name="x", target=evolve(REMOTE_TARGET, headers={"A": "b"}))

    assert names(Scope.CLAUDEAI, connector, reading(Scope.USER, same)) == []
    assert names(Scope.CLAUDEAI, connector, reading(Scope.PLUGIN, same)) == ["claude.ai X"]


def test_server_that_waits_for_a_login_hides_no_connector() -> None:
    """A manual server stuck in needs-auth leaves the connector alone (S022)."""
    connector = reading(Scope.CLAUDEAI, ServerSpec(name="claude.ai X", target=REMOTE_TARGET))
    manual = reading(Scope.USER, ServerSpec(name="x", target=REMOTE_TARGET))

    assert names(Scope.CLAUDEAI, connector, manual, needs_auth={"x"}) == ["claude.ai X"]


def test_what_does_not_run_suppresses_nothing() -> None:
    """A disabled manual server leaves the plugin's in place, and a disabled plugin server stays listed."""
    off = ServerSpec(name="s", target=LOCAL_TARGET, is_enabled=False)
    plugin = ServerSpec(name="plugin:p:s", target=LOCAL_TARGET)

    assert names(Scope.PLUGIN, reading(Scope.USER, off), reading(Scope.PLUGIN, plugin)) == ["plugin:p:s"]
    assert names(
        Scope.PLUGIN,
        reading(Scope.USER, evolve(off, is_enabled=True)),
        reading(Scope.PLUGIN, evolve(plugin, is_enabled=False)),
    ) == ["plugin:p:s"]


def test_equal_names_are_left_to_the_merge() -> None:
    """Precedence between equal names is not decided here."""
    plugin = reading(Scope.PLUGIN, ServerSpec(name="s", target=LOCAL_TARGET))
    manual = reading(Scope.USER, ServerSpec(name="s", target=LOCAL_TARGET))

    assert deduplicate([plugin, manual]).suppressed == ()
