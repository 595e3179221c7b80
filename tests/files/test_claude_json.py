"""What ``~/.claude.json`` says of the user, and of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.files.kit import commands, load, servers, write

if TYPE_CHECKING:
    from pathlib import Path


def test_user_and_local_servers_are_in_one_file(project: Path, home: Path) -> None:
    """`~/.claude.json` holds user servers, and local ones under the path of the project (S009, S012)."""
    write(
        home / ".claude.json",
        {
            **servers(u="user", x="user"),
            "projects": {
                str(project): servers(x="local", l="local"),
                str(project.parent): servers(l="repo", r="repo"),
                str(project.parents[1]): servers(no="outside the repository"),
            },
        },
    )

    assert commands(load(project, home)) == {
        "u": ("user", "user"),
        "r": ("repo", "local"),
        "x": ("local", "local"),
        "l": ("local", "local"),
    }


def test_claude_config_dir_moves_the_file(project: Path, home: Path, tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR names the directory of `.claude.json` (S042, S362)."""
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / ".claude.json", servers(o="other"))
    write(home / ".claude.json", servers(u="user"))

    loaded = load(project, home, environ={"CLAUDE_CONFIG_DIR": str(tmp_path / "other")})

    assert list(commands(loaded)) == ["o"]


def test_choices_of_the_user_for_a_project(project: Path, home: Path) -> None:
    """`~/.claude.json` holds approvals and switches of this project (S023, S037)."""
    write(project / ".mcp.json", servers(a="x", b="x", c="x"))
    lists = {"enabledMcpjsonServers": ["a", "c"], "disabledMcpjsonServers": ["b"], "disabledMcpServers": ["c", "u"]}
    write(home / ".claude.json", {**servers(u="user"), "projects": {str(project): lists}})

    loaded = load(project, home, approve_project=False)

    assert {spec.name: "on" if spec.is_enabled else spec.disabled_reason for spec in loaded.specs} == {
        "u": "user",
        "a": "on",
        "b": "rejected",
        "c": "user",
    }
