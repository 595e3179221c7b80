"""Faults 1-18, 94 and 101 against real misbehaving children, at the level of the transport."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tracemalloc

import pytest
import trio

from mcp_actors.config.settings import Settings
from mcp_actors.errors import TransportBroken
from tests.transports.stdio_kit import CHILDREN, PYTHON, SHORT, living, make, nobody_left, opened, our_children

LONG = Settings(stop_interrupt=30.0, stop_terminate=30.0)


@pytest.mark.parametrize("how", ["wait", "setsid", "jobs"])
async def test_fault_1_grandchild_ends_with_its_wrapper(how) -> None:
    """After close no process of the tree exists, also where the wrapper gave its child a group or session (S140)."""
    marker = f"marker-{how}-{os.getpid()}"
    with trio.fail_after(10), nobody_left():
        async with opened(make("wrapper.sh", how, marker)) as wire:
            await wire.sink.wait_for(1)
            assert len(living(marker)) >= 1

    assert living(marker) == []


async def test_fault_1_wrapper_that_leaves_first() -> None:
    """A wrapper that exits is the end of the connection, and the server below it is stopped."""
    marker = f"marker-leave-{os.getpid()}"
    with trio.fail_after(10), nobody_left():
        async with opened(make("wrapper.sh", "leave", marker)) as wire:
            error = await wire.end()

    assert (error.reason, error.exit_status) == ("exited with status 3", 3)
    assert living(marker) == []


async def test_fault_1_a_daemon_is_left_alone() -> None:
    """What has a session of its own and lost its parent before the stop is meant to stay: an adb, a tmux, a browser."""
    marker = f"marker-daemon-{os.getpid()}"
    with trio.fail_after(10), nobody_left():
        async with opened(make("wrapper.sh", "daemon", marker)) as wire:
            await wire.sink.wait_for(1)

    (daemon,) = living(marker)
    os.kill(daemon, signal.SIGKILL)


async def test_fault_2_orphans_that_are_left_to_us_are_reaped() -> None:
    """As process 1 of a container we are the parent of a server's orphans: none stays as a zombie after its stop."""
    argv = [sys.executable, str(CHILDREN / "adopter.py")]
    with trio.fail_after(20):
        done = await trio.run_process(
            argv, capture_stdout=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )

    assert done.stdout == b"[]"


async def test_fault_2_child_killed_from_outside_is_reaped() -> None:
    """Nobody calls close; the child is reaped and its end reported."""
    with trio.fail_after(10), nobody_left():
        async with opened(make("server.py", "echo")) as wire:
            os.kill(wire.pid, signal.SIGTERM)
            error = await wire.end()

            assert wire.pid not in our_children()

    assert isinstance(error, TransportBroken)
    assert (error.reason, error.exit_status) == ("killed by SIGTERM", -15)


async def test_fault_3_child_that_ignores_everything() -> None:
    """End of input, SIGINT and SIGTERM do nothing; SIGKILL ends it, within the bound (S139)."""
    transport = make("server.py", "stubborn")
    with trio.fail_after(transport.shutdown_bound + 5), nobody_left():
        async with opened(transport) as wire:
            await wire.sink.wait_for(1)

    assert transport.diagnostics().exit_status == -signal.SIGKILL


@pytest.mark.slow
async def test_fault_3_fifty_close_together() -> None:
    """Fifty of them are all being stopped before the first one is gone."""
    settings = Settings(stop_interrupt=1.0, stop_terminate=0.2)
    wires, closing = [], trio.Event()

    async def one(task_status):
        async with opened(make("server.py", "stubborn", settings=settings)) as wire:
            await wire.sink.wait_for(1)
            wires.append(wire)
            task_status.started()
            await closing.wait()

    with trio.fail_after(60), nobody_left():
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                await nursery.start(one)
            closing.set()
            await trio.testing.wait_all_tasks_blocked(0.02)
            under_way = [wire.transport._verdict is not None and not wire.ended.is_set() for wire in wires]

    assert under_way == [True] * 50
    assert {wire.transport.diagnostics().exit_status for wire in wires} == {-signal.SIGKILL}


