"""Another configuration under a running fleet: what is touched, what is lost (nothing), what a broken edit does."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve
from scripted_fleet import echo_server, spec

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.config.changes import Applied
from mcp_actors.config.settings import Settings
from mcp_actors.errors import ActorGone, McpActorsError, TransportClosed, UnknownServer
from mcp_actors.files.loading import LoadedConfig, load_config
from mcp_actors.fleet.reloading import _News, keep_reloading, take_prints, watched_files
from mcp_actors.runtime import open_runtime

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.config.specs import ServerSpec

SETTINGS = Settings(connect_timeout=30.0, drain_timeout=20.0)
SERVER = [sys.executable, "-m", "mcp_actors.testing.stdio_server"]


def loaded(*specs: ServerSpec) -> LoadedConfig:
    return LoadedConfig(specs=specs)


def changed(one: ServerSpec) -> ServerSpec:
    """The same server, defined otherwise."""
    return evolve(one, call_timeout=(one.call_timeout or 0) + 1000.0)


# ── apply, on a virtual clock ────────────────────────────────────────────────────────────────────────────────────────


async def test_hashes_decide_what_is_touched_and_the_order_is_the_new_one(autojump_clock: object) -> None:
    """S038: unchanged servers keep their connection, changed ones get another, removed ones go, the order follows."""
    specs = {name: spec(name, echo_server()) for name in "abcd"}
    async with open_runtime(specs.values(), settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        before = dict(runtime.snapshot.connections)

        done = await runtime.apply(loaded(spec("new", echo_server()), specs["c"], changed(specs["a"]), specs["b"]))
        status = await runtime.wait_ready()
        after, tools = runtime.snapshot.connections, runtime.catalog.servers
        order = list(runtime.status())

    assert done == Applied(added=("new",), removed=("d",), changed=("a",), unchanged=("c", "b"))
    assert list(status) == order == list(tools) == ["new", "c", "a", "b"]
    assert [name for name in "bc" if after[name] is before[name]] == ["b", "c"]
    assert (status["a"].generation, status["b"].generation) == (2, 1)


async def test_calls_in_flight_end_on_the_old_generation_and_new_ones_wait_for_the_next(autojump_clock: object) -> None:
    """No call is lost: one that takes 5 s ends on the old child, one that comes meanwhile waits and is answered."""
    one = spec("one", echo_server())
    answers: list[tuple[str, float]] = []

    async def call(tool: str, **arguments: object) -> None:
        result = await runtime.call_tool(f"one.{tool}", arguments)
        answers.append((result.text, trio.current_time() - began))

    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: call("slow", seconds=5))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(runtime.apply, loaded(changed(one)))
            await trio.testing.wait_all_tasks_blocked()
            await runtime.wait_ready([])  # published
            during = runtime.status()["one"]
            tools = runtime.catalog.tools_of("one")
            nursery.start_soon(lambda: call("echo", text="hi"))

    assert (during.state, during.phase, during.reason) == (ServerState.CONNECTED, Phase.STOPPING, "reload")
    assert len(tools) == 3
    assert [text for text, _ in answers] == ["done", "hi"]
    assert answers[0][1] == pytest.approx(5.0)


async def test_a_call_that_outlasts_the_drain_fails_with_the_reason(autojump_clock: object) -> None:
    """The drain is bounded: after `drain_timeout` the old generation stops, its calls fail, the next one starts."""
    one = spec("one", echo_server())
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(TransportClosed):
                    await runtime.call_tool("one.slow", {"seconds": 1000})

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await runtime.apply(loaded(changed(one)))
            took = trio.current_time() - began
        status = (await runtime.wait_ready())["one"]

    assert took == pytest.approx(20.0, abs=0.1)
    assert (status.state, status.generation) == (ServerState.CONNECTED, 2)


@pytest.mark.parametrize("fault", ["refused", "unanswered", "unreadable"])
@pytest.mark.deadline(1000)
async def test_a_list_that_fails_during_a_drain_ends_no_call(fault: str, autojump_clock: object) -> None:
    """S153: an old generation that still answers calls may fail to list what changed; they are answered anyway."""
    server = echo_server()
    settings = evolve(SETTINGS, connect_timeout=2.0)
    texts: list[str] = []

    async with open_runtime([spec("a", server)], settings=settings) as runtime:
        await runtime.wait_ready()

        async def call() -> None:
            texts.append((await runtime.call_tool("a.slow", {"seconds": 10})).text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(1)
            nursery.start_soon(runtime.apply, loaded(changed(spec("a", server))))
            await trio.sleep(1)
            if fault == "refused":
                server.refuse("tools/list", -32603, "database gone", times=1)
            elif fault == "unanswered":
                server.silence("tools/list", times=1)
            else:
                server.answer_raw("tools/list", b'{"jsonrpc":"2.0","id":$ID,"result":{"tools":7}}', times=1)
            await server.notify("notifications/tools/list_changed")
        status = (await runtime.wait_ready())["a"]

    assert texts == ["done"]
    assert (status.is_connected, status.generation, status.restarts) == (True, 2, 0)


async def test_a_drain_of_one_server_holds_up_no_later_edit_of_another(autojump_clock: object) -> None:
    """Invariant 4: while a drains for 20 s, another configuration changes b at once."""
    a, b = spec("a", echo_server()), spec("b", echo_server())
    async with open_runtime([a, b], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.call_tool, "a.slow", {"seconds": 15})
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(runtime.apply, loaded(changed(a), b))
            await trio.testing.wait_all_tasks_blocked()

            began = trio.current_time()
            await runtime.apply(loaded(changed(a), changed(b)))
            await runtime.wait_ready(["b"])
            took = trio.current_time() - began

    assert took < 1.0


async def test_of_two_edits_the_later_one_holds(autojump_clock: object) -> None:
    """While the first edit of a server drains, a second comes: what runs in the end is the second."""
    one = spec("one", echo_server())
    second = evolve(one, call_timeout=7.0)
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.call_tool, "one.slow", {"seconds": 5})
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(runtime.apply, loaded(changed(one)))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(runtime.apply, loaded(second))
        await runtime.wait_ready()
        connection = runtime.snapshot.connections["one"]

    assert connection.spec.call_timeout == 7.0


async def test_twenty_servers_under_load_notice_nothing_of_the_change_of_one(autojump_clock: object) -> None:
    """Calls run on 20 servers while one is changed ten times: no call fails, nobody else reconnects."""
    specs = [spec(f"s{number}", echo_server()) for number in range(20)]
    failures: list[McpActorsError] = []
    calls = 0

    async def load(name: str, stop: trio.Event) -> None:
        nonlocal calls
        while not stop.is_set():
            try:
                await runtime.call_tool(f"{name}.slow", {"seconds": 0.3})
            except McpActorsError as error:
                failures.append(error)
            calls += 1

    async with open_runtime(specs, settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            for one in specs:
                nursery.start_soon(load, one.name, stop)
                nursery.start_soon(load, one.name, stop)
            for _ in range(10):
                specs[7] = changed(specs[7])
                await runtime.apply(loaded(*specs))
                await trio.sleep(1)
            stop.set()
        generations = {name: status.generation for name, status in runtime.status().items()}

    assert failures == []
    assert calls > 1000
    assert generations.pop("s7") == 11
    assert set(generations.values()) == {1}


async def test_what_a_person_disabled_stays_so_through_an_edit(autojump_clock: object) -> None:
    """S128: disabling sticks; a change of the definition is no enabling."""
    one = spec("one", echo_server())
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        await runtime.disable("one")
        await runtime.apply(loaded(changed(one)))
        held = runtime.status()["one"]
        await runtime.enable("one")
        status = (await runtime.wait_ready())["one"]

    assert (held.state, held.reason) == (ServerState.DISABLED, "user")
    assert status.state is ServerState.CONNECTED


async def test_a_definition_that_is_switched_off_stops_and_comes_back(autojump_clock: object) -> None:
    """A server that is disabled in the new configuration stops; enabled again, it runs."""
    one = spec("one", echo_server())
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        await runtime.apply(loaded(evolve(one, is_enabled=False, disabled_reason="pending-approval")))
        off = runtime.status()["one"]
        await runtime.apply(loaded(one))
        on = (await runtime.wait_ready())["one"]

    assert (off.state, off.phase, off.reason) == (ServerState.DISABLED, Phase.STOPPED, "pending-approval")
    assert on.state is ServerState.CONNECTED


async def test_the_programs_own_word_outlives_a_reload(autojump_clock: object) -> None:
    """What the program added stays, what it removed stays away until its definition changes."""
    a, b, mine = (spec(name, echo_server()) for name in ("a", "b", "mine"))
    async with open_runtime([a, b], settings=SETTINGS) as runtime:
        await runtime.add_server(mine)
        await runtime.remove_server("b")
        same = await runtime.apply(loaded(a, b))
        back = await runtime.apply(loaded(a, changed(b)))
        names = list(runtime.status())

    assert same == Applied(unchanged=("a", "mine"))
    assert back.added == ("b",)
    assert names == ["a", "b", "mine"]


async def test_a_call_to_a_server_that_is_removed_fails_as_unknown(autojump_clock: object) -> None:
    """Removed servers close at once, and are unknown afterwards."""
    one = spec("one", echo_server())
    async with open_runtime([one], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(TransportClosed):
                    await runtime.call_tool("one.slow", {"seconds": 1000})

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await runtime.apply(loaded())
        with pytest.raises(UnknownServer):
            await runtime.restart("one")


async def test_leaving_the_runtime_in_a_drain_starts_no_successor(autojump_clock: object) -> None:
    """Stop while one drains: its calls fail, it stops, and nothing takes its place."""
    starts = 0
    server = echo_server()

    async def serve(link: object) -> None:
        nonlocal starts
        starts += 1
        await server.serve(link)  # type: ignore[arg-type]

    one = spec("one", serve)
    async with trio.open_nursery() as nursery:
        async with open_runtime([one], settings=SETTINGS) as runtime:
            await runtime.wait_ready()

            async def call() -> None:
                with pytest.raises(TransportClosed):
                    await runtime.call_tool("one.slow", {"seconds": 1000})

            async def apply() -> None:
                with suppress(ActorGone):  # it may end before it is published
                    await runtime.apply(loaded(changed(one)))

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(apply)
            await trio.testing.wait_all_tasks_blocked()

    assert starts == 1


# ── reload and the watcher, on real files ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A person without any configuration."""
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}


