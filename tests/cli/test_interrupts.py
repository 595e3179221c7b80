"""Signals and closed pipes, end to end: a clean stop at any moment, and nothing left."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from mcp_actors.cli.processes import descendants
from tests.cli.command import PATIENCE, config, environment, is_alive, run, server, shell, spawn, start

pytestmark = pytest.mark.slow
CLOCK = server(program="clock", era="legacy")
MUTE = shell("exec sleep 60")
# Ends neither at end-of-file nor at a polite signal, once its server has ended.
STUBBORN_SCRIPT = "trap '' INT TERM HUP; {server}; while :; do sleep 60; done"


def stubborn():
    clock = server(program="clock")
    return shell(STUBBORN_SCRIPT.format(server=shlex.join([clock["command"], *clock["args"]])))


def read_until(stream, text):
    """Read lines up to one that holds `text`; give them all."""
    lines = []
    for line in stream:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"no {text!r} in {lines}")


def tree(process):
    return [child.pid for child in descendants(process.pid)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["TERM", "INT"])
def test_run_stops_cleanly(number, code):
    """`run` tells each change of state and ends on a signal with its code, leaving no child."""
    with start("run", *config(clock=CLOCK, bad={"command": "/nonexistent"})) as process:
        said = read_until(process.stderr, "running:")
        children = tree(process)
        process.send_signal(number)
        out, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == code, rest
    assert any("clock: pending -> connected (ready) revision=2025-11-25 tools=2 pid=" in line for line in said)
    assert any("bad: pending -> failed" in line for line in said)
    assert "stopped; it ran for" in rest
    assert "Traceback" not in rest
    assert out == ""
    assert children
    assert not any(is_alive(child) for child in children)


def test_run_prints_events_as_they_come():
    """With --json each connection is a line of JSON on standard output, in the field's names, at once (S364)."""
    with start("run", "--json", *config(clock=CLOCK, bad={"command": "/nonexistent"})) as process:
        events = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    told = {event["server_name"]: (event["event"], event["status"], event.get("error_code")) for event in events}
    assert told == {
        "clock": ("mcp_server_connection", "connected", None),
        "bad": ("mcp_server_connection", "failed", "refused"),
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has such a device")
def test_what_cannot_be_said_changes_no_exit_code():
    """A usage error is one, also where nobody can be told."""
    with Path("/dev/full").open("w") as disk, start("nonsense", stderr=disk) as process:
        process.communicate(timeout=PATIENCE)

    assert process.returncode == 2


def test_run_brings_back_a_program_that_died():
    """S118: nobody may call for hours; a killed server is up again, unless its entry wants it otherwise."""
    once = {**CLOCK, "restart": "temporary"}
    with start("run", *config(clock=CLOCK, once=once)) as process:
        said = read_until(process.stderr, "running:")
        for line in said:
            if "tools=2 pid=" in line:
                os.kill(int(line.rpartition("pid=")[2]), signal.SIGKILL)
        back = read_until(process.stderr, "restarts=1\n")
        back += read_until(process.stderr, "clock: pending -> connected")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, rest
    told = "".join([*back, rest])
    assert "once: connected -> failed (exit) phase=parked" in told
    assert "once: pending" not in told


@pytest.mark.parametrize("words", [(), ("--watch",)], ids=["HUP", "watch"])
def test_run_follows_its_configuration(words, tmp_path):
    """On SIGHUP, or by itself with --watch: the new server comes, the other stays; a broken file is told of."""
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"clock": CLOCK}}))

    def edit(text):
        path.write_text(text)
        if not words:
            process.send_signal(signal.SIGHUP)

    with start("run", *words, "--strict-config", "--config", str(path)) as process:
        said = read_until(process.stderr, "running:")
        edit(json.dumps({"mcpServers": {"clock": CLOCK, "late": CLOCK}}))
        said += read_until(process.stderr, "late: pending -> connected")
        edit("{")
        said += read_until(process.stderr, "reloaded: 2 unchanged")
        process.terminate()
        _, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, rest
    assert sum("clock: pending -> connected" in line for line in said) == 1
    assert any("reloaded: 1 added (late), 1 unchanged" in line for line in said)
    assert any("kept what ran before:" in line and "mcp.json" in line for line in said)


def test_run_says_what_an_edited_entry_waits_for(project):
    """S041: a project's server that an edit brings in is told of with the way to approve it, as at the start."""
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {}}))

    with start("run", "--watch", cwd=project) as process:
        read_until(process.stderr, "running:")
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"late": CLOCK}}))
        said = read_until(process.stderr, "reloaded: 1 added (late)")
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert sum("run mcp-actors approve late" in line for line in said) == 1


def test_run_obeys_the_switches_of_another_terminal():
    """S128, S097: ``disable`` stops a server of a fleet that runs and ``enable`` starts it, also without --watch."""
    fleet = config(clock=CLOCK, other=CLOCK)
    with start("run", *fleet) as process:
        said = read_until(process.stderr, "running:")
        switched = [run("disable", "clock", *fleet)]
        said += read_until(process.stderr, "-> disabled (user)")
        switched.append(run("enable", "clock", *fleet))
        said += read_until(process.stderr, "clock: pending -> connected")
        process.terminate()
        _, rest = process.communicate(timeout=PATIENCE)

    assert (process.returncode, [each.returncode for each in switched]) == (0, [0, 0]), rest
    assert sum("other: pending -> connected" in line for line in said) == 1


