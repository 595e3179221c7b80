"""Every test of the command has a home of its own: nothing of this machine's user is read or written."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """An empty home directory; switches of ours that the developer has set do not count."""
    place = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(("MCP_", "CLAUDE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("XDG_STATE_HOME", str(place / ".local" / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / ".config"))
    monkeypatch.setenv("MCP_ACTORS_STATE_DIR", str(place / "state"))
    return place


@pytest.fixture
def project(tmp_path):
    """An empty repository to stand in."""
    place = tmp_path / "project"
    (place / ".git").mkdir(parents=True)
    return place
