"""What the log looks like at the door (S349-S352)."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from mcp_actors.cli.debuglog import PrefixFormatter
from tests.cli.command import config, run, server, shell


def record(message, level=logging.INFO, **extra):
    made = logging.LogRecord("mcp_actors.connection", level, __file__, 1, message, (), None)
    for key, value in extra.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (record("connected", server="time"), "[MCP:time] connected"),
        (record("[MCP:time] connected"), "[MCP:time] connected"),
        (record("loaded"), "[MCP:*] loaded"),
        (record("one\ntwo", server="s"), "[MCP:s] one\n[MCP:s] two"),
        (record("[MCP:s] one\ntwo"), "[MCP:s] one\n[MCP:s] two"),
        (record("late", logging.WARNING, server="s"), "[MCP:s] WARNING: late"),
        (record("", server="s"), "[MCP:s] "),
        (
            record("a\x1b[2J", server="s\n[MCP:t]\x1b"),
            "[MCP:s [MCP:t]\N{REPLACEMENT CHARACTER}] a\N{REPLACEMENT CHARACTER}[2J",
        ),
    ],
)
def test_every_line_has_its_prefix(made, text):
    """Every line starts with the server it is about, cleaned (S350)."""
    assert PrefixFormatter("%(message)s").format(made) == text


def test_traceback_has_the_prefix_too():
    """Each line of a traceback starts with the prefix."""
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        made = record("crashed", logging.ERROR, server="s")
        made.exc_info = (type(error), error, error.__traceback__)

    lines = PrefixFormatter("%(message)s").format(made).splitlines()

    assert lines[0] == "[MCP:s] ERROR: crashed"
    assert len(lines) > 2
    assert all(line.startswith("[MCP:s] ") for line in lines)


def test_the_log_goes_to_a_private_file_instead(tmp_path):
    """`--debug-file` is appended to, for this user alone; standard error tells only what the verb tells (S353)."""
    file = tmp_path / "log.txt"
    words = ["list", "--debug-file", str(file), *config(one=server())]

    first = run(*words)
    size = file.stat().st_size
    second = run(*words)

    assert (first.returncode, second.returncode) == (0, 0)
    assert "[MCP:" not in first.stderr
    lines = file.read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("[MCP:") for line in lines)
    assert any("connect.complete transport=stdio" in line for line in lines)
    assert file.stat().st_size > size > 0
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_there", [True, False])
def test_a_directory_gets_a_file_of_each_run(tmp_path, is_there):
    """One that exists, or one that is named with a slash at its end; the file's name has no colon (S353)."""
    place = tmp_path / "debug"
    if is_there:
        place.mkdir()

    assert run("list", "--debug-file", f"{place}" if is_there else f"{place}/", *config(one=server())).returncode == 0

    [file] = place.iterdir()
    assert (file.suffix, ":" in file.name, file.stat().st_size > 0) == (".txt", False, True)


def test_a_log_that_cannot_be_written_is_a_usage_error(tmp_path):
    """Nothing is started for it."""
    done = run("list", "--debug-file", str(tmp_path / "none" / "log"), *config(one=server()))

    assert (done.returncode, "No such file" in done.stderr) == (2, True)


def test_a_log_that_nobody_reads_is_a_usage_error(tmp_path):
    """A pipe without a reader is not waited for."""
    os.mkfifo(tmp_path / "pipe")

    done = run("list", "--debug-file", str(tmp_path / "pipe"), *config(one=server()))

    assert (done.returncode, "No such device" in done.stderr) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has such a device")
def test_a_full_disk_costs_the_log_only():
    """It is told once, without a traceback, and the verb does its work."""
    done = run("list", "--debug-file", "/dev/full", *config(one=server()))

    assert done.returncode == 0
    assert "connected" in done.stdout
    assert [line for line in done.stderr.splitlines() if "/dev/full" in line] == [
        "mcp-actors: --debug-file /dev/full: No space left on device: nothing more is logged"
    ]
    assert "Traceback" not in done.stderr


def test_the_file_tells_why_a_connect_failed(tmp_path):
    """The last lines of a dead child's standard error stand in the log, each behind its prefix (S350, S352)."""
    file = tmp_path / "log.txt"

    done = run("list", f"--debug-file={file}", *config(bad=shell("echo no licence >&2; exit 3")))

    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "no licence" in line]
    assert done.returncode == 1
    assert lines
    assert all(line.startswith("[MCP:bad] ") for line in lines)