def write(path: Path, *names: str, **changes: object) -> None:
    """Define these servers, as an editor does: another file takes the place."""
    entry = {"command": SERVER[0], "args": SERVER[1:]}
    table = {name: {**entry, **(changes.get(name) or {})} for name in names}  # type: ignore[dict-item]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"mcpServers": table}))
    fresh.replace(path)


async def test_a_broken_edit_keeps_the_last_good_set_and_says_so(tmp_path: Path, environ: dict[str, str]) -> None:
    """A file that parses no more, or an entry in it, changes nothing that runs; mended, it counts again."""
    path = tmp_path / "mcp.json"
    write(path, "a", "b")
    off = {"command": "x", "disabled": True}

    async with open_runtime(path, environ=environ, settings=SETTINGS) as runtime:
        pids = {name: status.pid for name, status in (await runtime.wait_ready()).items()}
        path.write_text('{"mcpServers": {"a": ')
        broken = await runtime.reload()
        problems = [str(problem) for problem in runtime.problems]
        write(path, "a", "b", b={"command": 7})
        half = await runtime.reload()
        entry_problems = [problem.server for problem in runtime.problems]
        path.unlink()
        gone = await runtime.reload()
        same = {name: status.pid for name, status in runtime.status().items()}
        write(path, "a", "b", b=off)
        mended = await runtime.reload()
        left = list(runtime.problems)

    assert broken == half == gone == Applied(unchanged=("a", "b"))
    assert "mcp.json" in problems[0]
    assert entry_problems == ["b"]
    assert same == pids
    assert mended == Applied(changed=("b",), unchanged=("a",))
    assert left == []