async def test_fault_4_children_see_the_end_when_the_runtime_is_killed(tmp_path) -> None:
    """No descriptor of one child leaks into another: both end when their runtime is killed hard."""
    marker = f"marker-killed-{os.getpid()}"
    with trio.fail_after(20):
        pids = await killed_runtime("eof", marker, tmp_path)
        while living(marker):
            await trio.sleep(0.01)

    assert len(pids) == 2


async def test_fault_4_child_holds_only_its_own_pipes() -> None:
    """A second child has its three streams and nothing of the first (S071)."""
    with trio.fail_after(10):
        async with opened(make("server.py", "echo")), opened(make("server.py", "fds")) as wire:
            (raw,) = await wire.sink.wait_for(1)

    # Three streams and the directory that it was reading.
    assert len(json.loads(raw)["fds"]) == 4


async def test_fault_5_exit_at_once() -> None:
    """The end comes at once with the code and what was written; so does every send."""
    with trio.fail_after(5), nobody_left():
        async with opened(make("server.py", "exit", "1")) as wire:
            error = await wire.end()
            with pytest.raises(TransportBroken) as late:
                await wire.send(b"{}")

    assert (error.exit_status, error.stderr_tail) == (1, ("ERROR: TOKEN missing",))
    assert (late.value.exit_status, late.value.stderr_tail) == (1, ("ERROR: TOKEN missing",))


async def test_fault_5_send_that_meets_the_exit() -> None:
    """A request that is refused by a dying child fails with its exit, not with a broken pipe."""
    with trio.fail_after(5):
        async with opened(make("server.py", "exit", "1")) as wire:
            with pytest.raises(TransportBroken) as caught:
                await send_for_ever(wire)

    assert (caught.value.reason, caught.value.exit_status) == ("exited with status 1", 1)


async def test_fault_6_attempts_do_not_pile_up() -> None:
    """When an attempt has been cancelled its whole tree is gone, so the next one is alone."""
    alive = []
    for _ in range(5):
        with trio.fail_after(10), nobody_left():
            others = set(our_children())
            async with opened(make("server.py", "stubborn")) as wire:
                alive.append([pid == wire.pid for pid in our_children() if pid not in others])

    assert alive == [[True]] * 5


async def test_fault_7_stderr_never_stalls_the_child() -> None:
    """A megabyte of logging before the answer does not hold it up; the tail is kept and bounded."""
    transport = make("server.py", "stderr")
    with trio.fail_after(10):
        async with opened(transport) as wire:
            await wire.send(b'{"id":1}')
            assert await wire.sink.wait_for(1) == [b'{"id":1}']
            await wait_until(lambda: any(line.startswith("001023 ") for line in transport.diagnostics().stderr_tail))
            tail = transport.diagnostics().stderr_tail  # now: a stopped child may say more

    assert tail[-1].startswith("001023 ")
    assert sum(map(len, tail)) < 64 * 1024


async def test_fault_7_stderr_without_line_ends_is_bounded() -> None:
    """Sixteen megabytes of stderr in one line cost no memory (S069)."""
    transport = make("server.py", "stderr-flood")
    with trio.fail_after(20):
        async with opened(transport) as wire:
            await wire.send(b"{}")
            await wire.sink.wait_for(1)
            (line,) = transport.diagnostics().stderr_tail

    assert len(line) <= 500
    assert "\x1b" not in line


