"""Installs the npm servers once, below the user's cache; where that cannot be done the tests skip and say why."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.home import REAL_HOME

PACKAGE = Path(__file__).parent / "package.json"
INSTALL_SECONDS = 300


@pytest.fixture(scope="session")
def npm_bin() -> Path:
    """Directory with the programs of the npm packages in package.json."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the npm servers need node and npm, which are not on the PATH")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-actors"
    home = cache / f"peers-{hashlib.sha256(PACKAGE.read_bytes()).hexdigest()[:12]}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs may start at once
        if not (home / "complete").exists():
            shutil.copy(PACKAGE, home)
            _install(npm, home)
            (home / "complete").touch()
    return home / "node_modules" / ".bin"


def _install(npm: str, home: Path) -> None:
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        env = {**os.environ, "HOME": str(REAL_HOME)}  # where npm is told of its registry
        subprocess.run(command, cwd=home, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=env)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm could not install the servers: {error.stderr.strip()[-300:] or error.returncode}")
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install the servers within {INSTALL_SECONDS} s")
