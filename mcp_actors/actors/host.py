"""Owns what the embedding program offers to servers: handlers for what they ask, and the capabilities that follow.

What this is not: the running of a handler (`answering`), the questions themselves (`elicitation`), nor their wire forms
(`protocol`).

Rule 1: a capability is advertised exactly where a handler exists (S110, S133).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeAlias

import trio
from attrs import evolve, field

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.features import CAPABILITY_OF, TASKS_EXTENSION
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.actors.registry import Snapshot, Watcher
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.results import ToolResult

__all__ = ["Handler", "Host", "HostTask", "RuntimeView", "ServerRequest", "WiredHost", "wire_host"]


@frozen
class ServerRequest:
    """One thing that a server asks of us. `params` is a JSON object as sent; untrusted."""

    server: str
    method: str
    params: JsonObject = field(repr=False)


# Returns the result object. Raise `RpcError` to refuse with a code of your own.
Handler: TypeAlias = Callable[[ServerRequest], Awaitable["JsonObject"]]


class RuntimeView(Protocol):
    """As much of the runtime as a host may use; see `Runtime` for each."""

    @property
    def snapshot(self) -> Snapshot: ...

    def watch(self) -> AbstractContextManager[Watcher]: ...

    async def call_tool(self, name: str, arguments: JsonObject | None = None) -> ToolResult: ...

    def roots_changed(self) -> None: ...


class HostTask(Protocol):
    """A task that a host needs beside the servers, such as the one that holds their questions."""

    async def __call__(
        self, runtime: RuntimeView, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run until cancelled: begun before the first server, cancelled after the last one has ended."""
        ...


@frozen
class Host:
    """What the program that embeds the fleet offers to its servers."""

    # Method -> handler: "roots/list", "sampling/createMessage", "elicitation/create".
    handlers: Mapping[str, Handler] = field(factory=dict)
    # Capability -> its settings, where a handler needs others than none, such as ``{"elicitation": {"url": {}}}``.
    settings: Mapping[str, JsonObject] = field(factory=dict)
    # Whether a call may become a task where the server offers that; one that the server insists on always may.
    wants_tasks: bool = False

    def __attrs_post_init__(self) -> None:
        unknown = sorted(set(self.handlers) - set(CAPABILITY_OF))
        if unknown:
            raise LocalProtocolError(reason=f"no server asks for {unknown[0]}; there are {', '.join(CAPABILITY_OF)}")

    @property
    def capabilities(self) -> JsonObject:
        """What is declared to servers (rule 1)."""
        declared: dict[str, JsonObject] = {
            capability: dict(self.settings.get(capability, {}))
            for method, capability in CAPABILITY_OF.items()
            if method in self.handlers
        }
        if self.wants_tasks:
            declared["extensions"] = {TASKS_EXTENSION.partition(".")[2]: {}}
        return declared


# Makes a legacy call, and where the server wants pages to be visited first (-32042), again afterwards (S207).
WithPages: TypeAlias = Callable[[str, Callable[[], Awaitable[bytes]]], Awaitable[bytes]]


@frozen
class WiredHost(Host):
    """A host as the actors have it: with what `fleet.questions` and the runtime wire to it, and no user sets."""

    # A task that runs beside the servers.
    task: HostTask | None = None
    # Entered with the runtime while it runs.
    while_running: Callable[[RuntimeView], AbstractContextManager[object]] = nullcontext
    # Told when a server says that a page is done: its name and the elicitation's id (S290). Must not block or raise.
    page_done: Callable[[str, str], None] | None = None
    # Sees pages through, in the place of the plain way of `rounds`, which asks the handler and takes its word.
    with_pages: WithPages | None = None
    # Gives what is declared to a server beyond `capabilities`, by its name: extension -> settings (S281).
    extensions: Callable[[str], Mapping[str, JsonObject]] = field(default=lambda _: {})

    def capabilities_for(self, server: str) -> JsonObject:
        """What is declared to this server."""
        declared, more = self.capabilities, self.extensions(server)
        if not more:
            return declared
        known = declared.get("extensions")
        return {**declared, "extensions": {**(known if isinstance(known, Mapping) else {}), **more}}


def wire_host(host: Host | None, extensions: Callable[[str], Mapping[str, JsonObject]]) -> WiredHost:
    """Make what the actors have of what a program gave.

    Args:
        host: None offers nothing.
        extensions: as `WiredHost.extensions`.
    """
    if isinstance(host, WiredHost):
        return evolve(host, extensions=extensions)
    host = host or Host()
    return WiredHost(host.handlers, host.settings, host.wants_tasks, extensions=extensions)
