"""Commands that meet: whatever comes at the same moment, everybody is answered and the last wish holds."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from scripted_fleet import PERMANENT, echo_server, spec

from mcp_actors.actors.lifecycle import Phase, ServerState
from mcp_actors.actors.messages import AddServer, ApplySpecs, RemoveServer
from mcp_actors.config.settings import Settings
from mcp_actors.errors import ActorGone, ConfigError, McpActorsError, UnknownServer
from mcp_actors.fleet.configured import Configured
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.fleet.running import Runtime

SETTINGS = Settings()
COMMANDS = ("enable", "disable", "restart")
STARTS = ("connected", "disabled", "parked", "backing-off", "connecting")
CALLS = 1000


async def bring(runtime: Runtime, server, start: str) -> None:
    """Bring the server `one` into a state; its connects fail or hang by then where the state wants it."""
    if start == "connecting":
        server.silence("server/discover")
        server.silence("initialize")
        await runtime.restart("one")
        return
    await runtime.wait_ready()
    if start == "disabled":
        await runtime.disable("one")
    elif start in ("parked", "backing-off"):
        server.refuse("initialize", -32000, "not today")
        server.refuse("server/discover", -32000, "not today")
        if start == "backing-off":
            server.die_on("server/discover")
            server.die_on("initialize")
        await runtime.restart("one")
        await runtime.wait_ready()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("orders", [*itertools.product(COMMANDS, repeat=2), *itertools.product(COMMANDS, repeat=3)])
@pytest.mark.deadline(100_000)
async def test_commands_of_the_same_moment_are_all_answered(
    orders: tuple[str, ...], start: str, autojump_clock: object
) -> None:
    """S128, invariant 1: every command returns, and the server is what the last one wanted."""
    server = echo_server()

    async with open_runtime([spec("one", server, **PERMANENT)], settings=SETTINGS) as runtime:
        await bring(runtime, server, start)
        with trio.fail_after(1000):
            async with trio.open_nursery() as nursery:
                for order in orders:
                    nursery.start_soon(getattr(runtime, order), "one")
                    await trio.testing.wait_all_tasks_blocked()
        for method in ("server/discover", "initialize"):
            server.obey(method)
        await trio.sleep(5000)
        status = runtime.status()["one"]

    if orders[-1] == "disable":
        assert (status.state, status.phase) == (ServerState.DISABLED, Phase.STOPPED)
    elif start not in ("parked", "backing-off") or status.state is not ServerState.FAILED:
        assert (status.state, status.phase) == (ServerState.CONNECTED, Phase.READY)


@pytest.mark.parametrize("change", ["remove", "close"])
async def test_nobody_waits_for_a_server_that_is_gone(change: str, autojump_clock: object) -> None:
    """S171, invariant 1: who waits for readiness while the server is removed, or the runtime closed, is told so."""
    server = echo_server()
    server.silence("server/discover")
    told: list[type[BaseException]] = []

    async def wait() -> None:
        try:
            await runtime.wait_ready(["one"])
        except McpActorsError as error:
            told.append(type(error))

    async with trio.open_nursery() as nursery:
        async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
            nursery.start_soon(wait)
            await trio.sleep(1)
            if change == "remove":
                await runtime.remove_server("one")

    assert set(told) <= {UnknownServer, ActorGone}


@pytest.mark.parametrize("steps", range(4))
async def test_a_removal_that_is_cancelled_leaves_no_half_known_server(steps: int, autojump_clock: object) -> None:
    """Cancellation of a command: what was begun is done, and what is not begun changes nothing."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(runtime.remove_server, "one")
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await trio.sleep(1)
        await runtime.wait_ready()

        assert set(runtime.status()) == set(runtime.configured.specs)


async def test_a_watch_ends_with_the_runtime(autojump_clock: object) -> None:
    """Invariant 1: who iterates over changes in a task of their own is let go, after the last change."""
    seen: list[str] = []

    async def watch() -> None:
        with runtime.watch() as changes:
            seen.extend([change.new.phase if change.new else "-" async for change in changes])

    async with trio.open_nursery() as nursery:
        async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
            nursery.start_soon(watch)
            await runtime.wait_ready()
    with runtime.watch() as changes:
        late = [change async for change in changes]

    assert (seen[-1], late) == ("stopped", [])


