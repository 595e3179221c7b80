"""The two ways out, on real descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcp_actors.cli import output
from tests.cli.command import PATIENCE, config, start

CODE = """
import os, sys
from mcp_actors.cli import output
from mcp_actors.cli.exits import OutputClosed
read, write = os.pipe()
os.dup2(write, {descriptor})
os.close(write)
os.close(read)
try:
    output.{call}
except OutputClosed:
    os.write(2, b"closed\\n")
output.close_quietly()
"""


def say(descriptor, call):
    words = [sys.executable, "-c", CODE.format(descriptor=descriptor, call=call)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, done.stderr


def test_closed_standard_output():
    """Data that nobody reads is an `OutputClosed`, and the interpreter ends in peace."""
    assert say(1, "emit('data')") == (0, "closed\n")


def test_closed_standard_error():
    """A note that nobody reads is lost without a word."""
    code, _ = say(2, "note('lost')")

    assert code == 0


def test_a_note_steers_no_terminal(capfd):
    """Names and words of files and servers stand in notes: what a terminal obeys is replaced, lines stay."""
    output.note("a\x1b[31mb\x07\nc\td")

    assert capfd.readouterr().err == "mcp-actors: a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}\nc\td\n"


def test_emit_bytes_is_exact(capfdbinary):
    """Bytes go out as they are, with one line end."""
    from mcp_actors.cli.output import emit_bytes

    emit_bytes(b'{"a":"\xc3\xa9\xff"}')

    assert capfdbinary.readouterr().out == b'{"a":"\xc3\xa9\xff"}\n'


def test_emit_lone_surrogate(capfdbinary):
    """A text that is no valid Unicode is printed as far as it can be."""
    from mcp_actors.cli.output import emit

    emit("a\ud800b")

    assert capfdbinary.readouterr().out == b"a?b\n"


MISSING = """
import os, sys
os.closerange(0, 2)
sys.stdin = sys.stdout = None
from mcp_actors.cli.main import main
code = main(["--strict-config", "--config", '{{"mcpServers": {{}}}}', {verb!r}, "--json"])
assert os.open(os.devnull, os.O_RDONLY) > 2
sys.exit(code)
"""


@pytest.mark.parametrize("verb", ["list", "tools"])
def test_started_without_standard_streams(verb):
    """Data for an output that never was: exit 1, and why; nobody else gets its descriptor."""
    words = [sys.executable, "-c", MISSING.format(verb=verb)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=20, check=False)

    assert (done.returncode, done.stderr) == (1, "mcp-actors: standard output is closed\n")


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="Linux has such a device")
EMPTY = config()


@needs_full
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["list", "--help"], ["list", "--json", *EMPTY]])
def test_standard_output_on_a_full_disk(words):
    """Data that cannot be written, help included, is a failure that names standard output."""
    with FULL.open("w") as disk, start(*words, stdout=disk) as process:
        _, said = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert said.endswith("mcp-actors: standard output: No space left on device\n")


@needs_full
@pytest.mark.parametrize("words", [["note('lost')"], ["draw('lost')"]])
def test_standard_error_on_a_full_disk(words):
    """A note that cannot be written is lost, as often as it happens, and ends nothing."""
    code = f"from mcp_actors.cli.output import *\nfor _ in range(9999): {words[0]}\nemit('alive')\nclose_quietly()"
    with FULL.open("w") as disk:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=disk, text=True, timeout=20, check=False
        )

    assert (done.returncode, done.stdout) == (0, "alive\n")
