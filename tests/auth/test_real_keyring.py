"""A real Secret Service on a private bus, and none at all; skipped where the programs are not installed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys, trio
from pathlib import Path
from mcp_actors.auth.store import CredentialStore, StoreChoice
async def main():
    store = CredentialStore(StoreChoice.AUTO, Path(sys.argv[1]))
    kind = await store.save("slot", b'{"a": "\\xc3\\xa9"}' + b" " * 3000)
    again = CredentialStore(StoreChoice.AUTO, Path(sys.argv[1]))
    loaded = await again.load("slot")
    await again.erase("slot")
    print(json.dumps([kind, len(loaded), await again.load("slot")]))
trio.run(main)
"""


def run(tmp_path, before=(), **changes):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        **changes,
    }
    words = [*before, sys.executable, "-c", PROGRAM, str(tmp_path / "credentials")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_real_secret_service_keeps_logins(tmp_path):
    """The keyring of a desktop, unlocked: used, and no file is written (S251)."""
    if not shutil.which("dbus-run-session") or not shutil.which("gnome-keyring-daemon"):
        pytest.skip("needs dbus and gnome-keyring")
    unlock = 'printf "\\n" | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec "$@"'

    assert run(tmp_path, ("dbus-run-session", "--", "sh", "-c", unlock, "sh")) == ["keyring", 3011, None]

    assert not (tmp_path / "credentials").exists()


def test_without_a_bus_files_are_used(tmp_path):
    """A container, a remote shell (fault 68)."""
    assert run(tmp_path) == ["file", 3011, None]


def test_a_plaintext_backend_is_not_used(tmp_path):
    """keyrings.alt is installed: its plaintext file is never written (fault 68)."""
    if importlib.util.find_spec("keyrings") is None and "KEYRINGS_ALT" not in os.environ:
        pytest.skip("needs keyrings.alt")
    path = f"{ROOT}:{os.environ.get('KEYRINGS_ALT', '')}"

    assert run(tmp_path, PYTHONPATH=path)[0] == "file"

    assert not list(tmp_path.rglob("*.cfg"))
