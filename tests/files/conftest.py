"""Directories in which configuration is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "top" / "repo" / "sub"
    path.mkdir(parents=True)
    (tmp_path / "top" / "repo" / ".git").mkdir()
    return path


@pytest.fixture
def managed(home: Path) -> Path:
    path = home / "managed"
    path.mkdir()
    return path
