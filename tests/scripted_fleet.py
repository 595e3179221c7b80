"""What tests of the live rooms share: specs of scripted servers in this process, and the steps of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import evolve

from mcp_actors.config.specs import InProcessTarget, RestartPolicy, RestartType, ServerSpec
from mcp_actors.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def echo_server(**options: object) -> ScriptedServer:
    """A server with the tools `echo` (answers its text), `slow` (takes `seconds`) and `fail` (is_error)."""
    server = ScriptedServer(**options)  # type: ignore[arg-type]

    async def echo(call: object) -> str:
        return str(call.arguments.get("text", ""))  # type: ignore[attr-defined]

    async def slow(call: object) -> str:
        await trio.sleep(call.arguments.get("seconds", 1))  # type: ignore[attr-defined]
        return "done"

    async def fail(call: object) -> dict[str, object]:
        return {"content": [{"type": "text", "text": "no luck"}], "isError": True}

    for name, handler in (("echo", echo), ("slow", slow), ("fail", fail)):
        server.add_tool(name, handler)
    return server


def spec(name: str, serve: Callable[..., Awaitable[None]] | ScriptedServer, **changes: object) -> ServerSpec:
    """A spec of a server in this process."""
    target = InProcessTarget(serve.serve if isinstance(serve, ScriptedServer) else serve)
    return evolve(ServerSpec(name, target), **changes)  # type: ignore[arg-type]


PERMANENT = {"restart_type": RestartType.PERMANENT, "restart_policy": RestartPolicy()}


class StepSweep(trio.abc.Instrument):
    """Cancels `scope` when a task whose name holds `victim` is about to take its n-th step; counts all its steps."""

    def __init__(self, victim: str, step: int, scope: trio.CancelScope) -> None:
        self.victim, self.step, self.scope = victim, step, scope
        self.taken = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.victim in task.name:
            self.taken += 1
            if self.taken == self.step:
                self.scope.cancel()