def test_fault_8_stderr_is_not_inherited() -> None:
    """What a child writes to stderr does not land in its host's (S069)."""
    script = (
        "import trio; from tests.transports.stdio_kit import *\n"
        "async def main():\n"
        "    async with opened(make('server.py', 'exit', '1')) as wire: await wire.end()\n"
        "trio.run(main)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=CHILDREN.parents[2], timeout=20)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


async def test_fault_9_banners_are_skipped_counted_and_kept() -> None:
    """Text on stdout is no message: it is counted, the last lines are kept, the connection works (S070)."""
    transport = make("server.py", "banner")
    with trio.fail_after(10):
        async with opened(transport) as wire:
            await wire.send(b'{"id":1}')
            lines = await wire.sink.wait_for(5)

    told = transport.diagnostics()
    messages = [b'{"ok":1}', b'{"ok":2}', b'[{"ok":3}]', b'[12, {"ok":4}]', b'{"echo":{"id":1}}']
    assert [line.strip() for line in lines] == messages
    assert told.noise_count == 66
    assert told.noise_tail[-6:] == ("red banner", "null", "3", '"text"', '[12:01:07] {"ok":5}', "[1] started")
    assert len(told.noise_tail) <= 40


async def test_fault_10_boundaries_are_not_reads() -> None:
    """Three messages in one write, one byte by byte, one in halves: each once and in order."""
    with trio.fail_after(10):
        async with opened(make("server.py", "chunks")) as wire:
            lines = await wire.sink.wait_for(6)

    assert lines == [b'{"n":%d}' % n for n in range(1, 7)]


async def test_fault_11_large_lines() -> None:
    """Lines of 200 KiB and 12 MiB arrive whole."""
    sizes = [200 * 1024, 12 * 1024 * 1024]
    with trio.fail_after(20):
        async with opened(make("server.py", "large", *map(str, sizes))) as wire:
            lines = await wire.sink.wait_for(2)

    assert [len(line) - len('{"size":""}') for line in lines] == sizes


@pytest.mark.parametrize("limit", [1000, 1024 * 1024])
async def test_fault_12_line_without_end(limit) -> None:
    """At the bound the connection breaks with a clear error; memory stays near it and others go on (S070)."""
    settings = Settings(max_message_bytes=limit, stop_interrupt=0.1, stop_terminate=0.1)
    tracemalloc.start()
    try:
        with trio.fail_after(10), nobody_left():
            async with opened(make("server.py", "echo")) as other:
                async with opened(make("server.py", "endless", settings=settings)) as wire:
                    error = await wire.end()
                await other.send(b"{}")
                await other.sink.wait_for(1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert isinstance(error, TransportBroken)
    assert error.reason == f"message larger than {limit} bytes"
    assert peak < 4 * limit + 2_000_000


async def test_fault_12_message_just_over_the_bound() -> None:
    """A whole line over the bound breaks too, and one at the bound does not."""
    settings = Settings(max_message_bytes=1011, stop_interrupt=0.1)
    with trio.fail_after(10):
        async with opened(make("server.py", "large", "1000", "1001", settings=settings)) as wire:
            error = await wire.end()

    assert [len(line) for line in wire.sink.raw] == [1011]
    assert error.reason == "message larger than 1011 bytes"


async def test_fault_13_characters_split_between_reads() -> None:
    """Text of several bytes a character is exact on both streams."""
    transport = make("server.py", "utf8")
    with trio.fail_after(10):
        async with opened(transport) as wire:
            (line,) = await wire.sink.wait_for(1)
            await wait_until(lambda: "sterr € 😀 ü" in transport.diagnostics().stderr_tail)

    assert json.loads(line) == {"text": "€ 😀 ü"}


async def test_fault_14_line_ends() -> None:
    """CR LF is read, and what we write ends in exactly one LF."""
    with trio.fail_after(10):
        async with opened(make("server.py", "crlf")) as wire:
            await wire.sink.wait_for(2)
            await wire.send(b'{"id":1}')
            lines = await wire.sink.wait_for(3)

    assert lines[:2] == [b'{"a":1}', b'{"b":2}']
    assert bytes.fromhex(json.loads(lines[2])["got"]) == b'{"id":1}\n'


async def test_fault_16_interrupt_of_our_group_spares_the_children(tmp_path) -> None:
    """SIGINT to the runtime's group reaches the runtime; its children are stopped by it, not by the terminal."""
    marker = f"marker-ctrl-c-{os.getpid()}"
    runtime = start_runtime("echo", marker, tmp_path, stdout=subprocess.PIPE)
    with trio.fail_after(20):
        assert runtime.stdout is not None
        pids = [int(word) for word in (await trio.to_thread.run_sync(runtime.stdout.readline)).split()]
        groups = {os.getpgid(pid) for pid in pids}
        os.killpg(runtime.pid, signal.SIGINT)
        await trio.to_thread.run_sync(runtime.communicate)

    assert runtime.pid not in groups
    assert living(marker) == []


async def test_fault_17_killed_with_a_request_in_flight() -> None:
    """The end is told with the signal within the last moment, while nothing answers the request."""
    with trio.fail_after(5), nobody_left():
        async with opened(make("server.py", "deaf", settings=LONG)) as wire:
            await wire.sink.wait_for(1)
            await wire.send(b'{"id":1}')
            os.kill(wire.pid, signal.SIGKILL)
            error = await wire.end()

    assert (error.reason, error.exit_status) == ("killed by SIGKILL", -9)


async def test_fault_18_both_pipes_full() -> None:
    """A child that writes a megabyte before it reads, and a megabyte for it to read: both get through."""
    with trio.fail_after(10):
        async with opened(make("server.py", "both-full")) as wire:
            await wire.send(b'{"x":"' + b"y" * 1024 * 1024 + b'"}')
            lines = await wire.sink.wait_for(5001)

    assert json.loads(lines[4999])["progress"] == 4999
    assert json.loads(lines[5000]) == {"length": 1024 * 1024 + 8}


async def test_fault_18_child_that_writes_while_it_is_stopped() -> None:
    """A child that must empty its pipes before it can leave is read until it has left."""
    transport = make("server.py", "last-words", settings=LONG)
    with trio.fail_after(10), nobody_left():
        async with opened(transport) as wire:
            await wire.sink.wait_for(1)

    assert transport.diagnostics().exit_status == 0


async def test_fault_94_cancelled_while_a_child_ignores_signals() -> None:
    """A scope around the connection that is cancelled does not cut the stop short."""
    transport = make("server.py", "stubborn", settings=SHORT)
    with trio.fail_after(10), nobody_left():
        with trio.CancelScope() as around:
            async with opened(transport) as wire:
                await wire.sink.wait_for(1)
                around.cancel()
                await trio.sleep_forever()

    assert around.cancelled_caught
    assert transport.diagnostics().exit_status == -signal.SIGKILL


async def test_fault_101_child_sees_no_secret_of_its_host() -> None:
    """The child's environment is the base, where the user works, and the entry's own."""
    transport = make("server.py", "env", environment={"X": "1"})
    transport.environ = {"PATH": "/bin", "HOME": "/h", "OPENAI_API_KEY": "s", "AWS_SECRET_ACCESS_KEY": "s"}
    with trio.fail_after(10):
        async with opened(transport) as wire:
            (raw,) = await wire.sink.wait_for(1)

    # The interpreter adds its locale by itself.
    assert set(json.loads(raw)["env"]) - {"LC_CTYPE"} == {"CLAUDE_PROJECT_DIR", "HOME", "PATH", "X"}
    assert transport.diagnostics().noise_count == 1


def start_runtime(mode, marker, journal, **more) -> subprocess.Popen[bytes]:
    argv = [sys.executable, str(CHILDREN / "runtime.py"), PYTHON[0], str(CHILDREN / "server.py"), mode, marker]
    env = {**os.environ, "PYTHONPATH": str(CHILDREN.parents[2])}
    return subprocess.Popen(
        [*argv, str(journal / "children")], start_new_session=True, env=env, stderr=subprocess.DEVNULL, **more
    )


async def killed_runtime(mode, marker, journal) -> list[int]:
    runtime = start_runtime(mode, marker, journal, stdout=subprocess.PIPE)
    assert runtime.stdout is not None
    with runtime.stdout:
        words = (await trio.to_thread.run_sync(runtime.stdout.readline)).split()
    runtime.kill()
    await trio.to_thread.run_sync(runtime.wait)
    return [int(word) for word in words]


async def send_for_ever(wire) -> None:
    while True:
        await wire.send(b"{}")
        await trio.lowlevel.checkpoint()


async def wait_until(holds) -> None:
    while not holds():
        await trio.sleep(0.005)
