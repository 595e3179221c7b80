"""What the end-to-end tests of the command share: a configuration, and the command, in this process or as a child.

`run` calls the command's own `main` in this process, which is what nearly every test needs and costs no interpreter.
`spawn` and `start` make a child of it, for what only a process shows: signals, closed pipes, streams, what is imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from mcp_actors.cli.main import main
from mcp_actors.testing.synthetic import synthetic_command

# Seconds. Nothing here takes as long on the slowest machine; a hang fails.
PATIENCE = 90

# Of whoever runs the tests, as the system knows it.
REAL_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)


class Done(NamedTuple):
    """How a command line ended."""

    returncode: int
    stdout: str
    stderr: str


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
    """This test's environment (see conftest) with changes."""
    return {**os.environ, **changes}


def argv(*words):
    return [sys.executable, "-m", "mcp_actors", *words]


def run(*words, env=None, cwd=None, stdin=""):
    """Run a command line to its end, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before, real = dict(os.environ), sys.stdin
    wanted = {**(environment() if env is None else env), "COLUMNS": "80"}
    assert wanted["HOME"] != str(REAL_HOME), "a test would write into the files of whoever runs it"
    try:
        os.environ.clear()
        os.environ.update(wanted)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        place = contextlib.nullcontext() if cwd is None else contextlib.chdir(cwd)
        with place, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(words)
            except SystemExit as exit_:
                code = exit_.code
    finally:
        sys.stdin = real
        os.environ.clear()
        os.environ.update(before)
    return Done(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


def spawn(*words, **options):
    """Run a command line to its end, as a child."""
    options.setdefault("env", environment())
    return subprocess.run(argv(*words), capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def listen_to_signals():
    """Ignore no signal, although whoever started the tests may have (nohup, a shell's ``&``)."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def start(*words, **options):
    """Run a command line as a child while the block runs; its streams are text pipes.

    One that says nothing more and does not end is killed, and then whoever reads from it sees the end.
    """
    options.setdefault("env", environment())
    options.setdefault("preexec_fn", listen_to_signals)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv(*words), text=True, **{**streams, **options}) as process:
        impatience = threading.Timer(2 * PATIENCE, process.kill)
        impatience.start()
        try:
            yield process
        finally:
            impatience.cancel()
            process.kill()


def is_alive(pid):
    """Whether a process of this pid exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
