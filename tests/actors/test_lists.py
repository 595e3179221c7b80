"""What a connection lists: fetched after READY, kept where fetching fails, refreshed on wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.config.settings import Settings
from mcp_actors.fleet.server import Refreshed, RefreshOutcome
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from mcp_actors.fleet.running import Runtime

REFRESHED, ERROR, NOT_CONNECTED = RefreshOutcome


def library() -> ScriptedServer:
    """Three tools, two resources, one prompt."""
    server = echo_server()
    server.add_resource("note://a", "a")
    server.add_resource("note://b", "b")
    server.add_prompt("hello", "hi")
    return server


async def test_lists_are_asked_for_after_ready_where_they_were_declared(autojump_clock: object) -> None:
    """S148, fault 69: tools come with name, description and schema; what a server does not declare is not asked for."""
    server = ScriptedServer("one")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    server.add_tool("echo", lambda call: "", description="says it again", input_schema=schema)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        [tool] = runtime.server("one").tools

    assert (tool.name, tool.description, tool.input_schema) == ("echo", "says it again", schema)
    assert len(server.seen("tools/list")) == 1
    assert server.seen("resources/list") == server.seen("prompts/list") == []


async def test_a_list_that_holds_nothing_is_flagged(autojump_clock: object) -> None:
    """S155: a server that declares tools and lists none stays connected, and its status says so."""
    server = echo_server()
    server.answer_with("tools/list", {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"})

    async with open_runtime([spec("one", server)]) as runtime:
        status = (await runtime.wait_ready())["one"]

    assert (status.is_connected, status.tools) == (True, 0)
    assert status.warnings == ("it declares tools and lists none",)


async def test_an_answer_that_was_listed_once_serves_everybody(autojump_clock: object) -> None:
    """S151: looking at lists asks nobody; another life of the server, that is another generation, lists anew."""
    server = library()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        for _ in range(100):
            assert len(runtime.server("one").tools) == 3
            assert len(runtime.server("one").resources) == 2
        asked = len(server.seen("tools/list"))
        await runtime.restart("one")
        await runtime.wait_ready()
        while not runtime.status()["one"].is_connected:
            await runtime.wait_published()

    assert asked == 1
    assert len(server.seen("tools/list")) == 2


# ── refresh ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_refresh_tells_what_came_and_went(autojump_clock: object) -> None:
    """S172: counts, and the tools that were added and removed; the catalog has them when it returns."""
    server = library()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        same = await runtime.server("one").refresh()
        server.remove_tool("fail")
        server.add_tool("late", lambda call: "here")
        changed = await runtime.server("one").refresh()
        result = await runtime.call_tool("mcp__one__late")

    assert same == Refreshed("one", REFRESHED, 3, 2, 1)
    assert changed == Refreshed("one", REFRESHED, 3, 2, 1, added=("late",), removed=("fail",))
    assert result.text == "here"


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
async def test_a_refresh_that_fails_keeps_what_was_known(kind: str, autojump_clock: object) -> None:
    """S153, S172: the outcome is an error that names the list; all lists are as they were, and the next may succeed."""
    server = library()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        server.refuse(f"{kind}/list", -32603, "database gone", times=1)
        failed = await runtime.server("one").refresh()
        flagged = runtime.status()["one"].warnings
        tools = len(runtime.catalog)
        again = await runtime.server("one").refresh()
        cleared = runtime.status()["one"].warnings

    assert (failed.outcome, failed.tools, failed.resources, failed.prompts) == (ERROR, 3, 2, 1)
    assert failed.error is not None
    assert failed.error.startswith(f"{kind}: ")
    assert "database gone" in failed.error
    assert (len(flagged), tools) == (1, 3)
    assert (again, cleared) == (Refreshed("one", REFRESHED, 3, 2, 1), ())


async def test_a_refresh_connects_nobody(autojump_clock: object) -> None:
    """S172: a server that is not connected says so, and stays as it is."""
    server = library()

    async with open_runtime([spec("one", server, is_enabled=False)]) as runtime:
        await runtime.wait_ready()
        outcome = await runtime.server("one").refresh()

    assert outcome == Refreshed("one", NOT_CONNECTED)
    assert server.seen("tools/list") == []


@pytest.mark.parametrize("end", ["die", "disable", "restart"])
async def test_nobody_waits_for_the_lists_of_the_dead(end: str, autojump_clock: object) -> None:
    """Invariant 1: a connection that ends during a refresh lets those who wait for it go."""
    server = library()
    outcomes: list[Refreshed] = []

    async def refresh(runtime: Runtime) -> None:
        outcomes.append(await runtime.server("one").refresh())

    async with open_runtime([spec("one", server)], settings=Settings()) as runtime:
        await runtime.wait_ready()
        if end == "die":
            server.die_on("tools/list", times=1)
        else:
            server.silence("tools/list", times=1)
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(refresh, runtime)
                await trio.testing.wait_all_tasks_blocked()
                if end != "die":
                    await getattr(runtime, end)("one")

    assert [outcome.outcome for outcome in outcomes] == [NOT_CONNECTED] * 3
