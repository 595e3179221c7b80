"""Owns the running of hooks: programs, POSTs and tools, all that match at once, each in its time.

What this is not: what their ends mean (`elicitation.hook_outcomes`).

Rule 1: a hook that cannot be run is a value (`Failed`), never an exception.
Rule 2: a program that is not wanted any more dies with its whole process group.
Rule 3: no hook is read further than the bound.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import field

from mcp_actors.elicitation.hook_outcomes import MAX_OUTPUT_BYTES, Exited, Failed, Responded
from mcp_actors.elicitation.hooks import CommandHook, HttpHook, ToolHook, expand_headers, fill_input
from mcp_actors.errors import ServerNotReady, UnknownTool
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.transports.commands import resolve_command
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.spawning import spawn
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mcp_actors.actors.registry import Snapshot
    from mcp_actors.elicitation.hook_outcomes import HookEnd
    from mcp_actors.elicitation.hooks import Handler
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.transports.process import Child

__all__ = ["Connected", "HookRunner", "RunHook", "call_connected", "run_hooks"]

# How long a killed program is waited for; only one stuck in the kernel takes longer.
REAP_TIMEOUT = 2.0


class RunHook(Protocol):
    """Runs hooks; `HookRunner` is one."""

    async def __call__(self, handler: Handler, told: JsonObject) -> HookEnd:
        """Run one hook that is told `told`. Its timeout is kept by the caller.

        Cancellation:
            Ends the hook, with all it started.
        """
        ...


class Connected(Protocol):
    """As much of the runtime as a hook's tool needs; see `Runtime` for each."""

    @property
    def snapshot(self) -> Snapshot: ...

    async def call_tool(self, name: str, arguments: JsonObject | None = None) -> ToolResult: ...


async def call_connected(runtime: Connected, server: str, tool: str, arguments: JsonObject) -> ToolResult:
    """Call a tool by its raw name, on a server that is connected.

    Raises:
        ServerNotReady: it is not, and asking never connects it (S313).
        UnknownTool: it has no such tool.
        (and what `Runtime.call_tool` raises.)

    Cancellation:
        Safe, as `Runtime.call_tool`.
    """
    if server not in runtime.snapshot.connections:
        raise ServerNotReady(server=server, state="not connected", reason="a hook's tool connects nothing")
    found = runtime.snapshot.catalog.resolve_route(server, tool)
    if found is None:
        raise UnknownTool(server=server, name=f"{server}.{tool}", nearest=())
    return await runtime.call_tool(found.callable_name, arguments)


async def run_hooks(handlers: Sequence[Handler], told: JsonObject, run_hook: RunHook) -> list[HookEnd]:
    """Run all at once, each for as long as it may take.

    Returns:
        How each ended, in the order given.

    Cancellation:
        Safe; every hook is ended.

    Source:
        S309, S310.
    """
    ends: list[HookEnd] = [Failed(f"a hook took longer than {handler.timeout:g} s") for handler in handlers]

    async def run(at: int, handler: Handler) -> None:
        with trio.move_on_after(handler.timeout):
            try:
                ends[at] = await run_hook(handler, told)
            except Exception as error:  # noqa: BLE001 - a foreign program, or a tool: whatever it raises (rule 1)
                ends[at] = Failed(f"a hook could not be run: {error or type(error).__name__}")

    async with trio.open_nursery() as running:
        for at, handler in enumerate(handlers):
            running.start_soon(run, at, handler)
    return ends


@frozen
class HookRunner:
    """Runs hooks of all kinds. Call it."""

    # Environment of programs, and what headers may name.
    environ: Mapping[str, str] = field(repr=False)
    # Where programs start; they are told so as CLAUDE_PROJECT_DIR, too (S311).
    project: str
    # Calls a tool of a server by its raw name; must not connect anything (S313).
    call_tool: Callable[[str, str, JsonObject], Awaitable[ToolResult]] | None = None

    async def __call__(self, handler: Handler, told: JsonObject) -> HookEnd:
        """Run one hook.

        Raises:
            Exception: it could not be run; see `run_hooks`.

        Cancellation:
            Ends the hook, with all it started; shielded for at most two seconds.
        """
        match handler:
            case CommandHook():
                return await self._run_command(handler, encode(told))
            case HttpHook():
                return await self._post(handler, encode(told))
            case ToolHook(server, tool, template):
                if self.call_tool is None:
                    return Failed("there is nobody to call a hook's tool")
                result = await self.call_tool(server, tool, fill_input(template, told))
                if result.is_error:
                    return Failed(f"a hook's tool reports failure: {server}.{tool}")
                return Exited(0, result.text.encode())

    # ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_command(self, hook: CommandHook, payload: bytes) -> HookEnd:
        argv = _argv(hook)
        environ = {**self.environ, "CLAUDE_PROJECT_DIR": self.project}
        program = resolve_command(argv[0], environ=environ, cwd=self.project)
        child = spawn(argv, program=program, environ=environ, cwd=self.project)
        stdout, stderr = bytearray(), bytearray()
        try:
            _feed(child, payload)
            child.hear(child.stdout, partial(_keep, stdout))
            child.hear(child.stderr, partial(_keep, stderr))
            status = await child.wait()
            # What it left behind may hold the pipes open for ever.
            child.signal(signal.SIGKILL)
            await child.hear_out()
            if len(stdout) > MAX_OUTPUT_BYTES:
                return Failed("a hook wrote too much")
            return Exited(status, bytes(stdout), bytes(stderr))
        finally:
            child.signal(signal.SIGKILL)
            with trio.move_on_after(REAP_TIMEOUT, shield=True):
                await child.wait()
            child.close()

    # ── posts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _post(self, hook: HttpHook, payload: bytes) -> HookEnd:
        headers = [("content-type", "application/json"), *expand_headers(hook, self.environ)]
        client = HttpClient(hook.url, environ=self.environ)
        try:
            answer = await client.request("POST", [(n.encode(), v.encode()) for n, v in headers], payload)
            try:
                return Responded(answer.status, await answer.read(MAX_OUTPUT_BYTES))
            finally:
                await answer.aclose()
        finally:
            await client.aclose()


def _argv(hook: CommandHook) -> list[str]:
    if hook.args is not None:
        return [hook.command, *hook.args]
    # The command is the configuration's, written for a shell (S311); nothing of a server's is ever put into it.
    return ["cmd", "/d", "/s", "/c", hook.command] if sys.platform == "win32" else ["/bin/sh", "-c", hook.command]


def _feed(child: Child, payload: bytes) -> None:
    """Write what the hook is told, as it takes it; one that does not read it is fine."""
    waiting = memoryview(payload)

    async def give() -> None:
        nonlocal waiting
        try:
            waiting = waiting[os.write(child.stdin, waiting) :]
        except BlockingIOError:
            return
        except OSError:
            waiting = waiting[:0]
        if not waiting:
            child.close_input()

    child.selector.on_writable(child.stdin, give)


def _keep(output: bytearray, chunk: bytes) -> None:
    """Beyond the bound it is still read, and thrown away."""
    if len(output) <= MAX_OUTPUT_BYTES:
        output += chunk
