"""`ide`: which lock files are believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_actors.files.ide import find_ide
from mcp_actors.files.loading import load_config
from mcp_actors.files.places import Places

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / ".claude" / "ide").mkdir(parents=True, mode=0o700)
    return Places.of({}, cwd=tmp_path / "work" / "sub", home=tmp_path, managed_dir=tmp_path / "managed")


def lock(places: Places, port: int, *, at: float = 1000.0, mode: int = 0o600, **more: object) -> Path:
    path = places.config_dir / "ide" / f"{port}.lock"
    says = {"pid": os.getpid(), "workspaceFolders": [str(places.cwd.parent)], "transport": "ws", "authToken": "t"}
    path.write_text(json.dumps(says | more))
    path.chmod(mode)
    os.utime(path, (at, at))
    return path


def found(places: Places) -> str | None:
    spec = find_ide(places)
    return None if spec is None else spec.target.url


def test_the_newest_editor_on_the_folder_is_found(places: Places) -> None:
    """S086: several windows may have a folder open; one that is open elsewhere is not ours."""
    lock(places, 1001)
    lock(places, 1002, at=2000.0)
    lock(places, 1003, at=3000.0, workspaceFolders=["/elsewhere"])

    assert found(places) == "ws://127.0.0.1:1002"


def test_no_editor_is_no_problem(tmp_path: Path, places: Places) -> None:
    """Without files, and without the directory."""
    assert found(places) is None
    assert find_ide(Places.of({}, cwd=tmp_path, home=tmp_path / "nobody")) is None


def test_an_editor_that_has_ended_is_passed_over(places: Places) -> None:
    """Rule 2: the file stays behind, the process does not."""
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    lock(places, 1001, pid=child.pid)

    assert found(places) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no such modes here")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_not_believed(places: Places, mode: int) -> None:
    """Rule 1: it would say where a token goes; the same for the directory."""
    lock(places, 1001, mode=mode)
    assert found(places) is None

    lock(places, 1001)
    (places.config_dir / "ide").chmod(0o777)
    assert found(places) is None


def test_a_link_is_not_followed(places: Places, tmp_path: Path) -> None:
    """Rule 1."""
    real = lock(places, 1001).rename(tmp_path / "real")
    (places.config_dir / "ide" / "1001.lock").symlink_to(real)

    assert found(places) is None


def test_that_there_is_none_is_told(places: Places) -> None:
    """Whoever asked for an editor learns that none was found."""
    loaded = load_config(environ={}, cwd=places.cwd, home=places.home, managed_dir=places.managed_dir, ide=True)

    assert list(map(str, loaded.notes)) == ["--ide: no editor that runs has this directory open"]


@pytest.mark.parametrize("ide", [True, False])
def test_its_server_joins_the_fleet_when_asked_for(places: Places, ide: bool) -> None:
    """S086: beside all others, under its own name, from its own file."""
    path = lock(places, 1001)
    (places.home / ".claude.json").write_text(json.dumps({"mcpServers": {"a": {"command": "a"}}}))

    loaded = load_config(environ={}, cwd=places.cwd, home=places.home, managed_dir=places.managed_dir, ide=ide)

    assert [spec.name for spec in loaded.specs] == (["ide", "a"] if ide else ["a"])
    assert not ide or loaded.specs[0].source == str(path)
