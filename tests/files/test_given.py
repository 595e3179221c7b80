"""Tests of `files.given`."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, Scope, ServerSpec, StdioTarget
from mcp_actors.files.given import load_choices, specs_from_mapping, with_readings
from mcp_actors.files.places import Places
from tests.files.kit import load, write


async def serve(link: object) -> None:
    """A stand-in for an in-process server."""


def test_mapping_of_a_program() -> None:
    """A mapping holds entries as in a file, specs, and in-process servers, in its own order (S016, S087)."""
    given = ServerSpec(name="other", target=StdioTarget("y"))
    loaded = specs_from_mapping(
        {
            "mcpServers": {
                "calc": InProcessTarget(serve),
                "a": {"command": "x", "args": ("b", 1), "cwd": Path("/w"), "env": {"T": "${T}"}},
                "s": given,
                "r": {"type": "http", "url": "https://h"},
            }
        },
        {"T": "t"},
    )

    assert loaded.problems == ()
    assert [(spec.name, spec.target) for spec in loaded.specs] == [
        ("calc", InProcessTarget(serve)),
        ("a", StdioTarget("x", ("b", "1"), {"T": "t"}, "/w")),
        ("s", StdioTarget("y")),
        ("r", RemoteTarget("https://h")),
    ]
    assert loaded.specs[2] == evolve(given, name="s")


@pytest.mark.parametrize(
    "mapping", [{"servers": {"a": {"command": "x"}}}, {"mcpServers": [1]}, {"a": {"command": "x"}}]
)
def test_mapping_without_our_table(mapping: dict[str, object]) -> None:
    """A mapping of another shape is a problem, not an empty fleet (S001)."""
    loaded = specs_from_mapping(mapping, {})

    assert (loaded.specs, len(loaded.problems)) == ((), 1)


def test_mapping_with_an_object_of_no_json_kind() -> None:
    """An entry that holds something else is told with its key; the others run."""
    loaded = specs_from_mapping({"mcpServers": {"a": {"command": object()}, "b": object(), "c": {"command": "x"}}}, {})

    assert [spec.name for spec in loaded.specs] == ["c"]
    assert [problem.server for problem in loaded.problems] == ["a", "b"]


def connector(name: str, url: str) -> SourceReading:
    spec = ServerSpec(name=name, target=RemoteTarget(url), scope=Scope.CLAUDEAI, source="connectors")
    return SourceReading(Scope.CLAUDEAI, "connectors", specs=(spec,))


def test_late_connectors_join(project: Path, home: Path) -> None:
    """A source that arrives late is decided with all the others (S015, S018, S022)."""
    write(home / ".claude.json", {"mcpServers": {"u": {"type": "http", "url": "https://h/mcp"}}})
    loaded = load(project, home)

    other = with_readings(loaded, [connector("Other", "https://other/mcp")])
    same = with_readings(loaded, [connector("Same", "https://h/mcp")])

    assert [spec.name for spec in other.specs] == ["u", "Other"]
    assert [spec.name for spec in same.specs] == ["u"]
    assert [spec.name for spec in with_readings(loaded, [connector("S", "https://h/mcp")], {"u"}).specs] == ["u", "S"]


@pytest.mark.parametrize(("is_allowed", "expected"), [(False, []), (True, ["C"])])
def test_connectors_beside_a_managed_file(
    project: Path, home: Path, managed: Path, is_allowed: bool, expected: list[str]
) -> None:
    """Connectors stand beside an exclusive file only when the administrator says so (S056)."""
    write(managed / "managed-mcp.json", {"mcpServers": {}})
    write(managed / "managed-settings.json", {"allowAllClaudeAiMcps": is_allowed})

    loaded = with_readings(load(project, home), [connector("C", "https://h")])

    assert ([spec.name for spec in loaded.specs], loaded.is_exclusive) == (expected, True)


def test_policy_holds_for_what_a_program_adds(project: Path, home: Path, managed: Path) -> None:
    """The choices of the machine can be read alone and hold for a program's mapping (S048, fault 29)."""
    write(managed / "managed-settings.json", {"deniedMcpServers": [{"serverUrl": "https://*.example.com/*"}]})
    places = Places.of({}, cwd=project, home=home, managed_dir=managed, stop_at=project)

    choices = load_choices({}, places=places)
    loaded = specs_from_mapping({"mcpServers": {"a": {"url": "https://h.example.com/x"}}}, {}, choices=choices)

    assert [(spec.is_enabled, spec.disabled_reason) for spec in loaded.specs] == [(False, "policy")]
