"""`stdio`: the transport itself. Its faults in the field are in test_faults_stdio.py."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget
from mcp_actors.errors import ConnectFailed, LocalProtocolError, TransportBroken, TransportClosed
from mcp_actors.protocol.types import Frame
from mcp_actors.transports import ladder, procfs
from mcp_actors.transports.base import MESSAGE_BYTES, TURN_BYTES
from mcp_actors.transports.leftovers import open_journal
from mcp_actors.transports.stdio import StdioTransport
from tests.transports.stdio_kit import SHORT, Sink, child_spec, living, make, nobody_left, opened, our_children


async def test_frames_go_and_come() -> None:
    """A frame is a line on the child's input; its lines are delivered as they are (S066)."""
    with trio.fail_after(10), nobody_left():
        async with opened(make("server.py", "echo")) as wire:
            await wire.send(b'{"id":1}')
            await wire.send('{"text":"ü 😀"}'.encode())

            assert await wire.sink.wait_for(2) == [b'{"echo":{"id":1}}', '{"echo":{"text":"ü 😀"}}'.encode()]


async def test_concurrent_senders_keep_their_frames_whole() -> None:
    """Frames of many tasks arrive each whole and each once."""
    with trio.fail_after(10):
        async with opened(make("server.py", "echo")) as wire:
            async with trio.open_nursery() as nursery:
                for n in range(200):
                    nursery.start_soon(wire.send, b'{"id":%d,"pad":"%s"}' % (n, b"p" * (n * 100)))
            lines = await wire.sink.wait_for(200)

    assert {line.split(b",")[0] for line in lines} == {b'{"echo":{"id":%d' % n for n in range(200)}


async def test_line_break_in_a_frame_is_refused() -> None:
    """A frame that would become two lines is our bug, and nothing is sent (S066)."""
    with trio.fail_after(10):
        async with opened(make("server.py", "echo")) as wire:
            with pytest.raises(LocalProtocolError):
                await wire.send(b'{"a":\n1}')
            await wire.send(b"{}")

            assert await wire.sink.wait_for(1) == [b'{"echo":{}}']


async def test_send_outside_of_run() -> None:
    """What is sent before the start goes out with it; after our close, sending says that we closed it."""
    transport = make("server.py", "echo")
    with trio.fail_after(10):
        await transport.send(Frame(b'{"a":1}'))
        async with opened(transport) as wire:
            await wire.send(b'{"a":2}')

            assert await wire.sink.wait_for(2) == [b'{"echo":{"a":1}}', b'{"echo":{"a":2}}']

    with pytest.raises(TransportClosed, match="closed by us"):
        await transport.send(Frame(b"{}"))


async def test_sender_that_waits_is_told_of_the_close() -> None:
    """A sender held up by a deaf child does not outlive the transport."""
    errors = []

    async def sender(wire):
        try:
            await wire.send(b"x" * 1_500_000)
            await wire.send(b"x" * 1_500_000)
        except TransportClosed as error:
            errors.append(error)

    with trio.fail_after(10), nobody_left():
        async with trio.open_nursery() as nursery:
            async with opened(make("server.py", "deaf")) as wire:
                await wire.sink.wait_for(1)
                nursery.start_soon(sender, wire)
                await trio.testing.wait_all_tasks_blocked(0.01)

    assert len(errors) == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (StdioTarget("/nonexistent"), "does not exist"),
        (StdioTarget("no-such-command", environment={"PATH": "/usr/lib"}), "/usr/lib"),
        (StdioTarget("cat", cwd="/nonexistent"), "directory to start in does not exist: /nonexistent"),
        (StdioTarget("cat", ("a\0b",)), "could not start 'cat'"),
        (StdioTarget("cat", environment={"A=B": "x"}), "could not start 'cat'"),
        (StdioTarget("cat", ("x" * 3_000_000,)), "Argument list too long"),
    ],
)
async def test_failed_start_is_typed(target, words) -> None:
    """A program that cannot be started is a ConnectFailed with the server's name, and leaves nothing (fault 15)."""
    transport = StdioTransport(ServerSpec("bad", target), Settings(), environ={"PATH": "/bin:/usr/bin"})
    with nobody_left(), pytest.raises(ConnectFailed, match=r"^bad: ") as caught:
        await transport.run(Sink())

    assert words in str(caught.value)