def test_run_tells_of_a_death():
    """A child that is killed from outside is told of, with how it ended."""
    with start("run", *config(clock=CLOCK)) as process:
        read_until(process.stderr, "running:")
        os.kill(tree(process)[0], signal.SIGKILL)
        said = read_until(process.stderr, "SIGKILL")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert "clock: connected -> " in said[-1]
    assert process.returncode == 0


def test_second_signal_hurries():
    """A second signal ends a stop that a stubborn child would draw out, and the child with it."""
    with start("run", *config(stubborn=stubborn())) as process:
        read_until(process.stderr, "running:")
        children = tree(process)
        process.send_signal(signal.SIGTERM)
        read_until(process.stderr, "again to hurry")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)

    assert len(children) == 2
    assert "hurrying" in rest
    assert process.returncode == 0
    assert not any(is_alive(child) for child in children)


@pytest.mark.parametrize(
    ("verb", "number"),
    [
        ("list", signal.SIGINT),
        ("list", signal.SIGTERM),
        ("tools", signal.SIGINT),
        ("get mute", signal.SIGTERM),
        ("call mute.x", signal.SIGINT),
    ],
)
def test_interrupted_while_connecting(verb, number):
    """Any verb that is interrupted while a server keeps it waiting stops cleanly with 130."""
    with start("--debug", *verb.split(), *config(mute=MUTE)) as process:
        read_until(process.stderr, "connect.started")
        process.send_signal(number)
        out, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130, rest
    assert out == ""
    assert "Traceback" not in rest


def test_interrupted_while_calling():
    """A call that is interrupted ends with 130 and leaves no child."""
    with start("--debug", "call", "s.sleep", "seconds=60", *config(s=server(tools=8))) as process:
        read_until(process.stderr, "connect.complete")
        children = tree(process)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130, rest
    assert not any(is_alive(child) for child in children)


@pytest.mark.parametrize("verb", ["demo", "storm --servers 50"])
def test_demo_and_storm_interrupted(verb):
    """The built-in fleets stop cleanly too, with no child left."""
    with start("--debug", *verb.split()) as process:
        read_until(process.stderr, "connect.complete")
        children = tree(process)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130, rest
    assert not any(is_alive(child) for child in children)


@pytest.mark.parametrize("verb", ["tools", "list", "tools --json", "call s.blob n=3000000", "demo", "--help"])
def test_nobody_reads(verb):
    """A reader that goes away is met with silence: no traceback, and no child is left."""
    with start(*verb.split(), *(config(s=server(tools=8)) if verb not in ("demo", "--help") else [])) as process:
        process.stdout.close()
        said = process.stderr.read()
        process.wait(timeout=PATIENCE)

    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert process.returncode == 1


def test_standard_error_is_closed():
    """Data still arrives when nobody reads what else is said."""
    with start("list", "--json", *config(s=server(tools=8), bad={"command": "/nonexistent"})) as process:
        process.stderr.close()
        out = process.stdout.read()
        process.wait(timeout=PATIENCE)

    assert process.returncode == 1
    assert len(json.loads(out)["servers"]) == 2


def test_run_ends_when_nobody_reads_its_events():
    """With --json a reader that went away ends it with 1, and standard error says why."""
    with start("run", "--json", *config(clock=CLOCK, bad={"command": "/nonexistent"})) as process:
        process.stdout.close()
        said = process.stderr.read()
        process.wait(timeout=PATIENCE)

    assert process.returncode == 1
    assert "nobody reads standard output any more: stopping" in said
    assert "stopped; it ran for" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("closed", "read", "sign"), [("stdout", "stderr", "running:"), ("stderr", "stdout", "connected")]
)
def test_run_goes_on_when_nobody_reads_what_it_says(closed, read, sign):
    """A supervisor that closes a stream takes no server down: the fleet runs until a signal comes."""
    words = ["run", "--json"] if closed == "stderr" else ["run"]
    with start(*words, *config(clock=CLOCK)) as process:
        getattr(process, closed).close()
        read_until(getattr(process, read), sign)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)

    assert process.returncode == 0


def test_run_says_when_it_cannot_note_its_children(tmp_path):
    """A state directory that cannot be written is told of, on the terminal as well, and the fleet runs (fault 4)."""
    (tmp_path / "file").touch()
    with start("run", *config(clock=CLOCK), env=environment(MCP_ACTORS_STATE_DIR=str(tmp_path / "file"))) as process:
        said = read_until(process.stderr, "running:")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    [warning] = [line for line in said if "journal of children" in line]
    assert "WARNING" in warning
    assert "will not find what it leaves behind" in warning
    assert process.returncode == 0


def test_run_says_one_line_for_each_failure():
    """A server that keeps crashing costs one line a crash; that it is tried again is no news, nor that it is tried."""
    with start("run", *config(crash=shell("exit 3"))) as process:
        said = [line.partition(" ")[2].rstrip() for line in read_until(process.stderr, "restarts=3")]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    crash = "crash: pending (exit) phase=backing-off error='exited with status 3' restarts="
    assert said[0] == "starting 1 server"
    assert [line for line in said if line.startswith("crash")] == [f"{crash}{n}" for n in (1, 2, 3)]


def test_ignored_hangup_is_ignored():
    """Under nohup a closed terminal stops nothing."""
    options = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    with start("run", *config(clock=CLOCK), **options) as process:
        read_until(process.stderr, "running:")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)

    assert "SIGHUP" not in rest
    assert process.returncode == 0


def test_output_in_another_encoding():
    """A locale without Unicode changes no data and breaks nothing."""
    words = ["call", "s.echo", 'text:="h\\u00e9"', *config(s=server(tools=8))]

    done = spawn(*words, env=environment(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0"), encoding="utf-8")

    assert (done.returncode, done.stdout) == (0, "hé\n")
