"""Tests of `places`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mcp_actors.files.places import Places, is_missing, managed_directory, read_bounded, read_named_file, unreadable


def test_places_follow_the_environment(tmp_path: Path) -> None:
    """HOME and CLAUDE_CONFIG_DIR move the user's files (S042)."""
    places = Places.of({"HOME": "/h"}, cwd=tmp_path)
    moved = Places.of({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, cwd=tmp_path)

    assert (places.claude_json, places.config_dir) == (Path("/h/.claude.json"), Path("/h/.claude"))
    assert (moved.claude_json, moved.config_dir) == (Path("/c/.claude.json"), Path("/c"))


@pytest.mark.parametrize(
    ("platform", "directory"),
    [
        ("linux", "/etc/claude-code"),
        ("freebsd14", "/etc/claude-code"),
        ("darwin", "/Library/Application Support/ClaudeCode"),
        ("win32", "C:\\Program Files\\ClaudeCode"),
    ],
)
def test_an_administrators_files_are_where_the_platform_has_them(platform: str, directory: str) -> None:
    """S014: and a test, or a host, may say otherwise."""
    assert managed_directory(platform) == directory
    assert Places.of({}, managed_dir=Path("/m")).managed_dir == Path("/m")


def test_a_directory_that_is_gone_holds_nothing_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program with a configuration of its own runs on after somebody removed the directory under it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert Places.of({"HOME": "/h", "PWD": str(gone)}).cwd == gone
    assert Places.of({"HOME": "/h"}).cwd == Path("/")


def test_upward_stops_where_told(tmp_path: Path) -> None:
    """The search ends with the stop directory, else with the root."""
    deep = tmp_path / "a" / "b"

    assert list(Places.of({}, cwd=deep, stop_at=tmp_path).upward()) == [deep, tmp_path / "a", tmp_path]
    assert list(Places.of({}, cwd=deep).upward())[-1] == Path("/")


def test_project_is_the_repository_that_holds_the_directory(tmp_path: Path) -> None:
    """Outside of a repository only the directory itself is the project; a link counts under both its names."""
    deep = tmp_path / "repo" / "sub"
    deep.mkdir(parents=True)

    assert Places.of({}, cwd=deep).project_directories() == (deep,)

    (tmp_path / "repo" / ".git").write_text("gitdir: elsewhere")
    assert Places.of({}, cwd=deep).project_directories() == (deep, tmp_path / "repo")

    (tmp_path / "link").symlink_to(deep)
    assert Places.of({}, cwd=tmp_path / "link").project_directories() == (tmp_path / "link", deep)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/h/.local/state/mcp-actors"),
        ({"XDG_STATE_HOME": "/x"}, "/x/mcp-actors"),
        ({"XDG_STATE_HOME": "x"}, "/h/.local/state/mcp-actors"),
        ({"MCP_ACTORS_STATE_DIR": "/s", "XDG_STATE_HOME": "/x"}, "/s"),
        ({"MCP_ACTORS_STATE_DIR": "s"}, "/h/.local/state/mcp-actors"),
        ({"MCP_ACTORS_STATE_DIR": ""}, "/h/.local/state/mcp-actors"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have other places")
def test_state_is_never_beside_the_project(tmp_path: Path, environ: dict[str, str], expected: str) -> None:
    """Only an absolute path moves our own directory: a relative one would let a repository bring its own."""
    assert Places.of({"HOME": "/h", **environ}, cwd=tmp_path).state_dir == Path(expected)


def test_the_project_is_the_repository(tmp_path: Path) -> None:
    """Outside of one it is the working directory."""
    deep = tmp_path / "repo" / "sub"
    deep.mkdir(parents=True)

    assert Places.of({}, cwd=deep).project == deep
    (tmp_path / "repo" / ".git").mkdir()
    assert Places.of({}, cwd=deep).project == tmp_path / "repo"


def test_missing_is_only_what_is_not_there(tmp_path: Path) -> None:
    """A dangling link is something; a path through a file is nothing."""
    (tmp_path / "link").symlink_to(tmp_path / "none")
    (tmp_path / "file").write_text("x")

    assert not is_missing(tmp_path / "link")
    assert is_missing(tmp_path / "none")
    assert is_missing(tmp_path / "file" / "x")
    assert not is_missing(Path("a\0"))


@pytest.mark.parametrize("name", ["directory", "fifo", "none"])
def test_only_regular_files_are_read(tmp_path: Path, name: str) -> None:
    """Nothing that could block is opened."""
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError) as caught:
        read_bounded(tmp_path / name)

    assert unreadable(tmp_path / name, caught.value).reason.startswith("cannot be read: ")


def test_named_files_are_relative_to_their_configuration(tmp_path: Path) -> None:
    """A relative name is looked for beside the configuration; a name that no system takes is not found."""
    (tmp_path / "x.env").write_text("A=1")

    assert read_named_file("x.env", str(tmp_path)) == b"A=1"
    assert read_named_file(str(tmp_path / "x.env"), "/") == b"A=1"
    for name in ("\0", "~nobody-of-this-name/x"):
        with pytest.raises(FileNotFoundError):
            read_named_file(name, str(tmp_path))
