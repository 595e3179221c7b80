"""How one connection is asked for what somebody listens to: what it sends when that changes, and when it is refused."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio
from scripted_fleet import echo_server, spec
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.listening import ANSWER_SECONDS
from mcp_actors.actors.subscriber import LEFT_OUT, MAX_REFUSED, NOT_OFFERED
from mcp_actors.errors import NotWatched
from mcp_actors.protocol.listening import LISTEN
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from mcp_actors.actors.listening import ResourceWatcher
    from mcp_actors.protocol.types import Frame

UNSUPPORTED_VERSION = -32022
FAILED = -32603


def library(revisions: tuple[str, ...] = MODERN_REVISIONS) -> ScriptedServer:
    server = echo_server(revisions=revisions)
    server.add_resource("note://one", "1")
    return server


def asked_for(server: ScriptedServer) -> list[object]:
    """The resources that each subscription named."""
    return [message["params"]["notifications"].get("resourceSubscriptions") for message in server.seen(LISTEN)]


async def test_a_change_withdraws_the_open_subscription_and_opens_another(autojump_clock: object) -> None:
    """F01: what is wanted is one subscription; the one before is cancelled, once, when a watch begins and ends."""
    server = library()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await server.wait_seen(LISTEN, 1)
        async with runtime.server("lib").watch_resource("note://one"):
            await server.wait_seen(LISTEN, 2)
        await server.wait_seen(LISTEN, 3)
        await wait_all_tasks_blocked()
        withdrawn = [message["params"]["requestId"] for message in server.seen("notifications/cancelled")]

    assert asked_for(server) == [None, ["note://one"], None]
    assert withdrawn == [message["id"] for message in server.seen(LISTEN)[:2]]
    assert server.violations == []


@pytest.mark.deadline(1000)
async def test_a_change_ends_the_pause_after_a_loss(autojump_clock: object) -> None:
    """F02: who is refused for a passing reason asks again later; when something else is wanted, at once."""
    server = library()
    server.refuse(LISTEN, FAILED, times=1)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await wait_all_tasks_blocked()
        before, began = len(server.seen(LISTEN)), trio.current_time()
        async with runtime.server("lib").watch_resource("note://one"):
            await server.wait_seen(LISTEN, 2)
            waited = trio.current_time() - began

    assert (before, waited) == (1, 0)
    assert asked_for(server)[1] == ["note://one"]


@pytest.mark.deadline(1000)
async def test_a_refusal_for_good_is_followed_by_a_change_only(autojump_clock: object) -> None:
    """F02: a server that does not know the method is left alone until something else is wanted."""
    server = library()
    server.refuse(LISTEN, -32601, times=1)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await trio.sleep(500)
        before = len(server.seen(LISTEN))
        async with runtime.server("lib").watch_resource("note://one"):
            await server.wait_seen(LISTEN, 2)

    assert before == 1


@pytest.mark.deadline(1000)
async def test_a_server_that_names_its_revision_is_asked_once_more_at_once(autojump_clock: object) -> None:
    """A03, rule of two tries: a second refusal of the revision is a loss like others, and answered by a pause."""
    server = library()
    server.refuse(LISTEN, UNSUPPORTED_VERSION, data={"supported": list(MODERN_REVISIONS)})

    async with open_runtime([spec("lib", server)]) as runtime:
        began = trio.current_time()
        await runtime.wait_ready()
        await server.wait_seen(LISTEN, 2)
        await wait_all_tasks_blocked()
        at_once, waited = len(server.seen(LISTEN)), trio.current_time() - began

    assert (at_once, waited < 0.5) == (2, True)


class Slow(MemoryTransport):
    """The answer to a subscription is there before its frame counts as sent."""

    async def send(self, frame: Frame) -> None:
        await super().send(frame)
        if frame.method == LISTEN:
            await trio.sleep(1)


@pytest.mark.deadline(1000)
async def test_a_refusal_that_comes_before_the_frame_counts_as_sent(autojump_clock: object) -> None:
    """F02: on a slow wire too, who is refused for a passing reason asks again."""
    server = library()
    server.refuse(LISTEN, FAILED, times=1)

    async with open_runtime([spec("lib", server)], transports=lambda one: Slow(one.target.serve)) as runtime:
        await runtime.wait_ready()
        await server.wait_seen(LISTEN, 2)

    assert asked_for(server) == [None, None]


class Spawned(trio.abc.Instrument):
    """Notes the names of all tasks."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.names.append(task.name)


