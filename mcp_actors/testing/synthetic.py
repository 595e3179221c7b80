"""Owns the synthetic servers of `mcp-actors storm`: how to start them as processes, over HTTP and in memory.

What this is not: the servers themselves (`stdio_server`, `http_server`, `scripted`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from mcp_actors.config.specs import EraChoice, InProcessTarget, RemoteTarget, ServerSpec, StdioTarget
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from mcp_actors.testing.stdio_server import Held, synthetic_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.testing.live_client import Call

__all__ = ["http_command", "memory_specs", "remote_specs", "stdio_specs", "synthetic_command", "synthetic_server"]

REVISIONS = {
    "legacy": LEGACY_REVISIONS,
    "modern": MODERN_REVISIONS,
    "both": MODERN_REVISIONS + LEGACY_REVISIONS,
}
# -I and -S: neither the environment nor site-packages is looked at. The module is imported by its bare name, which
# spares the package around it and, unlike a script, is compiled once for all processes.
STARTER = "import sys; sys.path.insert(0, {room!r}); import stdio_server; stdio_server.main()"


def synthetic_command(**options: object) -> tuple[str, tuple[str, ...]]:
    """Command and arguments that start the synthetic stdio server as fast as it can be.

    Args:
        options: of `stdio_server`, with underscores: ``tools=20``, ``era="legacy"``, ``start_delay=0.5``.
    """
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    room = str(Path(__file__).parent)
    return sys.executable, ("-I", "-S", "-c", STARTER.format(room=room), *words)


def http_command(servers: int, **options: object) -> tuple[str, tuple[str, ...]]:
    """Command and arguments of one process that serves `servers` synthetic servers; see `http_server`."""
    words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    return sys.executable, ("-m", "mcp_actors.testing.http_server", "--servers", str(servers), *words)


def synthetic_server(tools: int = 10, *, era: str = "both", name: str = "synthetic") -> ScriptedServer:
    """The synthetic tools on a `ScriptedServer`, for memory and HTTP."""
    server = ScriptedServer(name, revisions=REVISIONS[era])
    for tool, (description, arguments, function) in synthetic_tools(tools).items():
        properties = {key: {"type": kind} for key, kind in arguments.items()}
        schema = {"type": "object", "properties": properties}
        handler = _adapt(function) if tool != "die" else lambda _: server.hang_up()
        server.add_tool(tool, handler, description=description, input_schema=schema)
    return server


def _adapt(function: Callable[[dict[str, Any]], Any]) -> Callable[[Call], Any]:
    async def wait(held: Held, call: Call) -> str:
        for step in range(held.steps):
            await trio.sleep(held.seconds / held.steps)
            await call.progress(step + 1, held.steps)
        if not held.steps:
            await trio.sleep(held.seconds)
        return str(held.result)

    def handle(call: Call) -> Any:
        value = function(call.arguments)
        return wait(value, call) if isinstance(value, Held) else str(value)

    return handle


def stdio_specs(count: int, *, era: str = "both", **options: object) -> tuple[ServerSpec, ...]:
    """Specs of `count` synthetic stdio servers, ``s000`` and so on."""
    command, args = synthetic_command(era=era, **options)
    return tuple(ServerSpec(f"s{number:03}", StdioTarget(command, args), era=_choice(era)) for number in range(count))


def remote_specs(count: int, url: str, *, era: str = "both") -> tuple[ServerSpec, ...]:
    """Specs of `count` synthetic HTTP servers at ``url/0`` and so on."""
    return tuple(
        ServerSpec(f"s{number:03}", RemoteTarget(f"{url}/{number}"), era=_choice(era)) for number in range(count)
    )


def memory_specs(count: int, *, tools: int = 10, era: str = "both") -> tuple[ServerSpec, ...]:
    """Specs of `count` synthetic servers in this process."""
    return tuple(
        ServerSpec(f"s{number:03}", InProcessTarget(synthetic_server(tools, era=era).serve), era=_choice(era))
        for number in range(count)
    )


def _choice(era: str) -> EraChoice:
    return EraChoice.AUTO if era == "both" else EraChoice(era)
