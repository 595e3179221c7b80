"""The fleet with real children that misbehave: what a program that embeds the runtime sees (faults 1-18)."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RestartPolicy, RestartType, ServerSpec, StdioTarget
from mcp_actors.errors import TransportBroken
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.synthetic import synthetic_command
from mcp_actors.transports import procfs
from tests.transports.stdio_kit import nobody_left

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.fleet.running import Runtime

SETTINGS = Settings(connect_timeout=20.0, stop_interrupt=0.2, stop_terminate=0.2)
FAST = RestartPolicy(backoff_first=0.01, backoff_max=0.02)


def synthetic(name: str, **options: object) -> ServerSpec:
    command, args = synthetic_command(**options)
    return ServerSpec(name, StdioTarget(command, args))


def script(name: str, code: str) -> ServerSpec:
    return ServerSpec(name, StdioTarget(sys.executable, ("-I", "-S", "-c", code)))


def shell(name: str, code: str) -> ServerSpec:  # starts in no time, on whatever machine
    return ServerSpec(name, StdioTarget("/bin/sh", ("-c", code)))


async def wait_for(runtime: Runtime, name: str, phase: Phase) -> None:
    with runtime.watch() as changes:
        if runtime.status()[name].phase is not phase:
            async for change in changes:
                if change.name == name and change.new is not None and change.new.phase is phase:
                    break
    await runtime.wait_ready([])


@pytest.mark.parametrize("era", ["legacy", "modern", "both"])
async def test_synthetic_servers_of_every_era_connect_and_answer(era: str) -> None:
    """The whole journey over pipes: spawn, probe or initialize, list, call, stop without a trace."""
    with nobody_left():
        async with open_runtime([synthetic(f"s{n}", era=era) for n in range(4)], settings=SETTINGS) as runtime:
            statuses = await runtime.wait_ready()
            result = await runtime.call_tool("s3.echo", {"text": "żółw 🐢"})

    assert {status.state for status in statuses.values()} == {ServerState.CONNECTED}
    assert {status.era for status in statuses.values()} == {"legacy" if era == "legacy" else "modern"}
    assert result.text == "żółw 🐢"


async def test_exit_during_the_handshake_tells_status_and_last_words() -> None:
    """Fault 5: a missing key makes the server exit; the status says so at once, not after the timeout."""
    spec = script("keyless", "import sys; sys.stderr.write('ERROR: TOKEN missing\\n'); sys.exit(1)")

    with trio.fail_after(10), nobody_left():
        async with open_runtime([spec], settings=evolve(SETTINGS, connect_timeout=60.0)) as runtime:
            status = (await runtime.wait_ready())["keyless"]

    assert (status.state, status.reason) == (ServerState.FAILED, "exit")
    assert "status 1" in (status.error or "")
    assert "ERROR: TOKEN missing" in (status.error or "")


async def test_a_server_that_dies_of_the_probe_is_started_again_as_legacy() -> None:
    """A02: death on an unknown method is a verdict about the era, not a crash."""
    code = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "server/discover":
        sys.exit(7)
    if message["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""
    with nobody_left():
        async with open_runtime([script("old", code)], settings=SETTINGS) as runtime:
            status = (await runtime.wait_ready())["old"]

    assert (status.state, status.era, status.revision) == (ServerState.CONNECTED, "legacy", "2025-06-18")
    assert (status.generation, status.restarts) == (1, 0)


@pytest.mark.parametrize(("intensity", "started"), [(1, 2), (4, 4), (5, 6), (10, 10)])
async def test_each_process_counts_as_a_start(intensity: int, started: int, tmp_path: Path) -> None:
    """Fault 91: one that always dies takes two for a try, of the probe and as a legacy one; a try is not cut short."""
    log = tmp_path / "starts"
    policy = evolve(FAST, intensity=intensity, max_tries=100)
    hopeless = evolve(
        shell("hopeless", f"read probe; echo >>'{log}'"), restart_type=RestartType.PERMANENT, restart_policy=policy
    )

    with trio.fail_after(20), nobody_left():
        async with open_runtime([hopeless], settings=SETTINGS) as runtime:
            await wait_for(runtime, "hopeless", Phase.PARKED)
            status = runtime.status()["hopeless"]

    assert len(log.read_text()) == started
    assert (status.reason, status.attempt) == ("crash-loop", started // 2)


async def test_only_noise_on_stdout_is_shown_in_the_error() -> None:
    """Fault 9: when no valid answer comes, the error shows what came instead."""
    spec = evolve(shell("noisy", "echo Listening on port 80; exec sleep 60"), connect_timeout=0.5)

    with nobody_left():
        async with open_runtime([spec], settings=evolve(SETTINGS, probe_timeout=0.2)) as runtime:
            status = (await runtime.wait_ready())["noisy"]

    assert (status.state, status.reason) == (ServerState.FAILED, "timeout")
    assert "Listening on port 80" in (status.error or "")


async def test_failed_connects_leave_at_most_one_child_tree(tmp_path: Path) -> None:
    """Fault 6: a server that never answers is tried again and again; its trees never overlap, and none is left."""
    log = tmp_path / "lives"
    log.touch()
    code = f"""