@pytest.mark.parametrize("revisions", [LEGACY_REVISIONS, MODERN_REVISIONS], ids=["legacy", "modern"])
async def test_an_open_subscription_costs_no_task(revisions: tuple[str, ...], autojump_clock: object) -> None:
    """A server that is listened to, or tells unasked, is asked by whoever brings it up; a change takes a task."""
    server, spawned = library(revisions), Spawned()

    trio.lowlevel.add_instrument(spawned)
    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await wait_all_tasks_blocked()
        before = [name for name in spawned.names if "Subscriber" in name]
        async with runtime.server("lib").watch_resource("note://one"):
            await wait_all_tasks_blocked()
            after = [name for name in spawned.names if "Subscriber" in name]
    trio.lowlevel.remove_instrument(spawned)

    assert (len(before), len(after)) == (0, 1)
    assert len(server.seen(LISTEN)) == (3 if revisions is MODERN_REVISIONS else 0)


@pytest.mark.deadline(1000)
@pytest.mark.parametrize("revisions", [LEGACY_REVISIONS, MODERN_REVISIONS], ids=["legacy", "modern"])
async def test_a_watch_begins_when_the_server_has_answered(revisions: tuple[str, ...], autojump_clock: object) -> None:
    """F01: what changes as soon as the block runs is told, once; nothing is told that did not change."""
    server, told = library(revisions), list[str]()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource("note://one") as changes:
            await server.notify("notifications/resources/updated", {"uri": "note://one"})
            told.append(await anext(changes))
            with trio.move_on_after(100):
                told.append(await anext(changes))

    assert told == ["note://one"]


@pytest.mark.parametrize(
    ("revisions", "method"), [(LEGACY_REVISIONS, "resources/subscribe"), (MODERN_REVISIONS, LISTEN)]
)
@pytest.mark.parametrize("is_refused", [False, True], ids=["silent", "refused"])
async def test_a_watch_waits_for_no_answer_that_does_not_come(
    revisions: tuple[str, ...], method: str, is_refused: bool, autojump_clock: object
) -> None:
    """Invariant 1: a server that is silent is waited for a few seconds, one that refuses not at all."""
    server = library(revisions)
    if is_refused:
        server.refuse(method, FAILED)
    else:
        server.silence(method)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with suppress(NotWatched):
            async with runtime.server("lib").watch_resource("note://one"):
                pass
        waited = trio.current_time() - began

    assert waited == (0 if is_refused else ANSWER_SECONDS)


@pytest.mark.deadline(1000)
async def test_what_is_watched_may_have_changed_while_nobody_listened(autojump_clock: object) -> None:
    """F02: nothing is replayed, so a lost subscription that is taken up again tells of each watched resource."""
    server, told = library(), list[str]()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource("note://one") as changes:
            await server.end_listens()
            with trio.move_on_after(100):
                async for uri in changes:
                    told.append(uri)

    assert told == ["note://one"]


@pytest.mark.deadline(1000)
async def test_a_change_interrupts_no_other_watch(autojump_clock: object) -> None:
    """F01: the subscription before is heard until the next is acknowledged, so nothing has to be fetched again."""
    server, told = library(), list[str]()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        async with lib.watch_resource("note://one") as changes:
            server.silence(LISTEN, times=1)
            async with lib.watch_resource("note://two"):
                await server.notify("notifications/resources/updated", {"uri": "note://one"})
                with trio.move_on_after(100):
                    async for uri in changes:
                        told.append(uri)
            await wait_all_tasks_blocked()
            withdrawn = len(server.seen("notifications/cancelled"))

    assert told == ["note://one"]
    assert asked_for(server) == [None, ["note://one"], ["note://one", "note://two"], ["note://one"], None]
    assert withdrawn == 3
    assert len(server.seen("tools/list")) == 1
    assert server.violations == []


