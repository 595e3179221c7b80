"""The command line against servers of others, from npm and PyPI, in both eras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(400)]

LEGACY, MODERN = ("legacy", "2025-11-25"), ("modern", "2026-07-28")


@pytest.fixture(scope="session")
def config(npm_bin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The five servers and a bad sixth."""
    work = tmp_path_factory.mktemp("peers")
    subprocess.run(["git", "init", "-q", str(work / "repository")], check=True)
    servers = {
        "everything": {"command": str(npm_bin / "mcp-server-everything"), "args": ["stdio"]},
        "filesystem": {"command": str(npm_bin / "mcp-server-filesystem"), "args": [str(work)]},
        "memory": {
            "command": str(npm_bin / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(work / "memory.json")},
        },
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "git": {
            "command": sys.executable,
            "args": ["-m", "mcp_server_git", "--repository", str(work / "repository")],
        },
        "bad": {"command": "/nonexistent"},
    }
    path = work / "fleet.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def mcp_actors(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcp_actors", "--strict-config", "--config", str(config), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_list_connects_real_servers_and_names_the_bad_one(config: Path) -> None:
    """Five real servers are connected with the right era, revision and tools; the sixth is failed with a reason."""
    ran = mcp_actors(config, "list", "--json")

    rows = {row["name"]: row for row in json.loads(ran.stdout)["servers"]}
    assert ran.returncode == 1
    assert {name: (row["state"], row["era"], row["revision"]) for name, row in rows.items()} == {
        "everything": ("connected", *LEGACY),
        "filesystem": ("connected", *LEGACY),
        "memory": ("connected", *LEGACY),
        "time": ("connected", *MODERN),
        "git": ("connected", *MODERN),
        "bad": ("failed", None, None),
    }
    assert {name: rows[name]["tools"] for name in ("filesystem", "memory", "time", "git")} == {
        "filesystem": 14,
        "memory": 9,
        "time": 2,
        "git": 12,
    }
    assert rows["everything"]["tools"] >= 12
    assert "/nonexistent" in rows["bad"]["error"]


def test_list_leaves_no_child(config: Path) -> None:
    """After the command has ended no process of its servers lives."""
    ran = mcp_actors(config, "list", "--json")

    pids = [row["pid"] for row in json.loads(ran.stdout)["servers"] if row["pid"] is not None]

    assert len(pids) == 5
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("call", "everything.echo", "message=hi"), "Echo: hi"),
        (("call", "time.get_current_time", "timezone=UTC"), '"timezone": "UTC"'),
        (("call", "mcp__git__git_status", "repo_path=repository"), "No commits yet"),
        (("call", "filesystem.list_allowed_directories"), "Allowed directories"),
    ],
)
def test_call_of_a_real_tool(config: Path, words: tuple[str, ...], expected: str) -> None:
    """A tool of a real server answers at the command line."""
    words = tuple(word.replace("=repository", f"={config.parent / 'repository'}") for word in words)

    ran = mcp_actors(config, *words)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert expected in ran.stdout
