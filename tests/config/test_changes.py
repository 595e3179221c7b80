"""What another configuration changes, and what of a broken one is kept."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.config.changes import Applied, compare, is_same, keep_last_good
from mcp_actors.config.choices import Choices
from mcp_actors.config.loaded import LoadedConfig, assemble
from mcp_actors.config.policy import Policy
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import Scope, ServerSpec, StdioTarget
from mcp_actors.errors import ConfigError
from mcp_actors.tools.naming import normalise

FILE, OTHER = "/a.json", "/b.json"


def spec(name: str, command: str = "x", scope: Scope = Scope.DYNAMIC, file: str = FILE) -> ServerSpec:
    return ServerSpec(name, StdioTarget(command), scope=scope, source=file)


def reading(*specs: ServerSpec, scope: Scope = Scope.DYNAMIC, file: str = FILE, rank: int = 0, **more: object):
    return SourceReading(scope, file, rank, specs, **more)  # type: ignore[arg-type]


def fault(server: str | None = None, file: str = FILE) -> ConfigError:
    return ConfigError(server=server, file=file, reason="broken")


def put_together(*readings: SourceReading, choices: Choices | None = None) -> LoadedConfig:
    return assemble(readings, choices or Choices(), normalise)


def names(loaded: LoadedConfig) -> list[str]:
    return [each.name for each in loaded.specs]


ONE = spec("one")
OFF = evolve(ONE, is_enabled=False, disabled_reason="policy", disabled_detail="rule 1")


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (evolve(ONE), True),
        (evolve(ONE, source="/elsewhere", scope=Scope.USER), True),
        (evolve(ONE, raw={"command": "${X}"}), True),
        (evolve(ONE, target=StdioTarget("y")), False),
        (evolve(ONE, target=StdioTarget("x", environment={"A": "1"})), False),
        (evolve(ONE, call_timeout=1.0), False),
        (OFF, False),
    ],
)
def test_only_what_decides_how_it_runs_counts(new: ServerSpec, expected: bool) -> None:
    """S038: where a definition stands, and how it is written, is no change of it (S114)."""
    assert is_same(ONE, new) is expected


def test_a_stopped_server_is_the_same_while_its_reason_is() -> None:
    """State has a reason (invariant 7): another rule of the policy is told."""
    assert is_same(OFF, evolve(OFF))
    assert not is_same(OFF, evolve(OFF, disabled_detail="rule 2"))
    assert not is_same(OFF, evolve(OFF, disabled_reason="rejected", disabled_detail=""))


def test_names_come_in_the_order_of_the_new_configuration() -> None:
    """Invariant 10; those that are gone come in the old order."""
    old = {name: spec(name) for name in "abcde"}
    new = {"e": spec("e"), "x": spec("x"), "b": spec("b", "y"), "w": spec("w"), "a": spec("a", "y")}

    changes = compare(old, new)

    assert changes == Applied(added=("x", "w"), removed=("c", "d"), changed=("b", "a"), unchanged=("e",))
    assert str(changes) == "2 added (x, w), 2 changed (b, a), 2 removed (c, d), 1 unchanged"


def test_a_sound_configuration_is_taken_as_it_is() -> None:
    """Nothing is kept where nothing is broken: removed is removed."""
    old, new = put_together(reading(spec("a"), spec("b"))), put_together(reading(spec("b")))

    assert keep_last_good(old, new, normalise) is new


def test_a_file_that_breaks_keeps_its_servers_and_others_change() -> None:
    """Rule 2: the problem is told, the other file's edit counts."""
    old = put_together(reading(spec("a")), reading(spec("b", file=OTHER), file=OTHER, rank=1))
    new = put_together(
        reading(problems=(fault(),)), reading(spec("b", "y", file=OTHER), spec("c", file=OTHER), file=OTHER, rank=1)
    )

    kept = keep_last_good(old, new, normalise)
    again = keep_last_good(kept, new, normalise)
    mended = keep_last_good(again, put_together(reading(spec("d"))), normalise)

    assert sorted(names(kept)) == sorted(names(again)) == ["a", "b", "c"]
    assert [each.target for each in kept.specs if each.name == "b"] == [StdioTarget("y")]
    assert len(kept.problems) == len(again.problems) == 1
    assert (names(mended), mended.problems) == (["d"], ())


def test_an_entry_that_breaks_keeps_what_it_said() -> None:
    """Rule 2, for one entry: its neighbours change, it goes on; one that was never good stays out."""
    old = put_together(reading(spec("a"), spec("b")))
    new = put_together(reading(spec("b", "y"), problems=(fault("a"), fault("never"))))

    kept = keep_last_good(old, new, normalise)

    assert sorted(names(kept)) == ["a", "b"]
    assert [problem.server for problem in kept.problems] == ["a", "never"]


def test_a_file_with_servers_of_two_scopes_keeps_both_and_its_choices() -> None:
    """`~/.claude.json` holds user and local servers, and what was switched off in a project."""
    choices = Choices(switched_off=frozenset({"u"}))
    old = put_together(
        reading(spec("u", scope=Scope.USER), scope=Scope.USER),
        reading(spec("l", scope=Scope.LOCAL), scope=Scope.LOCAL),
        choices=choices,
    )
    new = put_together(reading(scope=Scope.USER, problems=(fault(),)))

    kept = keep_last_good(old, new, normalise)

    assert {each.name: each.is_enabled for each in kept.specs} == {"u": False, "l": True}


def test_settings_that_break_keep_their_last_word() -> None:
    """A settings file that parses no more approves and forbids what it did before; a known fault changes nothing."""
    old = put_together(reading(spec("a")), choices=Choices(switched_off=frozenset({"a"})))
    broken = Choices(problems=(fault(file="/settings.json"),))
    new = put_together(reading(spec("a")), choices=broken)

    kept = keep_last_good(old, new, normalise)

    assert [each.is_enabled for each in kept.specs] == [False]
    assert [problem.file for problem in kept.problems] == ["/settings.json"]
    assert keep_last_good(new, put_together(reading(spec("a")), choices=broken), normalise).choices is broken


def test_what_an_administrator_broke_closes() -> None:
    """Rule 3: S025 and S059 hold for a running fleet as well."""
    closed = Choices(policy=Policy((), closed_by="/managed"), problems=(fault(file="/managed"),))
    old = put_together(reading(spec("a")))
    managed = put_together(reading(spec("e", scope=Scope.ENTERPRISE), scope=Scope.ENTERPRISE))
    broken = put_together(reading(scope=Scope.ENTERPRISE, problems=(fault(),)))

    by_policy = keep_last_good(old, put_together(reading(spec("a")), choices=closed), normalise)

    assert [each.disabled_reason for each in by_policy.specs] == ["policy"]
    assert names(keep_last_good(managed, broken, normalise)) == []