async def test_directory_of_ours_that_is_gone(tmp_path, monkeypatch) -> None:
    """A child that would start where we run, and that place is gone, is a failed start, not an error of the system."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with trio.fail_after(10), nobody_left(), pytest.raises(ConnectFailed, match="does not exist any more"):
        await make("server.py", "echo").run(Sink())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x01\x02", "Exec format error: its first line names no interpreter"),
        (b"#!/nonexistent/python\n", "No such file or directory: the interpreter that its first line"),
    ],
)
async def test_a_script_that_nothing_can_run_is_a_failed_start(tmp_path, content, told) -> None:
    """A file that is executable and cannot run is reported with the reason, not raised as a bug (fault 15's kind)."""
    script = tmp_path / "junk"
    script.write_bytes(content)
    script.chmod(0o755)
    transport = StdioTransport(ServerSpec("bad", StdioTarget(str(script))), Settings(), environ={})

    with pytest.raises(ConnectFailed, match=re.escape(told)):
        await transport.run(Sink())


def test_only_stdio_targets_are_taken() -> None:
    """Another kind of target is the caller's bug."""
    with pytest.raises(TypeError):
        StdioTransport(ServerSpec("x", RemoteTarget("http://h/")), Settings(), environ={})


async def test_a_prefix_starts_the_program(tmp_path) -> None:
    """S068: the prefix runs, finds the quoted line as its one argument, and what that line starts is the server."""
    wrap = tmp_path / "wrap me"
    wrap.write_text(f"""#!/bin/sh\nprintf '%s\\n' "$#" > '{tmp_path}/count'\neval "exec $1"\n""")
    wrap.chmod(0o755)
    environ = {**os.environ, "CLAUDE_CODE_SHELL_PREFIX": f"'{wrap}'"}
    with trio.fail_after(10), nobody_left():
        async with opened(StdioTransport(child_spec("server.py", "echo"), SHORT, environ=environ)) as wire:
            await wire.send(b"{}")

            assert await wire.sink.wait_for(1) == [b'{"echo":{}}']
    assert (tmp_path / "count").read_text() == "1\n"


async def test_working_directory_and_relative_command(tmp_path) -> None:
    """A relative command starts from the entry's directory."""
    (tmp_path / "server").symlink_to("/bin/cat")
    target = StdioTarget("./server", cwd=str(tmp_path))
    transport = StdioTransport(ServerSpec("x", target), Settings(), environ={})

    with trio.fail_after(10):
        async with opened(transport) as wire:
            await wire.send(b"{}")
            await wire.sink.wait_for(1)

            assert directory_of(wire.pid) == tmp_path


async def test_diagnostics_describe_without_side_effects() -> None:
    """Before, during and after, the transport tells what it knows."""
    transport = make("server.py", "exit", "4")
    before = transport.diagnostics()
    with trio.fail_after(10):
        async with opened(transport) as wire:
            await wire.end()
    after = transport.diagnostics()

    assert (before.pid, before.exit_status, before.stderr_tail) == (None, None, ())
    assert (after.exit_status, after.stderr_tail) == (4, ("ERROR: TOKEN missing",))
    assert (transport.kind, transport.is_exchange) == ("stdio", False)
    assert transport.shutdown_bound == ladder.bound(ladder.rungs(SHORT))


async def test_child_that_closes_its_output_is_broken_and_stopped() -> None:
    """A child that can answer no more is no server, even if it lives."""
    with trio.fail_after(10), nobody_left():
        async with opened(make("server.py", "close-stdout")) as wire:
            error = await wire.end()

    assert isinstance(error, TransportBroken)
    assert error.reason == "closed its standard output"


async def test_child_that_closes_its_input_is_broken_and_stopped() -> None:
    """A child that can be asked no more is no server; the sender is told why."""
    with trio.fail_after(10), nobody_left():
        async with opened(make("server.py", "close-stdin")) as wire:
            await wire.sink.wait_for(1)
            with pytest.raises(TransportBroken, match="closed its standard input"):
                await wire.send(b"{}")
            error = await wire.end()

    assert error.reason == "closed its standard input"


async def test_answer_before_death_is_delivered() -> None:
    """What a child wrote before it died arrives; the end comes after it, with status and last words."""
    with trio.fail_after(10):
        async with opened(make("server.py", "answer-exit")) as wire:
            await wire.send(b"1")
            error = await wire.end()

    assert wire.sink.raw == [b'{"last":1}']
    assert (error.reason, error.exit_status, error.stderr_tail) == ("exited with status 7", 7, ("xxx",))


async def test_end_is_told_before_a_slow_stop() -> None:
    """The cause is known while the rest of the tree still takes its time to leave (fault 17)."""
    told = []
    transport = make("wrapper.sh", "leave", "told", settings=Settings())
    with trio.fail_after(20), nobody_left():
        async with opened(transport) as wire:
            wire.sink.ended = lambda error: told.append((error, wire.ended.is_set()))
            transport.hurry.press()
            await wire.end()

    assert [(type(error), error.exit_status, ended) for error, ended in told] == [(TransportBroken, 3, False)]


def heard_words(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of standard error in the log."""
    return [said for message in caplog.messages if (said := message.partition(" stderr ")[2])]


async def test_stderr_lines_reach_the_log_rate_limited(caplog: pytest.LogCaptureFixture) -> None:
    """Lines go to the log at DEBUG, cleaned, at most so many a second (fault 8)."""
    with trio.fail_after(10), caplog.at_level(logging.DEBUG, "mcp_actors.transports.stdio"):
        async with opened(make("server.py", "stderr")) as wire:
            await wire.send(b"{}")
            await wire.sink.wait_for(1)

    lines = heard_words(caplog)
    assert 1 <= len(lines) < 1024
    assert max(map(len, lines)) <= 500


async def test_exception_of_a_sink_still_stops_the_child() -> None:
    """A bug above is not hidden, and leaves no child."""

    class Bug(Exception):
        pass

    class BadSink(Sink):
        def deliver(self, raw):
            raise Bug

    with trio.fail_after(10), nobody_left(), pytest.raises(Bug):
        await make("server.py", "stubborn").run(BadSink())


async def test_journal_holds_the_child_while_it_lives(tmp_path) -> None:
    """The child is recorded at its start and forgotten at its end (fault 4)."""
    transport = make("server.py", "echo", journal=open_journal(tmp_path / "children"))
    with trio.fail_after(10):
        async with opened(transport) as wire:
            during = [path.name for path in (tmp_path / "children").iterdir()]
            assert during == [f"{wire.pid}.child"]

    assert list((tmp_path / "children").iterdir()) == []


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope before the n-th step of any task below it."""

    def __init__(self, scope, step) -> None:
        self.scope, self.left, self.home = scope, step, trio.lowlevel.current_task()

    def before_task_step(self, task) -> None:
        self.left -= task is self.home or task.parent_nursery is not None
        if self.left == 0:
            self.scope.cancel()


@pytest.mark.parametrize("mode", ["echo", "stubborn"])
async def test_cancel_sweep_leaves_no_child(mode) -> None:
    """Cancelled at any step from the spawn to the first answer, nothing is left (fault 94, S145)."""
    quick = Settings(stop_interrupt=0.0, stop_terminate=0.0)
    step = reached = 0
    with trio.fail_after(60):
        while not reached:
            step += 1
            with nobody_left():
                with trio.CancelScope() as scope:
                    instrument = CancelAtStep(scope, step)
                    trio.lowlevel.add_instrument(instrument)
                    try:
                        async with opened(make("server.py", mode, settings=quick)) as wire:
                            if mode == "echo":
                                await wire.send(b"{}")
                            await wire.sink.wait_for(1)
                            reached = step
                    finally:
                        trio.lowlevel.remove_instrument(instrument)

    assert reached > 3


@pytest.mark.parametrize("moment", ["spawned", "ready"])
async def test_interrupted_start_leaves_no_child(moment) -> None:
    """A scope that is already cancelled spawns nothing; one cancelled at the start leaves nothing."""
    transport = make("server.py", "stubborn")
    with nobody_left():
        with trio.CancelScope() as scope:
            if moment == "spawned":
                scope.cancel()
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(transport.run, Sink()))
                scope.cancel()

    assert scope.cancelled_caught
    assert (transport.diagnostics().exit_status is None) is (moment == "spawned")


async def test_outer_shield_is_not_needed() -> None:
    """Leaving by an error beside it stops the child before the error goes on."""

    class Beside(Exception):
        pass

    before = our_children()
    with trio.fail_after(10), pytest.RaisesGroup(Beside):
        async with opened(make("server.py", "stubborn")) as wire:
            await wire.sink.wait_for(1)
            raise Beside

    assert our_children() == before


async def test_child_sees_ladder_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """A child that obeys SIGTERM only is asked with SIGINT first (S136); what it says to that explains no failure."""
    settings = Settings(stop_interrupt=0.1, stop_terminate=5.0)
    transport = make("server.py", "rungs", "SIGTERM", settings=settings)
    with trio.fail_after(10), caplog.at_level(logging.DEBUG, "mcp_actors.transports.stdio"):
        async with opened(transport) as wire:
            await wire.sink.wait_for(1)

    assert heard_words(caplog) == ["caught SIGINT", "caught SIGTERM"]
    assert transport.diagnostics().stderr_tail == ()
    assert transport.diagnostics().exit_status == 0


@pytest.mark.parametrize("mode", [("rungs", "SIGINT"), ("eof",)])
async def test_child_leaves_at_the_rung_it_knows(mode) -> None:
    """End of input or SIGINT: each ends it (S139)."""
    transport = make("server.py", *mode, settings=Settings(stop_interrupt=10.0))
    with trio.fail_after(8), nobody_left():
        async with opened(transport) as wire:
            await wire.sink.wait_for(1)

    assert transport.diagnostics().exit_status == 0


# A rung that would not be left keeps the test for longer than it may take.
STOPPED = {
    "interrupt": ("SIGINT", Settings(stop_interrupt=20.0, stop_terminate=20.0), 0),
    "terminate": ("SIGTERM", Settings(stop_interrupt=0.05, stop_terminate=20.0), 0),
    "kill": ("none", Settings(stop_interrupt=0.05, stop_terminate=0.05), -signal.SIGKILL),
}


@pytest.mark.parametrize(("obeys", "settings", "status"), STOPPED.values(), ids=STOPPED)
async def test_a_stopped_child_is_woken_to_leave(obeys, settings, status) -> None:
    """One that was stopped leaves at the rung that it knows, not at SIGKILL alone (S136, S139)."""
    transport = make("server.py", "stopped", "SIGSTOP", obeys, settings=settings)
    with trio.fail_after(8), nobody_left():
        async with opened(transport) as wire:
            await wire.sink.wait_for(1)
            while state_of(wire.pid) != "T":
                await trio.lowlevel.checkpoint()

    assert transport.diagnostics().exit_status == status


@pytest.mark.parametrize("how", ["wait", "jobs", "setsid"])
async def test_a_stopped_member_of_the_tree_is_woken_to_leave(how) -> None:
    """So is a member of the group, and one below the child that has a group or session of its own (S140, fault 1)."""
    marker, settings = f"marker-stopped-{how}-{os.getpid()}", Settings(stop_interrupt=20.0)
    # A group of its own below a shell may be stopped by its terminal, the others only by somebody else.
    mode = f"stopped {'SIGTTIN' if how == 'jobs' else 'SIGSTOP'} SIGINT"
    with trio.fail_after(8), nobody_left():
        async with opened(make("wrapper.sh", how, marker, mode, settings=settings)) as wire:
            await wire.sink.wait_for(1)
            while not any(state_of(pid) == "T" for pid in living(marker)):
                await trio.lowlevel.checkpoint()

    assert living(marker) == []


def directory_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/cwd").readlink()


def state_of(pid: int) -> str | None:
    row = procfs.read_stat(pid)
    return row.state if row else None


FLOODS = {
    "messages": (b"{}", 30_000),
    "noise": (b"junk", 30_000),
    "batches": (b"[" + b",".join([b"{}"] * 100) + b"]", 500),
    "large": (b"{" + b" " * 20_000 + b"}", 50),
}


@pytest.mark.parametrize(("line", "count"), FLOODS.values(), ids=FLOODS)
async def test_a_flood_leaves_the_others_their_turn(line: bytes, count: int) -> None:
    """Contract 5, invariant 4: however much a read brings, no more than a turn of it is worked off at once."""
    code = f"import os\nfor _ in range({count}): os.write(1, {line!r} + b'\\n')\nos.read(0, 1)"
    target = StdioTarget(sys.executable, ("-S", "-E", "-c", code))
    done, most = 0, 0
    with trio.fail_after(20), nobody_left():
        async with opened(StdioTransport(ServerSpec("flood", target), SHORT, environ=dict(os.environ))) as wire:
            while done < count:
                await trio.lowlevel.checkpoint()
                before, done = done, len(wire.sink.raw) + wire.transport.diagnostics().noise_count
                most = max(most, done - before)

    # Two turns, where the scheduler lets the reader go last in one round and first in the next.
    assert 0 < most <= 2 * max(1, TURN_BYTES // (len(line) + MESSAGE_BYTES) + 1)


def resident_bytes() -> int:
    """What this process holds in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs procfs")
async def test_a_gigabyte_of_noise_costs_no_memory() -> None:
    """Fault 9 without end: of what is no message only the count and the last few lines stay, within 16 MB."""
    lines = 1_000_000_000 // 60_000
    flood = f"for _ in range({lines}): os.write(1, b'j' * 59_999 + b'\\n')"
    code = f"import os\n{flood}\nos.write(1, b'{{}}\\n')\nos.read(0, 1)"
    target = StdioTarget(sys.executable, ("-S", "-E", "-c", code))
    most = 0
    with trio.fail_after(120), nobody_left():
        async with opened(StdioTransport(ServerSpec("noise", target), SHORT, environ=dict(os.environ))) as wire:
            before = resident_bytes()
            while not wire.sink.raw:
                await trio.lowlevel.checkpoint()
                most = max(most, resident_bytes())
        noise = wire.transport.diagnostics().noise_count

    assert noise == lines
    assert most - before < 16_000_000
