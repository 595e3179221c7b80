"""Owns the fleet of `mcp-actors demo` as data: servers that need nothing installed, and one call to make on each.

What this is not: the demo itself (`cli`), nor the programs (`demo_programs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import trio

from mcp_actors.config.specs import InProcessTarget, RemoteTarget, RestartType, ServerSpec, StdioTarget
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.testing.synthetic import synthetic_command

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.testing.scripted import Call

__all__ = ["DEMO_CALLS", "DemoCall", "calculator_server", "demo_specs", "library_server"]


class DemoCall(NamedTuple):
    """One call that shows a server at work."""

    server: str
    tool: str
    arguments: JsonObject


DEMO_CALLS: tuple[DemoCall, ...] = (
    DemoCall("clock", "now", {}),
    DemoCall("notes", "add_note", {"text": "hello from the demo"}),
    DemoCall("dice", "roll", {"sides": 20, "count": 2}),
    DemoCall("library", "find_book", {"word": "sea"}),
    DemoCall("calculator", "sum", {"numbers": [1, 2, 3.5]}),
)

BOOKS = ("Moby-Dick", "The Old Man and the Sea", "Twenty Thousand Leagues Under the Seas", "Treasure Island")


def library_server() -> ScriptedServer:
    """The server that the demo offers over HTTP: modern, with a resource, and progress on the way."""
    server = ScriptedServer("library", instructions="Ask for books by a word of their title.")

    async def find_book(call: Call) -> str:
        found: list[str] = []
        for number, title in enumerate(BOOKS, 1):
            await call.progress(number, len(BOOKS), f"looked at {title}")
            await trio.sleep(0.02)
            if str(call["word"]).lower() in title.lower():
                found.append(title)
        return "\n".join(found) or "no such book"

    server.add_tool(
        "find_book",
        find_book,
        description="Finds books by a word of their title.",
        input_schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        annotations={"readOnlyHint": True},
    )
    server.add_resource("library://books", "\n".join(BOOKS), name="All books", mimeType="text/plain")
    return server


def calculator_server() -> ScriptedServer:
    """The server that the demo runs in its own process."""
    server = ScriptedServer("calculator")
    numbers = {"type": "array", "items": {"type": "number"}}
    server.add_tool(
        "sum",
        lambda call: f"{sum(call['numbers']):g}",
        description="Adds numbers.",
        input_schema={"type": "object", "properties": {"numbers": numbers}, "required": ["numbers"]},
        annotations={"readOnlyHint": True, "idempotentHint": True},
    )
    return server


def demo_specs(http_url: str) -> tuple[ServerSpec, ...]:
    """The demo's servers: three programs, one over HTTP at `http_url`, one in this process.

    The clock speaks the legacy era only, so that the demo shows both. The programs are permanent, so that one that is
    killed comes back by itself.
    """
    programs = {"clock": "legacy", "notes": "both", "dice": "both"}
    specs = [
        ServerSpec(name, StdioTarget(*synthetic_command(program=name, era=era)), restart_type=RestartType.PERMANENT)
        for name, era in programs.items()
    ]
    remote = ServerSpec("library", RemoteTarget(http_url))
    inside = ServerSpec("calculator", InProcessTarget(calculator_server().serve))
    return (*specs, remote, inside)
