"""Real servers of others over every transport and in both eras, by the Python API."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest
import trio

from mcp_actors import Host, open_runtime
from tests.peers.programs import free_port, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from mcp_actors import ServerRequest
    from mcp_actors.actors.slots import Progress

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(400)]

LEGACY, MODERN = ("legacy", "2025-11-25"), ("modern", "2026-07-28")


# ── server-everything over every transport ───────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def over_stdio(npm_bin: Path) -> AsyncIterator[dict[str, object]]:
    """A child of ours."""
    yield {"command": str(npm_bin / "mcp-server-everything"), "args": ["stdio"]}


@asynccontextmanager
async def over_http(npm_bin: Path) -> AsyncIterator[dict[str, object]]:
    """Its own streamable HTTP face, with sessions."""
    port = free_port()
    async with serving([str(npm_bin / "mcp-server-everything"), "streamableHttp"], port, {"PORT": str(port)}):
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}


@asynccontextmanager
async def over_sse(npm_bin: Path) -> AsyncIterator[dict[str, object]]:
    """Its own HTTP+SSE face."""
    port = free_port()
    async with serving([str(npm_bin / "mcp-server-everything"), "sse"], port, {"PORT": str(port)}):
        yield {"type": "sse", "url": f"http://127.0.0.1:{port}/sse"}


@asynccontextmanager
async def over_websocket(npm_bin: Path) -> AsyncIterator[dict[str, object]]:
    """A gateway of others from stdio to WebSocket, on the `ws` library of Node."""
    port = free_port()
    child = f"{npm_bin / 'mcp-server-everything'} stdio"
    words = [str(npm_bin / "supergateway"), "--stdio", child, "--outputTransport", "ws", "--port", str(port)]
    async with serving([*words, "--messagePath", "/message"], port):
        yield {"type": "ws", "url": f"ws://127.0.0.1:{port}/message"}


Way: TypeAlias = "Callable[[Path], AbstractAsyncContextManager[dict[str, object]]]"
WAYS: dict[str, Way] = {"stdio": over_stdio, "http": over_http, "sse": over_sse, "ws": over_websocket}


@pytest.mark.deadline(60)
@pytest.mark.parametrize("way", WAYS)
async def test_server_everything_is_connected_and_called(npm_bin: Path, way: str) -> None:
    """One server over each transport: era, revision, lists, a call, structured content, progress, an error."""
    steps: list[float] = []

    def note(progress: Progress) -> None:
        steps.append(progress.progress)

    async with WAYS[way](npm_bin) as entry, open_runtime({"mcpServers": {"everything": entry}}) as runtime:
        status = (await runtime.wait_ready())["everything"]
        assert status.is_connected, status.error
        echo = await runtime.call_tool("everything.echo", {"message": "hi"})
        weather = await runtime.call_tool("everything.get-structured-content", {"location": "Chicago"})
        long = await runtime.call_tool(
            "everything.trigger-long-running-operation", {"duration": 0.5, "steps": 5}, progress=note
        )
        wrong = await runtime.call_tool("everything.get-sum", {"a": "x"})
        resources = json.loads(await runtime.request("everything", "resources/list"))["resources"]
        after = runtime.status()["everything"]

    assert (status.era, status.revision, status.transport) == (*LEGACY, way)
    assert (status.tools or 0) >= 12
    assert resources
    assert echo.text == "Echo: hi"
    assert isinstance(weather.structured_content, dict)
    assert "temperature" in weather.structured_content
    assert (long.is_error, wrong.is_error) == (False, True)
    assert steps == sorted(steps)
    assert steps
    assert (after.generation, after.restarts) == (1, 0)


@pytest.mark.deadline(60)
@pytest.mark.parametrize("way", ["stdio", "http", "sse"])
async def test_server_everything_may_ask(npm_bin: Path, way: str) -> None:
    """With handlers for them, its tools that ask for roots, a sample and a form are offered, and get their answers."""
    asked: list[str] = []

    async def roots(request: ServerRequest) -> dict[str, object]:
        asked.append(request.method)
        return {"roots": [{"uri": "file:///somewhere", "name": "place"}]}

    async def sample(request: ServerRequest) -> dict[str, object]:
        asked.append(request.method)
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "a sample of mine"}}

    async def form(request: ServerRequest) -> dict[str, object]:
        asked.append(request.method)
        return {"action": "decline"}

    host = Host({"roots/list": roots, "sampling/createMessage": sample, "elicitation/create": form})
    async with WAYS[way](npm_bin) as entry, open_runtime({"mcpServers": {"everything": entry}}, host=host) as runtime:
        status = (await runtime.wait_ready())["everything"]
        assert status.is_connected, status.error
        # Its list depends on what we can; it says so by notification once our roots have come.
        with runtime.watch() as changes:
            if not {"everything.get-roots-list"} <= offered(runtime):
                async for _ in changes:
                    if "everything.get-roots-list" in offered(runtime):
                        break
        place = await runtime.call_tool("everything.get-roots-list", {})
        sampled = await runtime.call_tool("everything.trigger-sampling-request", {"prompt": "p", "maxTokens": 5})
        declined = await runtime.call_tool("everything.trigger-elicitation-request", {})

    assert "file:///somewhere" in place.text
    assert "a sample of mine" in sampled.text
    assert "declined" in declined.text
    assert set(asked) == {"roots/list", "sampling/createMessage", "elicitation/create"}


def offered(runtime: object) -> set[str]:
    """Tools now, as ``server.tool``."""
    return {f"{tool.server}.{tool.name}" for tool in runtime.catalog.tools.values()}  # type: ignore[attr-defined]


# ── the modern era ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deadline(60)
async def test_a_modern_stdio_server_is_spoken_to_in_its_era() -> None:
    """mcp-server-time answers the probe, and is never sent an initialize."""
    servers = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}

    async with open_runtime({"mcpServers": servers}) as runtime:
        status = (await runtime.wait_ready())["time"]
        noon = await runtime.call_tool(
            "time.convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        )
        wrong = await runtime.call_tool("time.get_current_time", {"timezone": "No/Where"})

    assert (status.era, status.revision, status.tools) == (*MODERN, 2)
    assert "21:00" in noon.text
    assert wrong.is_error


# ── a proxy of others in front of a stdio server ─────────────────────────────────────────────────────────────────────


def proxy(npm_bin: Path, port: int, *child: str, modern: bool) -> AbstractAsyncContextManager[None]:
    """mcp-proxy on `port`, in front of a stdio server."""
    era = "--modern" if modern else "--no-modern"
    return serving([str(npm_bin / "mcp-proxy"), "--host", "127.0.0.1", "--port", str(port), era, "--", *child], port)


Program: TypeAlias = "Callable[[Path, int], AbstractAsyncContextManager[None]]"


def legacy_proxy(npm_bin: Path, port: int) -> AbstractAsyncContextManager[None]:
    """It says 404 and -32001 to the id of a session that it does not know."""
    return proxy(npm_bin, port, str(npm_bin / "mcp-server-everything"), "stdio", modern=False)


def everything(npm_bin: Path, port: int) -> AbstractAsyncContextManager[None]:
    """It says 400 and -32000, and in words that the session is none."""
    return serving([str(npm_bin / "mcp-server-everything"), "streamableHttp"], port, {"PORT": str(port)})


@pytest.mark.deadline(90)
@pytest.mark.parametrize("program", [legacy_proxy, everything])
async def test_a_server_killed_and_restarted_between_two_calls_costs_one_initialize(
    npm_bin: Path, program: Program
) -> None:
    """The second call finds its session gone; it is renewed in place, and the caller sees only the result."""
    port = free_port()
    servers = {"mortal": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}
    die, is_dead = trio.Event(), trio.Event()

    async def first_life(task_status: trio.TaskStatus[None]) -> None:
        async with program(npm_bin, port):
            task_status.started()
            await die.wait()
        is_dead.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(first_life)
        async with open_runtime({"mcpServers": servers}) as runtime:
            status = (await runtime.wait_ready())["mortal"]
            assert status.is_connected, status.error
            before = await runtime.call_tool("mortal.echo", {"message": "before"})
            die.set()
            await is_dead.wait()
            async with program(npm_bin, port):
                after = await runtime.call_tool("mortal.echo", {"message": "after"})
                again = await runtime.call_tool("mortal.echo", {"message": "again"})
                final = runtime.status()["mortal"]

    assert (status.era, status.revision) == LEGACY
    assert (before.text, after.text, again.text) == ("Echo: before", "Echo: after", "Echo: again")
    assert (final.is_connected, final.generation, final.restarts) == (True, 1, 0)


@pytest.mark.deadline(60)
async def test_a_proxy_lets_the_modern_era_through(npm_bin: Path) -> None:
    """A modern stdio server behind a proxy that speaks both eras is spoken to in the modern one, over HTTP."""
    port = free_port()
    servers = {"proxied": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}

    async with proxy(npm_bin, port, sys.executable, "-m", "mcp_server_time", modern=True):
        async with open_runtime({"mcpServers": servers}) as runtime:
            status = (await runtime.wait_ready())["proxied"]
            assert status.is_connected, status.error
            result = await runtime.call_tool("proxied.get_current_time", {"timezone": "UTC"})

    assert (status.era, status.revision) == MODERN
    assert "UTC" in result.text