async def test_a_broken_file_does_not_hold_up_the_edit_of_another(tmp_path: Path, environ: dict[str, str]) -> None:
    """Each file keeps its own last good word: one is broken, the other's new server comes."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    write(first, "a")
    write(second, "b")

    def read() -> LoadedConfig:
        return load_config([first, second], environ=environ, strict=True)

    async with open_runtime(read(), environ=environ, settings=SETTINGS, reread=read) as runtime:
        await runtime.wait_ready()
        first.write_text("{")
        write(second, "b", "c")
        done = await runtime.reload()
        files = [problem.file for problem in runtime.problems]

    assert sorted(done.unchanged) == ["a", "b"]
    assert (done.added, done.removed, files) == (("c",), (), [str(first)])


@pytest.mark.slow
@pytest.mark.parametrize("is_polling", [True, False], ids=["polling", "events"])
async def test_editing_a_live_file_under_load_reconnects_only_what_changed(
    tmp_path: Path, environ: dict[str, str], is_polling: bool
) -> None:
    """20 real servers, calls running, a person edits one entry and adds another: no call of any fails."""
    if not is_polling:
        pytest.importorskip("watchfiles")
    path = tmp_path / "mcp.json"
    names = [f"s{number}" for number in range(20)]
    write(path, *names)
    failures: list[BaseException] = []
    answered: set[str] = set()
    stop = trio.Event()

    async def load(name: str) -> None:
        while not stop.is_set():
            try:
                await runtime.call_tool(f"{name}.echo", {"text": "hi"})
                answered.add(name)
            except McpActorsError as error:
                failures.append(error)

    async with open_runtime(path, environ=environ, settings=evolve(SETTINGS, local_batch=8)) as runtime:
        before = {name: status.pid for name, status in (await runtime.wait_ready()).items()}
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(load, name)
            watching = lambda task_status: keep_reloading(  # noqa: E731
                runtime, interval=0.05, debounce=0.05, is_polling=is_polling, task_status=task_status
            )
            await nursery.start(lambda *, task_status: watching(task_status))
            with runtime.watch() as changes:
                write(path, *names, "late", s7={"env": {"CHANGED": "1"}})
                up: set[str] = set()
                while not {"late", "s7"} <= up:
                    new = (await anext(changes)).new
                    if new is not None and new.is_connected and new.pid != before.get(new.name):
                        up.add(new.name)
            stop.set()
            nursery.cancel_scope.cancel()
        await runtime.wait_ready()
        after = {name: status.pid for name, status in runtime.status().items()}

    assert failures == []
    assert answered == set(names)
    assert None not in before.values()
    assert list(after) == [*names, "late"]
    assert [name for name in names if after[name] != before[name]] == ["s7"]


async def test_what_was_edited_before_the_first_look_is_not_missed(tmp_path: Path, environ: dict[str, str]) -> None:
    """An edit between the reading and the watching is followed, and nothing else is read again."""
    path = tmp_path / "mcp.json"
    write(path, "one")
    reloaded = trio.Event()

    async def note(_: object) -> None:
        reloaded.set()

    async with open_runtime(path, environ=environ, settings=SETTINGS) as runtime:
        was_stale = runtime.configured.is_stale()
        write(path, "one", "two")
        async with trio.open_nursery() as nursery:
            await nursery.start(
                lambda *, task_status: keep_reloading(runtime, is_polling=True, then=note, task_status=task_status)
            )
            with trio.fail_after(10):
                await reloaded.wait()
            nursery.cancel_scope.cancel()
        is_stale = runtime.configured.is_stale()
        await runtime.reload()
        is_stale_after = runtime.configured.is_stale()

    assert (was_stale, is_stale, is_stale_after) == (False, True, False)


async def test_what_the_reaction_raises_comes_bare(tmp_path: Path, environ: dict[str, str]) -> None:
    """S419: a program's own reaction fails as it would anywhere else, in no group, and the watching is over."""
    path = tmp_path / "servers.json"
    write(path)

    async def fail(_: object) -> None:
        raise KeyError("planted")

    async with open_runtime(path, environ=environ, settings=SETTINGS) as runtime:
        write(path, "one")
        with trio.fail_after(10), pytest.raises(KeyError, match="planted"):
            await keep_reloading(runtime, is_polling=True, then=fail)


