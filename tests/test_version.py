"""Tests of `version`."""

from __future__ import annotations

from pathlib import Path

from mcp_actors.protocol.session_settings import SessionSettings
from mcp_actors.version import VERSION

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_stands_once() -> None:
    """What is built, what servers are told and what is printed are one text in one place (S109)."""
    files = [ROOT / "pyproject.toml", *(ROOT / "mcp_actors").rglob("*.py")]

    assert [path.name for path in files if f'"{VERSION}"' in path.read_text("utf-8")] == ["version.py"]
    assert SessionSettings().client_info["version"] == VERSION
