"""What the end-to-end tests of the command share: a configuration, and the command as a child of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mcp_actors.testing.synthetic import synthetic_command

# Nothing here may take as long; a hang fails.
PATIENCE = 20


def server(**options):
    """Entry of a synthetic stdio server."""
    command, args = synthetic_command(**options)
    return {"command": command, "args": list(args)}


def shell(script):
    """Entry of a child that a shell script plays."""
    return {"command": "/bin/sh", "args": ["-c", script]}


def config(**servers):
    """The words that make a command use these servers and nothing else."""
    return ["--strict-config", "--config", json.dumps({"mcpServers": servers})]


def environment(**changes):
    """This process's environment without switches of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
    return {**kept, **changes}


def argv(*words):
    return [sys.executable, "-m", "mcp_actors", *words]


def run(*words, **options):
    """Run a command line to its end."""
    options.setdefault("env", environment())
    return subprocess.run(argv(*words), capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def start(*words, **options):
    """Start a command line; its streams are text pipes."""
    options.setdefault("env", environment())
    return subprocess.Popen(argv(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def is_alive(pid):
    """Whether a process of this pid exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
