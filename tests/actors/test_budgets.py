"""A call takes no more than its time, whatever it becomes; a person takes none of it."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve, frozen
from scripted_fleet import spec

from mcp_actors.actors.host import ServerRequest, WiredHost
from mcp_actors.errors import RpcError, TransportError
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.types import Refusal
from mcp_actors.runtime import Runtime, open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from tests.actors.played_wire import Play, PlayedWire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

STEP = 4.0  # seconds that the server takes for what is played, where nothing else is said
THINKING = 1000.0
FORM = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
PAGE = {"mode": "url", "message": "Pay", "url": "https://example.com/pay", "elicitationId": "e"}
QUESTION = {"q": {"method": "elicitation/create", "params": {"mode": "form", **FORM}}}
ANSWER = {"content": [{"type": "text", "text": "done"}]}
TASK = {"taskId": "t", "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:00Z"}
EXTENSION = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
OLD_TASKS = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
GONE = Refusal(404, body=encode({"error": {"code": -32001, "message": "Session not found"}}), had_session=True)
BUSY = Refusal(503, retry_after=STEP)
SERVER = {"name": "n", "version": "1"}
INITIALIZED = {"protocolVersion": LEGACY_REVISIONS[0], "capabilities": {"tools": {}}, "serverInfo": SERVER}


@frozen
class Scene:
    """Where something is played."""

    server: ScriptedServer
    nursery: trio.Nursery

    async def ask(self) -> None:
        """Ask the person, as a legacy server does."""
        await self.server.ask("elicitation/create", FORM)


def turns(*answers: object, seconds: float = STEP) -> Play:
    """Takes its time and gives the next answer each time, the last one for ever; what is callable is awaited for it."""
    left = list(answers)

    async def play(message: dict) -> dict | Refusal | None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        made = await answer() if callable(answer) else answer
        await trio.sleep(seconds)
        return made

    return play


# Each gives what it plays, and how many seconds that takes without the person.
def rounds(scene: Scene) -> tuple[dict[str, Play], float]:
    asked = {"resultType": "input_required", "requestState": "s", "inputRequests": QUESTION}
    waiting = {"resultType": "input_required", "requestState": "s"}
    return {"tools/call": turns(asked, waiting, {"resultType": "complete", **ANSWER})}, 3 * STEP + 0.05


def pages(scene: Scene) -> tuple[dict[str, Play], float]:
    return {"tools/call": turns({"code": -32042, "message": "pay", "data": {"elicitations": [PAGE]}}, ANSWER)}, 2 * STEP


def another_schema(scene: Scene) -> tuple[dict[str, Play], float]:
    lists = iter([0.0])

    async def list_tools(message: dict) -> None:
        await trio.sleep(next(lists, STEP))

    wrong = {"code": -32020, "message": "header mismatch"}
    asked = {"resultType": "input_required", "inputRequests": QUESTION}
    return {
        "tools/call": turns(wrong, asked, {"resultType": "complete", **ANSWER}),
        "tools/list": list_tools,
    }, 4 * STEP


def modern_task(scene: Scene) -> tuple[dict[str, Play], float]:
    poll = {"resultType": "complete", **TASK, "ttlMs": None, "pollIntervalMs": 2000, "status": "working"}
    asked = {**poll, "status": "input_required", "inputRequests": QUESTION}
    done = {**poll, "status": "completed", "result": ANSWER}
    return {
        "tools/call": turns({**poll, "resultType": "task"}),
        "tasks/get": turns(poll, asked, done),
        "tasks/update": turns({"resultType": "complete"}),
        "tasks/cancel": turns({"resultType": "complete"}, seconds=0),
    }, 5 * STEP + 3 * 2


def old_task(scene: Scene) -> tuple[dict[str, Play], float]:
    """The question comes while the result is waited for, which takes longer than a poll may."""
    task = {**TASK, "ttl": None, "pollInterval": 2000, "status": "working"}

    async def result(message: dict) -> dict:
        await scene.ask()
        await trio.sleep(100)
        return ANSWER

    return {
        "tools/call": turns({"task": task}),
        "tasks/get": turns({**task, "status": "input_required"}),
        "tasks/result": result,
        "tasks/cancel": turns({}, seconds=0),
    }, 2 * STEP + 2 + 100


def old_task_that_asks_between(scene: Scene) -> tuple[dict[str, Play], float]:
    """The question comes between two polls, which go on while the person thinks."""
    task = {**TASK, "ttl": None, "pollInterval": 2000, "status": "working"}
    state = {"status": "working"}

    async def think() -> None:
        await trio.sleep(1)
        await scene.ask()
        state["status"] = "completed"

    async def call(message: dict) -> dict:
        scene.nursery.start_soon(think)
        return {"task": task}

    async def get(message: dict) -> dict:
        return {**task, **state}

    return {
        "tools/call": call,
        "tasks/get": get,
        "tasks/result": turns(ANSWER),
        "tasks/cancel": turns({}, seconds=0),
    }, 2 + STEP


def busy(scene: Scene) -> tuple[dict[str, Play], float]:
    async def answer() -> dict:
        await scene.ask()
        return ANSWER

    return {"tools/call": turns(BUSY, answer)}, 3 * STEP


def lost_session(scene: Scene) -> tuple[dict[str, Play], float]:
    first = iter([None])

    async def initialize(message: dict) -> dict | None:
        if next(first, message) is None:
            return None
        await trio.sleep(STEP)
        return INITIALIZED

    async def answer() -> dict:
        await scene.ask()
        return ANSWER

    return {"tools/call": turns(GONE, answer), "initialize": initialize}, 3 * STEP


HTTP, STDIO, BOTH = ("http",), ("stdio",), ("http", "stdio")
# What a call becomes: who plays it, its era, over which wires, and the server's capabilities.
WAYS: dict[str, tuple[Callable[[Scene], tuple[dict[str, Play], float]], object, tuple[str, ...], dict | None]] = {
    "rounds": (rounds, MODERN_REVISIONS, BOTH, None),
    "pages": (pages, LEGACY_REVISIONS, BOTH, None),
    "pages, in the host's way": (pages, LEGACY_REVISIONS, BOTH, None),
    "another schema": (another_schema, MODERN_REVISIONS, HTTP, None),
    "modern task": (modern_task, MODERN_REVISIONS, BOTH, EXTENSION),
    "legacy task": (old_task, LEGACY_REVISIONS, BOTH, OLD_TASKS),
    "legacy task, asked between polls": (old_task_that_asks_between, LEGACY_REVISIONS, BOTH, OLD_TASKS),
    "tried again": (busy, LEGACY_REVISIONS, HTTP, None),
    "lost session": (lost_session, LEGACY_REVISIONS, HTTP, None),
}
CASES = [pytest.param(way, kind, id=f"{way}, {kind}") for way in WAYS for kind in WAYS[way][2]]


@frozen
class Stage:
    """A call that can be made, and how long it takes without a person."""

    runtime: Runtime
    wire: PlayedWire
    seconds: float

    async def call(self, timeout: float) -> float:
        """Make it; returns how long it took."""
        began = trio.current_time()
        result = await self.runtime.call_tool("one.work", timeout=timeout)
        assert result.text == "done"
        return trio.current_time() - began

    @property
    def told(self) -> list[str | None]:
        """What told the server that nobody waits any more."""
        return [word for word in self.wire.sent if word in {"notifications/cancelled", "tasks/cancel"}] + self.wire.cut


@asynccontextmanager
async def staged(way: str, kind: str, thinks: float) -> AsyncIterator[Stage]:
    make, revisions, _, capabilities = WAYS[way]
    server = ScriptedServer(revisions=revisions, fixed_capabilities=capabilities)
    server.add_tool("work", lambda call: "never", execution={"taskSupport": "optional"})

    async def person(request: ServerRequest) -> dict[str, object]:
        await trio.sleep(thinks)
        return {"action": "accept"} if request.params.get("mode") == "url" else {"action": "accept", "content": {}}

    async def with_pages(name: str, attempt: Callable[[], Awaitable[bytes]]) -> bytes:
        with suppress(RpcError):
            return await attempt()
        await trio.sleep(thinks)
        return await attempt()

    host = WiredHost({"elicitation/create": person}, {"elicitation": {"form": {}, "url": {}}}, wants_tasks=True)
    host = evolve(host, with_pages=with_pages if "host" in way else None)
    async with trio.open_nursery() as nursery:
        plays, seconds = make(Scene(server, nursery))
        wire = PlayedWire(kind, server, plays)
        async with open_runtime([spec("one", server)], transports=lambda _: wire, host=host) as runtime:
            await runtime.wait_ready()
            yield Stage(runtime, wire, seconds)
        nursery.cancel_scope.cancel()


@pytest.mark.deadline(100_000)
@pytest.mark.parametrize("thinks", [0.0, THINKING])
@pytest.mark.parametrize(("way", "kind"), CASES)
async def test_a_call_that_has_the_time_ends_well(way: str, kind: str, thinks: float, autojump_clock: object) -> None:
    """S200, S202: what it becomes fits in its time, and what a person takes is no part of that."""
    async with staged(way, kind, thinks) as stage:
        took = await stage.call(stage.seconds + 0.5)

        assert took == pytest.approx(stage.seconds + thinks, abs=0.1)
        assert stage.told == []


@pytest.mark.deadline(100_000)
@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize(("way", "kind"), CASES)
async def test_a_call_that_has_not_the_time_ends_with_it(
    way: str, kind: str, part: float, autojump_clock: object
) -> None:
    """S199, S200, S204: wherever its time ends, it ends just then; of what goes on the server is told, once."""
    async with staged(way, kind, 0.0) as stage:
        timeout, began = stage.seconds * part, trio.current_time()
        with pytest.raises((trio.TooSlowError, TransportError)) as caught:
            await stage.call(timeout)
        took = trio.current_time() - began
        await trio.sleep(10 * STEP)

        if isinstance(caught.value, TransportError):  # a pause that would end too late is not made
            assert (way, took <= timeout) == ("tried again", True)
        else:
            assert took == pytest.approx(timeout)
            assert f"the wall clock ran out after {timeout:g} s" in str(caught.value) or way == "lost session"
        assert stage.told or way in {"another schema", "tried again", "lost session"}  # where no request may be open
        assert len(stage.told) == len(set(stage.told))


@pytest.mark.deadline(100_000)
@pytest.mark.parametrize(("way", "kind"), CASES)
async def test_a_person_gives_a_call_no_more_time(way: str, kind: str, autojump_clock: object) -> None:
    """S202: the clock goes on where it stood when the person was asked."""
    async with staged(way, kind, THINKING) as stage:
        timeout, began = stage.seconds - 0.5, trio.current_time()
        with pytest.raises(trio.TooSlowError, match="the wall clock ran out"):
            await stage.call(timeout)

        assert trio.current_time() - began == pytest.approx(timeout + THINKING, abs=0.1)
