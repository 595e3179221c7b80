"""Settings files of all layers, and what we remember beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mcp_actors.config.remembering import remember, switch
from mcp_actors.config.specs import Scope
from tests.files.kit import load, memory, remembered, servers, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_file", [True, False])
def test_settings_of_the_command_line_are_the_users_own(
    project: Path, home: Path, tmp_path: Path, is_file: bool
) -> None:
    """S024, S063: their yes counts without trust, their deny list adds to the others."""
    write(project / ".mcp.json", servers(a="a", b="b"))
    write(home / ".claude.json", servers(u="u"))
    says = {"enabledMcpjsonServers": ["a"], "deniedMcpServers": [{"serverName": "u"}]}
    given = write(tmp_path / "s.json", says) if is_file else json.dumps(says)

    loaded = load(project, home, approve_project=False, settings=given)

    assert {spec.name: spec.is_enabled or spec.disabled_reason for spec in loaded.specs} == {
        "a": True,
        "b": "pending-approval",
        "u": "policy",
    }
    assert (str(given) in loaded.files) is is_file


@pytest.mark.parametrize(
    ("given", "file"), [("absent.json", "absent.json"), ("{", "<--settings>"), ("{]}", "<--settings>")]
)
def test_settings_that_cannot_be_used_are_a_problem(project: Path, home: Path, given: str, file: str) -> None:
    """What was named and is not there, or is no JSON, is told."""
    [problem] = load(project, home, settings=given).problems

    assert problem.file is not None
    assert problem.file.endswith(file)


def test_settings_of_a_repository_cannot_approve(project: Path, home: Path) -> None:
    """A repository's settings approve nothing until the folder is trusted; the user's do (S023, S024, fault 109)."""
    write(project / ".mcp.json", servers(a="x", b="x", c="x"))
    for path in (project / ".claude", home / ".claude"):
        path.mkdir()
    write(project / ".claude" / "settings.json", {"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["c"]})
    write(project / ".claude" / "settings.local.json", {"enabledMcpjsonServers": ["a"]})
    write(home / ".claude" / "settings.json", {"enabledMcpjsonServers": ["b", "c"]})

    def states() -> dict[str, str]:
        loaded = load(project, home, approve_project=False)
        return {spec.name: "on" if spec.is_enabled else spec.disabled_reason for spec in loaded.specs}

    assert states() == {"a": "pending-approval", "b": "on", "c": "rejected"}

    write(home / ".claude.json", {"projects": {str(project.parent): {"hasTrustDialogAccepted": True}}})
    assert states() == {"a": "on", "b": "on", "c": "rejected"}


def test_what_was_approved_before_runs(project: Path, home: Path) -> None:
    """An approval that is kept in our own directory counts for the definition that it was given to (S023)."""
    write(project / ".mcp.json", servers(a="a", b="b"))
    [a, _] = [spec for spec in load(project, home, approve_project=False).specs if spec.scope is Scope.PROJECT]

    loaded = remembered(project, home, remember(None, a, "f"))

    assert [(spec.name, spec.is_enabled) for spec in loaded.specs] == [("a", True), ("b", False)]


@pytest.mark.parametrize(("is_on", "overrides"), [(False, False), (True, True)])
def test_switches_have_the_last_word_in_their_project(project: Path, home: Path, is_on: bool, overrides: bool) -> None:
    """A server is on or off in this project as its user switched it, whatever its entry says (S037)."""
    write(home / ".claude.json", {"mcpServers": {"s": {"command": "x", "disabled": is_on}}})
    top = str(project.parent)

    here = remembered(project, home, switch(None, top, "s", "f", is_on=is_on, overrides=overrides))
    elsewhere = remembered(project, home, switch(None, "/other", "s", "f", is_on=is_on, overrides=overrides))

    assert [spec.is_enabled for spec in (*here.specs, *elsewhere.specs)] == [is_on, not is_on]


def test_a_switch_is_no_approval_and_no_permission(project: Path, home: Path) -> None:
    """Switched on is neither approved nor allowed."""
    write(project / ".mcp.json", servers(p="x"))
    write(home / ".claude.json", servers(u="y"))
    (home / ".claude").mkdir()
    write(home / ".claude" / "settings.json", {"deniedMcpServers": [{"serverName": "u"}]})
    text = None
    for name in ("p", "u"):
        text = switch(text, str(project.parent), name, "f", is_on=True, overrides=True)

    loaded = remembered(project, home, text or "")

    assert {spec.name: spec.disabled_reason for spec in loaded.specs} == {"p": "pending-approval", "u": "policy"}
    assert not any(spec.is_enabled for spec in loaded.specs)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"approved": true}'])
def test_a_memory_that_cannot_be_read_approves_nothing(project: Path, home: Path, text: str) -> None:
    """It is told where it is broken, and never taken for a yes."""
    write(project / ".mcp.json", servers(p="x"))

    loaded = remembered(project, home, text)

    assert [spec.disabled_reason for spec in loaded.specs] == ["pending-approval"]
    assert [problem.file for problem in loaded.problems] == ([str(memory(home))] if text in ("", "{") else [])


@pytest.mark.parametrize(("place", "mode"), [("directory", 0o777), ("directory", 0o720), ("file", 0o666)])
def test_a_memory_that_others_may_write_lets_nothing_run(project: Path, home: Path, place: str, mode: int) -> None:
    """No yes of it counts, each no does; the problem names what is open, and the command that closes it."""
    write(project / ".mcp.json", servers(a="a"))
    write(home / ".claude.json", servers(on="x", off="y"))
    [a] = [spec for spec in load(project, home, approve_project=False).specs if spec.scope is Scope.PROJECT]
    text = switch(remember(None, a, "f"), str(project.parent), "off", "f", is_on=False)
    file = memory(home)
    file.write_text(text)
    path = file if place == "file" else file.parent
    path.chmod(mode)

    loaded = remembered(project, home, text)

    assert {spec.name: spec.is_enabled for spec in loaded.specs} == {"a": False, "on": True, "off": False}
    [problem] = loaded.problems
    assert problem.file == str(path)
    assert problem.remedy == f"make it yours alone: chmod go-w {path}"