@pytest.mark.deadline(1000)
async def test_a_server_that_takes_one_subscription_only_gets_one(autojump_clock: object) -> None:
    """F02: where a second one is refused for a passing reason, the first is withdrawn before the next try."""
    server = library()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await server.wait_seen(LISTEN, 1)
        server.refuse(LISTEN, FAILED, times=1)
        async with runtime.server("lib").watch_resource("note://one") as changes:
            await server.wait_seen(LISTEN, 3)
            withdrawn = [message["params"]["requestId"] for message in server.seen("notifications/cancelled")]
            told = await anext(changes)

    assert withdrawn == [server.seen(LISTEN)[0]["id"]]
    assert told == "note://one"
    assert asked_for(server)[1:3] == [["note://one"], ["note://one"]]


# ── what is not told (F01) ───────────────────────────────────────────────────────────────────────────────────────────

ONE, TWO = "note://one", "note://two"
# What the server does with what it is asked for -> why a resource is not watched.
REFUSALS = {
    "left out": (MODERN_REVISIONS, lambda server: setattr(server, "left_out", {ONE}), LEFT_OUT),
    "left out, all": (
        MODERN_REVISIONS,
        lambda server: setattr(server, "left_out", {"resourceSubscriptions"}),
        LEFT_OUT,
    ),
    "no such method": (MODERN_REVISIONS, lambda server: server.refuse(LISTEN, -32601), "error -32601: refused"),
    "legacy": (
        LEGACY_REVISIONS,
        lambda server: server.refuse("resources/subscribe", FAILED, times=1),
        "error -32603: refused",
    ),
}


@pytest.mark.parametrize("how", REFUSALS)
async def test_a_resource_that_the_server_does_not_watch_is_no_silence(how: str, autojump_clock: object) -> None:
    """F01: whoever begins to watch is told that it is not, and why, at once; the server goes on."""
    revisions, refuse, why = REFUSALS[how]
    server = library(revisions)
    refuse(server)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        began = trio.current_time()
        with pytest.raises(NotWatched) as caught:
            async with runtime.server("lib").watch_resource(ONE):
                raise AssertionError("the block does not begin")
        waited = trio.current_time() - began
        is_up = runtime.status()["lib"].is_connected

    assert (caught.value.server, caught.value.uri, caught.value.reason) == ("lib", ONE, why)
    assert (waited, is_up) == (0, True)


@pytest.mark.parametrize("how", [how for how in REFUSALS if how not in ("left out, all", "no such method")])
async def test_another_resource_is_watched_all_the_same(how: str, autojump_clock: object) -> None:
    """F01: what is honoured is heard, whatever is not."""
    revisions, refuse, _ = REFUSALS[how]
    server = library(revisions)
    server.add_resource(TWO, "2")
    refuse(server)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        with suppress(NotWatched):
            async with lib.watch_resource(ONE):
                raise AssertionError("the block does not begin")
        async with lib.watch_resource(TWO) as changes:
            await server.notify("notifications/resources/updated", {"uri": TWO})
            told = await anext(changes)

    assert told == TWO
    assert server.violations == []


LOSSES = {
    "left out": (MODERN_REVISIONS, lambda server: setattr(server, "left_out", {ONE}), LEFT_OUT),
    "no such method": (MODERN_REVISIONS, lambda server: server.refuse(LISTEN, -32601), "error -32601: refused"),
    "refused again and again": (
        MODERN_REVISIONS,
        lambda server: server.refuse(LISTEN, FAILED),
        "error -32603: refused",
    ),
    "not offered any more": (
        MODERN_REVISIONS,
        lambda server: setattr(server, "fixed_capabilities", {"tools": {}, "resources": {"listChanged": True}}),
        NOT_OFFERED,
    ),
    "legacy": (LEGACY_REVISIONS, lambda server: server.refuse("resources/subscribe", FAILED), "error -32603: refused"),
    "legacy, silent": (
        LEGACY_REVISIONS,
        lambda server: server.silence("resources/subscribe"),
        "the wall clock ran out after 30 s",
    ),
}


