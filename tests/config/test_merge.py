"""Tests of `config.merge`."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.merge import PRECEDENCE, endpoint_of, merge
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, Scope, ServerSpec, StdioTarget


def spec(name: str, scope: Scope, command: str = "x", file: str = "f", reason: str | None = None) -> ServerSpec:
    return ServerSpec(
        name=name,
        target=StdioTarget(command),
        scope=scope,
        source=file,
        is_enabled=reason is None,
        disabled_reason=reason or "user",
    )


def reading(*specs: ServerSpec, rank: int = 0) -> SourceReading:
    return SourceReading(specs[0].scope, specs[0].source, rank, specs)


@pytest.mark.parametrize(("lower", "higher"), list(combinations(PRECEDENCE, 2)), ids=lambda scope: str(scope))
def test_each_pair_of_scopes_has_a_winner(lower: Scope, higher: Scope) -> None:
    """claudeai < plugin < user < project < local < dynamic, whole entries, whatever comes first (S017-S019, S008)."""
    low = ServerSpec(name="s", target=StdioTarget("low", environment={"A": "1"}), scope=lower, source="low")
    high = ServerSpec(name="s", target=RemoteTarget("http://high"), scope=higher, source="high")

    for order in permutations([reading(low), reading(high)]):
        merged = merge(order)

        assert merged.specs == (high,)
        assert [(lost.scope, lost.winner_scope, lost.is_different) for lost in merged.shadowed] == [
            (lower, higher, True)
        ]


def test_nearest_file_wins_within_a_scope() -> None:
    """Among sources of one scope the rank decides (S011, S039)."""
    far, near = spec("s", Scope.PROJECT, file="/a"), spec("s", Scope.PROJECT, file="/a/b")

    merged = merge([reading(near, rank=0), reading(far, rank=-1)])

    assert merged.specs == (near,)
    assert [(lost.source, lost.winner_source, lost.is_different) for lost in merged.shadowed] == [("/a", "/a/b", False)]


@pytest.mark.parametrize(
    ("reason", "winner"),
    [(None, Scope.PROJECT), ("user", Scope.PROJECT), ("pending-approval", Scope.USER), ("rejected", Scope.USER)],
)
def test_what_may_not_run_hides_nothing(reason: str | None, winner: Scope) -> None:
    """Only an approved project server enters the merge; one its owner switched off still overrides (S017)."""
    merged = merge([reading(spec("s", Scope.USER)), reading(spec("s", Scope.PROJECT, reason=reason))])

    assert [kept.scope for kept in merged.specs] == [winner]
    assert len(merged.shadowed) == 1


def test_pending_server_stays_visible() -> None:
    """A pending server that hides nobody is in the table, disabled."""
    pending = spec("s", Scope.PROJECT, reason="pending-approval")

    assert merge([reading(pending)]).specs == (pending,)


def test_three_definitions_of_one_name() -> None:
    """docs in user, project and local gives one server and two shadowed definitions (fault 28, S020, S043)."""
    scopes = [Scope.USER, Scope.PROJECT, Scope.LOCAL]
    merged = merge(reading(spec("docs", scope, command=scope)) for scope in scopes)

    assert [kept.scope for kept in merged.specs] == [Scope.LOCAL]
    assert [(lost.scope, lost.winner_scope) for lost in merged.shadowed] == [
        (Scope.USER, Scope.LOCAL),
        (Scope.PROJECT, Scope.LOCAL),
    ]


readings = st.lists(
    st.builds(
        lambda scope, rank, names: SourceReading(
            scope,
            f"{scope}{rank}",
            rank,
            tuple(
                spec(name, scope, f"{scope}{rank}{name}", f"{scope}{rank}", reason) for name, reason in names.items()
            ),
        ),
        st.sampled_from(list(Scope)),
        st.integers(-2, 2),
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([None, "user", "pending-approval"]), max_size=4),
    ),
    max_size=6,
    unique_by=lambda item: (item.scope, item.rank),
)


@given(readings, st.randoms())
def test_order_of_readings_changes_nothing(sources: list[SourceReading], chance: object) -> None:
    """Equal sets of readings give equal tables, order included."""
    shuffled = list(sources)
    chance.shuffle(shuffled)

    assert merge(shuffled) == merge(sources)


@given(readings)
def test_entries_win_whole_and_none_is_lost(sources: list[SourceReading]) -> None:
    """Every winner is one of the given specs, names are unique, and each given spec has won or is reported."""
    given_specs = [item for source in sources for item in source.specs]

    merged = merge(sources)

    assert all(kept in given_specs for kept in merged.specs)
    assert {kept.name for kept in merged.specs} == {item.name for item in given_specs}
    assert len(merged.specs) + len(merged.shadowed) == len(given_specs)


async def serve(link: object) -> None:
    """A stand-in for an in-process server."""


def test_endpoints_tell_servers_apart() -> None:
    """The url, or command, args and env, or the very object, make a server the same one (S021)."""
    targets = [
        RemoteTarget("http://a"),
        RemoteTarget("http://b"),
        StdioTarget("a"),
        StdioTarget("a", ("b",)),
        StdioTarget("a", environment={"b": "c"}),
        InProcessTarget(serve),
    ]

    assert len({endpoint_of(target) for target in targets}) == len(targets)
    assert endpoint_of(RemoteTarget("http://a", headers={"x": "y"})) == endpoint_of(RemoteTarget("http://a"))