trap '' INT
for pid in $(cat '{log}'); do [ -e "/proc/$pid" ] && word=OVERLAP; done
echo "${{word:-$$}}" >>'{log}'
exec sleep 60
"""
    policy = evolve(FAST, max_tries=2)
    spec = evolve(shell("mute", code), connect_timeout=0.3, restart_type=RestartType.PERMANENT, restart_policy=policy)

    with nobody_left():
        async with open_runtime([spec], settings=evolve(SETTINGS, probe_timeout=0.1)) as runtime:
            await wait_for(runtime, "mute", Phase.PARKED)

    lives = log.read_text().split()
    assert "OVERLAP" not in lives
    assert 2 <= len(lives) <= 3


async def test_a_server_killed_from_outside_fails_its_calls_and_comes_back() -> None:
    """Faults 2 and 17: calls in flight fail with the signal, nothing is sent again, the supervised restart follows."""
    spec = evolve(synthetic("victim"), restart_type=RestartType.TRANSIENT, restart_policy=FAST)
    failures: list[TransportBroken] = []

    with trio.fail_after(20), nobody_left():
        async with open_runtime([spec], settings=SETTINGS) as runtime:
            await runtime.wait_ready()
            pid = runtime.status()["victim"].pid
            assert pid is not None

            async def call() -> None:
                with pytest.raises(TransportBroken) as broken:
                    await runtime.call_tool("victim.sleep", {"seconds": 1800}, timeout=1800)
                failures.append(broken.value)

            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(call)
                await trio.testing.wait_all_tasks_blocked()
                os.kill(pid, signal.SIGKILL)
            result = await runtime.call_tool("victim.echo", {"text": "back"})
            status = runtime.status()["victim"]

    assert [(failure.exit_status, failure.server) for failure in failures] == [(-9, "victim")] * 3
    assert result.text == "back"
    assert (status.restarts, status.pid != pid) == (1, True)


async def test_a_wrapper_that_dies_does_not_hold_its_calls_back() -> None:
    """Fault 17 with fault 1: the grandchild that ignores signals is stopped after the calls have failed."""
    code = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    time.sleep(60)
os.execv(sys.executable, [sys.executable, *COMMAND])
"""
    _, args = synthetic_command()
    spec = script("wrapped", code.replace("COMMAND", repr(list(args))))

    with trio.fail_after(20), nobody_left():
        async with open_runtime([spec], settings=evolve(SETTINGS, stop_interrupt=3.0, stop_terminate=3.0)) as runtime:
            await runtime.wait_ready()
            pid = runtime.status()["wrapped"].pid
            assert pid is not None
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    with pytest.raises(TransportBroken):
                        await runtime.call_tool("wrapped.sleep", {"seconds": 60})
                    assert runtime.status()["wrapped"].state is ServerState.CONNECTED  # the stop has only begun
                    runtime.hurry()

                nursery.start_soon(call)
                await trio.testing.wait_all_tasks_blocked()
                os.kill(pid, signal.SIGKILL)


def children_noted(state_dir: Path) -> list[Path]:
    return list(state_dir.glob("children/*.child"))


async def leave_behind(state_dir: Path) -> Path:
    """Kill a run whose only server, `stubborn`, ignores everything. Gives the entry of what lives on."""
    stubborn = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; time.sleep(60)"
    program = f"""
import sys, trio
from pathlib import Path
from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.runtime import open_runtime

async def main():
    spec = ServerSpec("stubborn", StdioTarget(sys.executable, ("-I", "-S", "-c", {stubborn!r})))
    async with open_runtime([spec], state_dir=Path({str(state_dir)!r})) as runtime:
        while not (status := runtime.status()["stubborn"]).phase == "connecting":
            await trio.sleep(0.01)
        while not list(Path({str(state_dir)!r}).glob("children/*.child")):
            await trio.sleep(0.01)
        print("up", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""
    process = await trio.lowlevel.open_process([sys.executable, "-c", program], stdout=-1)
    assert process.stdout is not None
    told = b""
    while not told.endswith(b"\n"):
        told += await process.stdout.receive_some()
    process.kill()
    await process.wait()
    await process.stdout.aclose()
    (noted,) = children_noted(state_dir)
    return noted


async def test_what_a_killed_run_left_behind_is_stopped_by_the_next(tmp_path: Path) -> None:
    """Fault 4: a child that outlives a SIGKILLed runtime is found by pid and start time; leaving waits for its stop."""
    with trio.fail_after(20):
        noted = await leave_behind(tmp_path)
        with nobody_left():
            async with open_runtime([], settings=SETTINGS, state_dir=tmp_path):
                pass

    assert not noted.exists()
    row = procfs.read_stat(int(noted.stem))  # a zombie at most, which somebody else reaps
    assert row is None or not row.is_alive


async def test_a_leftover_holds_up_the_server_of_its_name_alone(tmp_path: Path) -> None:
    """Invariants 2 and 4: two of one server never meet; the others are up while the leftover climbs the ladder."""
    specs = [synthetic("stubborn"), *(synthetic(f"s{n}") for n in range(4))]
    settings = evolve(SETTINGS, stop_interrupt=60.0, local_batch=1)

    with trio.fail_after(20):
        noted = await leave_behind(tmp_path)
        with nobody_left():
            async with open_runtime(specs, settings=settings, state_dir=tmp_path) as runtime:
                others = await runtime.wait_ready([f"s{n}" for n in range(4)])
                waiting = runtime.status()["stubborn"]
                both_live = noted.exists()
                runtime.hurry()
                await runtime.wait_ready(["stubborn"])
                after, is_left = runtime.status()["stubborn"], noted.exists()

    assert {status.state for name, status in others.items() if name != "stubborn"} == {ServerState.CONNECTED}
    assert (waiting.state, waiting.reason, waiting.pid) == (ServerState.PENDING, "leftover", None)
    assert (both_live, is_left) == (True, False)
    assert after.state is ServerState.CONNECTED
