"""Owns the home of a test run: an empty one, so that no test reads or writes the files of whoever runs it.

What this is not: the home of one test of the command; see ``cli/conftest.py``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["REAL_HOME", "move"]

REAL_HOME = Path.home()
# Where people keep what would change a test. What is installed for the tests stays in the cache (XDG_CACHE_HOME).
OTHERS = ("MCP_", "CLAUDE_", "XDG_CONFIG", "XDG_DATA", "XDG_STATE")


def move() -> None:
    """Move this process, and so its children, into an empty home that is removed at exit; no switch of ours is set."""
    os.environ.setdefault("XDG_CACHE_HOME", str(REAL_HOME / ".cache"))
    for name in [name for name in os.environ if name.startswith(OTHERS)]:
        del os.environ[name]
    home = tempfile.mkdtemp(prefix="mcp-actors-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["HOME"] = home
