"""Progress: one moving line on a terminal, nothing in a pipe."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading

import pytest

from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
from mcp_actors.cli.progress import fleet_text
from tests.cli.command import PATIENCE, argv, config, environment, server

SHOW = (
    "import sys, threading\n"
    "if {without_rich}: sys.modules['rich.console'] = None\n"
    "from mcp_actors.cli.progress import open_progress\n"
    "with open_progress('waiting for [red]a') as progress:\n"
    "    progress.show('waiting for [red]b')\n"
    "for thread in threading.enumerate():\n"
    "    if thread is not threading.main_thread(): thread.join(60)\n"
    "assert threading.active_count() == 1\n"
    "assert {without_rich} or ('rich' in sys.modules) == {has_rich}\n"
)


def on_terminal(words, **changes):
    """Run with standard error on a terminal; give the exit code, standard output, and what the terminal got."""
    master, slave = pty.openpty()
    shown = bytearray()

    def drain():  # a terminal that nobody reads is full after a few kB, and blocks whoever writes
        with contextlib.suppress(OSError):  # how a terminal ends
            while data := os.read(master, 65536):
                shown.extend(data)

    reader = threading.Thread(target=drain)
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=slave, env=environment(**changes)) as process:
            os.close(slave)
            reader.start()
            out, _ = process.communicate(timeout=PATIENCE)
        reader.join(PATIENCE)
    finally:
        os.close(master)
    return process.returncode, out, bytes(shown)


@pytest.mark.parametrize("without_rich", [False, True])
def test_terminal(without_rich):
    """A terminal shows the newest text as it is, with rich and without, and is wiped clean; no thread stays."""
    code, _, shown = on_terminal(
        [sys.executable, "-c", SHOW.format(without_rich=without_rich, has_rich=True)], TERM="xterm"
    )

    assert code == 0, shown
    assert b"waiting for [red]b" in shown
    assert shown.endswith((b"\x1b[K", b"\x1b[2K", b"\x1b[?25h")), shown


def test_dumb_terminal():
    """A terminal that can move no cursor is left alone, and rich is not imported for it."""
    code, _, shown = on_terminal([sys.executable, "-c", SHOW.format(without_rich=False, has_rich=False)], TERM="dumb")

    assert (code, shown) == (0, b"")


def test_pipe():
    """A pipe gets nothing, and rich is not imported for it."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(without_rich=False, has_rich=False)],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_verb_on_a_terminal():
    """A verb shows progress on the terminal while its data in a pipe stays pure."""
    words = argv("call", "s.echo", "text=hi", *config(s=server(tools=8)))

    code, out, shown = on_terminal(words, TERM="xterm")

    assert (code, out) == (0, b"hi\n")
    assert b"servers" in shown


def status(name, state):
    return ServerStatus(name, state, Phase.QUEUED, "queued", transport="stdio", scope="user")


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ("", "0/0 servers"),
        ("CF", "2/2 servers"),
        ("CP", "1/2 servers, waiting for s1"),
        ("PPPPPP", "0/6 servers, waiting for s0, s1, s2, s3 and 2 more"),
    ],
)
def test_fleet_text(states, text):
    """The text counts who is settled and names who is waited for."""
    kinds = {"C": ServerState.CONNECTED, "F": ServerState.FAILED, "P": ServerState.PENDING}

    assert fleet_text({f"s{n}": status(f"s{n}", kinds[kind]) for n, kind in enumerate(states)}) == text


ASIDE = (
    "import sys\n"
    "if {without_rich}: sys.modules['rich.console'] = None\n"
    "from mcp_actors.cli.progress import open_progress\n"
    "with open_progress('busy') as progress:\n"
    "    with progress.aside():\n"
    "        print('a question', file=sys.stderr)\n"
    "    late = progress.aside()\n"
    "    late.__enter__()\n"
    "late.__exit__(None, None, None)\n"
    "print('the end', file=sys.stderr)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("without_rich", [False, True])
def test_a_dialog_that_ends_last_starts_nothing_again(without_rich):
    """A question is drawn on a clean line; a dialog that is put away after the verb is done makes nothing move."""
    code, _, shown = on_terminal([sys.executable, "-c", ASIDE.format(without_rich=without_rich)], TERM="xterm")

    assert code == 0, shown
    assert b"busya question" not in shown
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") or without_rich
    assert b"busy" not in shown.split(b"the end")[1]