async def test_the_view_of_a_removed_server_says_so(autojump_clock: object) -> None:
    """`Server` outlives its server: it is empty, and its status is that of nobody."""
    async with open_runtime([spec("one", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        view = runtime.server("one")
        await runtime.remove_server("one")

        assert (view.tools, repr(view)) == ((), "<Server one removed>")
        with pytest.raises(UnknownServer):
            view.status  # noqa: B018 - the getter raises


TRIES = 16  # which of two tasks is first is chance


@pytest.mark.parametrize("how", ["add", "apply"])
async def test_a_server_that_is_taken_back_at_once_is_no_mistake(how: str, autojump_clock: object) -> None:
    """S038, S167: who adds it, and who removes it before it began, are both answered; the other servers are changed."""
    server = echo_server()
    old = spec("one", server)

    async with open_runtime([old], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        loaded = runtime.configured.loaded
        for number in range(TRIES):
            new, changed = spec(f"new{number}", server), evolve(old, call_timeout=5.0 + number)
            async with trio.open_nursery() as nursery:
                if how == "add":
                    nursery.start_soon(runtime.add_server, new)
                else:
                    nursery.start_soon(runtime.apply, evolve(loaded, specs=(changed, new)))
                while new.name not in runtime.configured.specs:
                    await trio.lowlevel.checkpoint()
                nursery.start_soon(runtime.remove_server, new.name)
        await runtime.wait_ready()
        status, text = runtime.status(), (await runtime.call_tool("one.echo", {"text": "still here"})).text

    assert (tuple(status), text) == (("one",), "still here")
    assert status["one"].generation == (1 if how == "add" else 1 + TRIES)


@pytest.mark.parametrize("broken", [1, 2])
async def test_a_server_that_cannot_be_changed_costs_no_other(
    broken: int, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S038: what fails for some of the servers is told to who asked; the others are changed, and the runtime lives."""
    server, admit, asked = echo_server(), Configured.admit, []

    def refuse(self: Configured, wanted: ServerSpec) -> ServerSpec:
        if wanted.call_timeout == 99.0 and wanted in asked:  # read well, and then it cannot be begun
            raise ConfigError(server=wanted.name, reason="cannot be run")
        asked.append(wanted)
        return admit(self, wanted)

    monkeypatch.setattr(Configured, "admit", refuse)
    old = [spec(f"s{number}", server) for number in range(4)]
    async with open_runtime(old, settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        changed = [evolve(each, call_timeout=99.0 if at < broken else 9.0) for at, each in enumerate(old)]
        with pytest.raises(ConfigError, match="cannot be run"):
            await runtime.apply(evolve(runtime.configured.loaded, specs=tuple(changed)))
        await runtime.wait_ready(["s2", "s3"])
        generations = {name: status.generation for name, status in runtime.status().items()}
        text = (await runtime.call_tool("s3.echo", {"text": "still here"})).text

    assert (generations["s2"], generations["s3"], text) == (2, 2, "still here")


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _cancel(runtime: Runtime, call: Callable[[], Awaitable[object]]) -> None:
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(CALLS):
                nursery.start_soon(call)


async def _time_out(runtime: Runtime, call: Callable[..., Awaitable[object]]) -> None:
    async def one() -> None:
        with pytest.raises(trio.TooSlowError):
            await call(timeout=1)

    async with trio.open_nursery() as nursery:
        for _ in range(CALLS):
            nursery.start_soon(one)


@pytest.mark.parametrize("withdraw", [_cancel, _time_out])
@pytest.mark.parametrize("revisions", [MODERN_REVISIONS, LEGACY_REVISIONS], ids=["modern", "legacy"])
async def test_many_calls_withdrawn_at_once_leave_the_connection_usable(
    revisions: tuple[str, ...], withdraw: Callable[..., Awaitable[None]], autojump_clock: object
) -> None:
    """S204, B18: each is told to the server once, and the server is not blamed for their number."""
    server = echo_server(revisions=revisions)

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        await withdraw(runtime, partial(runtime.call_tool, "one.slow", {"seconds": 100}))
        result = await runtime.call_tool("one.echo", {"text": "still here"})
        await server.wait_seen("notifications/cancelled", CALLS)
        status = runtime.status()["one"]

    assert (result.text, status.generation) == ("still here", 1)
    assert len(server.seen("notifications/cancelled")) == CALLS


async def test_a_deadline_holds_while_progress_is_being_told(autojump_clock: object) -> None:
    """S199: the caller's own coroutine for progress cannot outlast the call, nor keep the alarms awake."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async def work(call) -> str:
        await call.progress(1, 2)
        await trio.sleep(1000)
        return "done"

    async def hang(_: object) -> None:
        await trio.sleep_forever()

    server.add_tool("work", work)

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await runtime.call_tool("one.work", timeout=5, progress=hang)
        took = trio.current_time() - began

    assert took == pytest.approx(5, abs=0.1)
    assert len(server.seen("notifications/cancelled")) == 1


@pytest.mark.parametrize("timeout", [0.0, -1e-9, -1.0])
@pytest.mark.parametrize("start", ["connected", "connecting"])
async def test_a_call_without_time_left_is_too_slow(start: str, timeout: float, autojump_clock: object) -> None:
    """S199: what is left of a caller's own deadline may be less than nothing, be its server up or on its way."""
    server = echo_server()

    async with open_runtime([spec("one", server)], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        if start == "connecting":
            await bring(runtime, server, start)
        with pytest.raises(trio.TooSlowError):
            await runtime.call_tool("one.slow", {"seconds": 9}, timeout=timeout)


NONSENSE: dict[str, Callable[[Runtime], Awaitable[object]]] = {
    "restart(None)": lambda runtime: runtime.restart(None),
    "restart(list)": lambda runtime: runtime.restart(["one"]),
    "enable(bytes)": lambda runtime: runtime.enable(b"one"),
    "disable(5)": lambda runtime: runtime.disable(5),
    "remove(list)": lambda runtime: runtime.remove_server([]),
    "add(None)": lambda runtime: runtime.add_server(None),
    "wait(list)": lambda runtime: runtime.wait_ready([["one"]]),
    "apply(None)": lambda runtime: runtime.apply(None),
    "carry_out(None)": lambda runtime: runtime.carry_out(None),
    "message": lambda runtime: runtime._supervisor.ask(AddServer(None)),
    "messages": lambda runtime: runtime._supervisor.ask(ApplySpecs(put=(None,))),
    "name": lambda runtime: runtime._supervisor.ask(RemoveServer([])),
    "call(None)": lambda runtime: runtime.call_tool(None),
    "call, a list": lambda runtime: runtime.call_tool("one.echo", [1]),
    "call, a text": lambda runtime: runtime.call_tool("one.echo", "x"),
    "call, no number": lambda runtime: runtime.call_tool("one.echo", {"text": math.inf}),
    "call, meta": lambda runtime: runtime.call_tool("one.echo", {"text": "x"}, meta=5),
    "call, NaN seconds": lambda runtime: runtime.call_tool("one.echo", {"text": "x"}, timeout=math.nan),
    "call, text seconds": lambda runtime: runtime.call_tool("one.echo", {"text": "x"}, timeout="5"),
    "request, no method": lambda runtime: runtime.request("one", None, {}),
    "request, empty method": lambda runtime: runtime.request("one", "", {}),
    "request, params": lambda runtime: runtime.request("one", "ping", 5),
    "request, list": lambda runtime: runtime.request("one", "ping", [1]),
    "request, server": lambda runtime: runtime.request(None, "ping"),
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("revisions", [LEGACY_REVISIONS, MODERN_REVISIONS], ids=["legacy", "modern"])
async def test_nonsense_is_its_givers_and_nobody_elses(
    nonsense: Callable[[Runtime], Awaitable[object]], revisions: tuple[str, ...], autojump_clock: object
) -> None:
    """A wrong argument comes back to who gave it, before anything is sent; every server goes on."""
    server = echo_server(revisions=revisions)

    async with open_runtime([spec("one", server), spec("two", echo_server())], settings=SETTINGS) as runtime:
        await runtime.wait_ready()
        before = len(server.received)
        with pytest.raises((McpActorsError, TypeError, AttributeError)) as raised:
            await nonsense(runtime)
        sent = server.received[before:]
        await runtime.restart("two")
        await runtime.wait_ready()
        echoed = [(await runtime.call_tool(f"{name}.echo", {"text": "on"})).text for name in ("one", "two")]

    assert not isinstance(raised.value, ActorGone)
    assert (sent, echoed) == ([], ["on", "on"])


async def test_what_is_published_is_read_only(autojump_clock: object) -> None:
    """A reader that writes into a status or a snapshot fails, and no other reader sees it (invariant 7)."""
    async with open_runtime([], settings=SETTINGS) as runtime:
        tables = [runtime.status(), runtime.snapshot.connections, runtime.snapshot.listings]
        await runtime.add_server(spec("one", echo_server()))
        await runtime.wait_ready()
        tables += [runtime.status(), runtime.snapshot.connections, runtime.snapshot.listings]

        for table in tables:
            with pytest.raises(TypeError):
                table["x"] = None  # type: ignore[index]

    assert [len(table) for table in tables] == [0, 0, 0, 1, 1, 1]