@pytest.mark.deadline(1000)
@pytest.mark.parametrize("how", LOSSES)
async def test_a_watch_that_ends_at_a_reconnect_tells_its_watcher(how: str, autojump_clock: object) -> None:
    """F01, F03: first that the resource may have changed, where the server answered; then that nobody will tell."""
    revisions, refuse, why = LOSSES[how]
    server, told = library(revisions), list[str]()

    async def listen_on(changes: ResourceWatcher) -> None:
        async for uri in changes:
            told.append(uri)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource(ONE) as changes:
            refuse(server)
            await runtime.restart("lib")
            with pytest.raises(NotWatched, match=why):
                await listen_on(changes)
            with pytest.raises(NotWatched):
                await anext(changes)

    assert set(told) <= {ONE}


@pytest.mark.deadline(1000)
async def test_a_watch_that_is_honoured_again_goes_on(autojump_clock: object) -> None:
    """F01: who iterates on after `NotWatched` hears of it again, at first that it may have changed."""
    server = library()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource(ONE) as changes:
            server.refuse(LISTEN, FAILED, times=MAX_REFUSED)
            await server.end_listens()
            with pytest.raises(NotWatched, match="-32603"):
                await anext(changes)
            await server.wait_seen(LISTEN, 2 + MAX_REFUSED + 1)
            await wait_all_tasks_blocked()
            missed = await anext(changes)
            with trio.move_on_after(100) as silence:
                await anext(changes)

    assert (missed, silence.cancelled_caught) == (ONE, True)


@pytest.mark.deadline(1000)
async def test_a_watcher_of_a_server_that_is_removed_is_not_told_to_wait(autojump_clock: object) -> None:
    """F01: the end of a server for good is the end of the iteration, also where it was not watched."""
    server = library()

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource(ONE) as changes:
            server.left_out = {ONE}
            await runtime.restart("lib")
            await runtime.remove_server("lib")
            left = [uri async for uri in changes]

    assert set(left) <= {ONE}


WHY_LISTS = {
    "tools left out": ({"toolsListChanged"}, None, ["tools/list"]),
    "all left out": ({"toolsListChanged", "resourcesListChanged"}, None, ["tools/list", "resources/list"]),
    "no such method": ((), -32601, ["tools/list", "resources/list"]),
    "honoured": ((), None, []),
}


@pytest.mark.deadline(1000)
@pytest.mark.parametrize("how", WHY_LISTS)
async def test_a_list_whose_changes_are_not_told_is_in_the_status(how: str, autojump_clock: object) -> None:
    """F01: who counts on list_changed sees of which lists the server tells nothing, of those that it offers."""
    left_out, code, methods = WHY_LISTS[how]
    server = library()
    server.left_out = left_out
    if code is not None:
        server.refuse(LISTEN, code)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await trio.sleep(1)
        warnings = runtime.status()["lib"].warnings

    why = LEFT_OUT if code is None else f"error {code}: refused"
    assert list(warnings) == [f"{method}: changes are not told: {why}" for method in methods]


@pytest.mark.deadline(1000)
async def test_a_warning_of_a_list_ends_when_its_changes_are_told_again(autojump_clock: object) -> None:
    """F01: and the list, of which something may have been missed, is not fetched for the warning's sake."""
    server = library()
    server.left_out = {"toolsListChanged"}

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        await trio.sleep(1)
        before, fetched = runtime.status()["lib"].warnings, len(server.seen("tools/list"))
        server.left_out = ()
        async with runtime.server("lib").watch_resource(ONE):
            await trio.sleep(1)
            after = runtime.status()["lib"].warnings

    assert (len(before), after) == (1, ())
    assert (fetched, len(server.seen("tools/list"))) == (1, 1)
