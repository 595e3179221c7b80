"""Owns what the embedding program offers to servers: handlers for what they ask, and the capabilities that follow.

What this is not: the questions themselves (`elicitation`), nor their wire forms (`protocol`).

Rules.

1. A capability is advertised exactly where a handler exists (S110, S133).
2. A handler runs in a task of the connection: the reader never waits for it (A16, fault 76).
3. Every request of a server gets exactly one answer; a handler that raises answers with an error (fault 75).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import trio
from attrs import evolve, field

from mcp_actors.errors import LocalProtocolError, RpcError
from mcp_actors.protocol.features import CAPABILITY_OF, TASKS_EXTENSION
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR, encode
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.actors.registry import Snapshot, Watcher
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import RequestId
    from mcp_actors.tools.results import ToolResult

__all__ = ["Answering", "Handler", "Host", "HostTask", "RuntimeView", "ServerRequest", "WiredHost", "wire_host"]

logger = logging.getLogger("mcp_actors.connection")


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
    """A host as the actors have it: with what `fleet.hosts` and the runtime wire to it, and no user sets."""

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


class Answering:
    """The requests of one server that are being answered."""

    def __init__(self, server: str, host: WiredHost) -> None:
        self._server = server
        self._host = host
        # Request id -> scope of the task that answers it.
        self._scopes: dict[RequestId, trio.CancelScope] = {}
        # Found at the handshake.
        self._capabilities: JsonObject | None = None

    @property
    def capabilities(self) -> JsonObject:
        """What was declared to the server, from the handshake of this life on."""
        if self._capabilities is None:
            self._capabilities = self._host.capabilities_for(self._server)
        return self._capabilities

    @property
    def methods(self) -> frozenset[str]:
        """What there are handlers for."""
        return frozenset(self._host.handlers)

    @property
    def with_pages(self) -> Callable[[Callable[[], Awaitable[bytes]]], Awaitable[bytes]] | None:
        """The host's own way to have pages visited; None where it has none."""
        with_pages = self._host.with_pages
        return None if with_pages is None else partial(with_pages, self._server)

    async def answer(self, request_id: RequestId, method: str, params: JsonObject) -> JsonObject | RpcError | None:
        """Answer a request of a legacy server: with a result, a refusal, or None where it was withdrawn.

        Source:
            F08, F11, fault 76.
        """
        from mcp_actors.protocol.server_asks import refuse_question  # few servers ever ask

        refused = refuse_question(method, params, self.capabilities)
        if refused is not None:
            return RpcError(server=self._server, code=refused.code, message=refused.reason)
        with trio.CancelScope() as scope:
            self._scopes[request_id] = scope
            try:
                return await self.result(method, params)
            except RpcError as error:
                return error
            finally:
                self._scopes.pop(request_id, None)
        return None

    async def result(self, method: str, params: JsonObject) -> JsonObject:
        """Run the handler of a method for a question that may be put, and judge its answer.

        Raises:
            RpcError: it refused, or failed, also by an answer that is none: of what is logged, not told to the server.

        Source:
            E13, F09, F11, fault 76.
        """
        from mcp_actors.protocol.server_asks import refuse_answer

        try:
            answer = await self._host.handlers[method](ServerRequest(self._server, method, params))
            reason = refuse_answer(method, params, answer)
            if reason is not None:
                raise LocalProtocolError(server=self._server, reason=reason)
            encode(answer)  # what is no JSON fails here, where it costs nobody else
        except RpcError:
            raise
        except Exception as error:
            logger.exception("[MCP:%s] handler of %s failed", self._server, method)
            raise RpcError(server=self._server, code=INTERNAL_ERROR, message="the client could not answer") from error
        return answer

    def withdraw(self, request_id: RequestId) -> None:
        """The server no longer wants the answer."""
        scope = self._scopes.get(request_id)
        if scope is not None:
            scope.cancel()
