"""What plugins bring along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_actors.files.plugins import Plugin
from tests.files.kit import commands, load, servers, write

if TYPE_CHECKING:
    from pathlib import Path


def test_plugins_bring_servers(project: Path, home: Path, tmp_path: Path) -> None:
    """A plugin's servers carry its name, know its root, and stand below the user's (S021, S031, S032)."""
    root = tmp_path / "plugin"
    (root / ".claude-plugin").mkdir(parents=True)
    write(
        root / ".mcp.json", {"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}, "same": {"command": "x"}}}
    )
    write(root / "more.json", servers(extra="e"))
    write(tmp_path / "outside.json", servers(outside="o"))
    manifest = {"name": "p", "mcpServers": ["more.json", "../outside.json"]}
    write(root / ".claude-plugin" / "plugin.json", manifest)
    write(home / ".claude.json", servers(mine="x"))

    loaded = load(project, home, plugins={"p": root})

    assert commands(loaded) == {
        "plugin:p:db": (f"{root}/run", "plugin"),
        "plugin:p:extra": ("e", "plugin"),
        "mine": ("x", "user"),
    }
    assert [(lost.name, lost.winner, lost.by) for lost in loaded.shadowed] == [("plugin:p:same", "mine", "endpoint")]


@pytest.mark.parametrize("name", ["\x00", "a\x00.json", "\ud800", "x" * 300, "loop", "loop/x", ""])
def test_a_plugin_whose_manifest_names_no_usable_path_costs_only_itself(
    project: Path, home: Path, tmp_path: Path, name: str
) -> None:
    """Fault 21, S031: whatever a plugin's manifest names, the other servers run."""
    root = tmp_path / "plugin"
    (root / ".claude-plugin").mkdir(parents=True)
    (root / "loop").symlink_to("loop")
    write(root / "good.json", servers(extra="e"))
    write(root / ".claude-plugin" / "plugin.json", {"name": "p", "mcpServers": [name, "good.json"]})
    write(home / ".claude.json", servers(mine="x"))

    loaded = load(project, home, plugins={"p": root})

    assert commands(loaded) == {"plugin:p:extra": ("e", "plugin"), "mine": ("x", "user")}


def test_a_plugin_refers_to_its_data_and_to_what_its_user_chose(project: Path, home: Path, tmp_path: Path) -> None:
    """S031: in commands, addresses and headers; its helper is a shell's text and is told by variables instead."""
    (tmp_path / "plugin").mkdir()
    local = {"command": "run", "args": ["${CLAUDE_PLUGIN_DATA}"], "env": {"K": "${user_config.api-key}"}}
    remote = {
        "type": "http",
        "url": "https://h/${user_config.team}",
        "headersHelper": "echo ${user_config.team} ${CLAUDE_PLUGIN_DATA}",
    }
    odd = {"command": "${user_config.no}"}
    write(tmp_path / "plugin" / ".mcp.json", {"mcpServers": {"l": local, "r": remote, "o": odd}})
    plugin = Plugin(tmp_path / "plugin", user_config={"api-key": "s3cret", "team": "red"})
    given = {"a/b": plugin, "c": Plugin(tmp_path / "plugin", data=tmp_path / "kept")}

    loaded = load(project, home, plugins=given)
    spec = {spec.name: spec for spec in loaded.specs}

    assert spec["plugin:a/b:l"].target.args == (str(home / ".local/state/mcp-actors/plugins/a-b"),)
    assert spec["plugin:a/b:l"].target.environment == {"K": "s3cret"}
    assert spec["plugin:c:l"].target.args == (str(tmp_path / "kept"),)
    remote_target = spec["plugin:a/b:r"].target
    assert remote_target.url == "https://h/red"
    assert remote_target.headers_helper == remote["headersHelper"]
    assert remote_target.plugin_data == spec["plugin:a/b:l"].target.args[0]
    assert spec["plugin:a/b:o"].target.command == "${user_config.no}"
    assert "s3cret" not in repr(plugin) + repr(loaded)