async def test_files_that_do_not_exist_yet_are_watched(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.mcp.json` that appears in the working directory counts, though it was not there at the start."""
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "home" / ".claude.json"
    settings.write_text(json.dumps({"mcpServers": {"mine": {"command": SERVER[0], "args": SERVER[1:]}}}))

    async with open_runtime(None, environ=environ, settings=SETTINGS) as runtime:
        files = watched_files(runtime)
        async with trio.open_nursery() as nursery:
            await nursery.start(
                lambda *, task_status: keep_reloading(
                    runtime, interval=0.02, debounce=0.02, is_polling=True, task_status=task_status
                )
            )
            with runtime.watch() as changes:
                write(tmp_path / ".mcp.json", "theirs")
                while (change := await anext(changes)).name != "theirs":
                    pass
            nursery.cancel_scope.cancel()

    assert tmp_path / ".mcp.json" in files
    assert settings in files
    assert change.new is not None
    assert (change.new.state, change.new.reason) == (ServerState.DISABLED, "pending-approval")


async def test_news_during_a_look_are_for_the_next_one(autojump_clock: object) -> None:
    """Rule 4: what is told while nobody waits is not lost, however often; then it is waited for anew."""
    news, looks = _News(), list[float]()
    began = trio.current_time()

    async def look() -> None:
        while True:
            await news.wait()
            looks.append(trio.current_time() - began)
            await trio.sleep(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        for pause in (1, 0.5, 0.5, 8):
            await trio.sleep(pause)
            news.tell()
        await trio.sleep(5)
        nursery.cancel_scope.cancel()

    assert looks == [1, 3, 10]


def test_a_print_tells_a_replaced_and_a_missing_file(tmp_path: Path) -> None:
    """Size, moment and inode are looked at; a file that is not there has no print."""
    path = tmp_path / "a.json"
    missing = take_prints([path])
    path.write_text("1")
    there = take_prints([path])
    other = tmp_path / "b"
    other.write_text("2")
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.replace(path)

    assert missing == {path: None}
    assert there[path] is not None
    assert take_prints([path]) != there
