"""Owns `ScriptedServer`: an MCP server of both eras that a test declares, scripts and questions.

What this is not: a server for production, nor a broken wire (`faulty`). It is strict (`rulebook`): it judges clients.

::

    server = ScriptedServer()

    @server.tool
    async def greet(call):
        await call.progress(1, 2)
        return f"hello {call['name']}"

    server.silence("ping")
    spec = ServerSpec("greeter", InProcessTarget(server.serve))
    ...
    assert server.violations == []
"""

from __future__ import annotations

import inspect
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio
from attrs import field

from mcp_actors.errors import RpcError, TransportBroken
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.testing.live_client import Call, LiveClient
from mcp_actors.testing.rulebook import Conversation
from mcp_actors.testing.shapes import WORK, shape
from mcp_actors.testing.words import (
    LEGACY_REVISIONS,
    MODERN_REVISIONS,
    Die,
    Say,
    SayRaw,
    error_answer,
)
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from mcp_actors.testing.live_client import Voice
    from mcp_actors.testing.words import Action, Message, MessageId

__all__ = ["LEGACY_REVISIONS", "MODERN_REVISIONS", "Call", "Handler", "Link", "ScriptedServer"]

# Takes a `Call`, sync or async; returns text, a content list, or a whole result object; may raise.
Handler: TypeAlias = "Callable[[Call], Any]"

# Requests that are kept for assertions; the older half goes when there are more.
MAX_RECEIVED = 20_000
ANY_OBJECT: Message = {"type": "object"}


class Link(Protocol):
    """A wire as a server sees it. `receive` raises `trio.EndOfChannel` at the end."""

    async def receive(self) -> bytes:
        """Next message."""
        ...

    async def send(self, data: bytes) -> None:
        """Write one message, whole or not at all."""


@frozen
class _Script:
    """What a test ordered for a method, and for how many more messages."""

    make: Callable[[MessageId | None], tuple[Action, ...]]
    times: float


@define(eq=False)
class ScriptedServer:
    """An MCP server that a test declares, scripts and questions. One serves any number of clients at once.

    `revisions` says which eras it speaks, newest first: see `MODERN_REVISIONS` and `LEGACY_REVISIONS`.
    `fixed_capabilities` replaces the capabilities that follow from what is declared.
    """

    name: str = "scripted"
    version: str = field(default="1.0.0", kw_only=True)
    revisions: Sequence[str] = field(default=MODERN_REVISIONS + LEGACY_REVISIONS, kw_only=True)
    instructions: str | None = field(default=None, kw_only=True)
    fixed_capabilities: Message | None = field(default=None, kw_only=True)
    # Items on a page of a list; None: all of them.
    page_size: int | None = field(default=None, kw_only=True)
    ttl_ms: int = field(default=0, kw_only=True)
    # What no subscription of a modern client is honoured for: keys of its filter, or URIs.
    left_out: Collection[str] = field(default=(), kw_only=True)
    # Every message that arrived, decoded, oldest first; at most MAX_RECEIVED.
    received: list[Message] = field(factory=list, init=False)
    # What clients did against the rules, oldest first.
    violations: list[str] = field(factory=list, init=False)
    # Exit status that a script ordered, for servers that are processes.
    died_with: int | None = field(default=None, init=False)
    # Clients that are there, oldest first.
    clients: list[LiveClient] = field(factory=list, init=False, repr=False)
    _listings: dict[str, dict[str, Message]] = field(init=False, repr=False)
    _handlers: dict[tuple[str, str], Handler] = field(factory=dict, init=False, repr=False)
    _scripts: dict[str, list[_Script]] = field(factory=dict, init=False, repr=False)
    _arrivals: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # List method -> name (or uri) -> item, in the order of declaration.
        self._listings = {
            key: {} for key in ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
        }

    @property
    def info(self) -> Message:
        """What it says of itself."""
        return {"name": self.name, "version": self.version}

    # ── what it offers ───────────────────────────────────────────────────────────────────────────────────────────────

    def add_tool(
        self,
        name: str,
        handler: Handler,
        *,
        description: str | None = None,
        input_schema: Message | None = None,
        annotations: Message | None = None,
        **members: Any,
    ) -> None:
        """Declare a tool, or replace it. `members` go into its definition as they are (``title``, ``outputSchema``).

        A handler that raises `RpcError` answers with that error; anything else that it raises is an ``isError`` result.
        """
        optional = {"description": description, "annotations": annotations}
        definition = {"name": name, "inputSchema": input_schema or ANY_OBJECT, **members}
        definition |= {key: value for key, value in optional.items() if value is not None}
        self._listings["tools/list"][name] = definition
        self._handlers["tools/call", name] = handler

    def tool(self, handler: Handler) -> Handler:
        """Declare a tool by decoration: its name and description are the function's."""
        function: Any = handler
        self.add_tool(function.__name__, handler, description=inspect.getdoc(handler))
        return handler

    def remove_tool(self, name: str) -> None:
        """Take a tool back. Tell clients with ``await server.notify("notifications/tools/list_changed")``."""
        del self._listings["tools/list"][name]
        del self._handlers["tools/call", name]

    def add_resource(
        self, uri: str, content: str | bytes | Handler, *, name: str | None = None, **members: Any
    ) -> None:
        """Declare a resource: text, bytes, or a handler that returns either or a whole result."""
        self._listings["resources/list"][uri] = {"uri": uri, "name": name or uri, **members}
        self._handlers["resources/read", uri] = content if callable(content) else lambda _: content

    def add_template(self, uri_template: str, *, name: str | None = None, **members: Any) -> None:
        """Declare a resource template; it is listed only."""
        item = {"uriTemplate": uri_template, "name": name or uri_template, **members}
        self._listings["resources/templates/list"][uri_template] = item

    def add_prompt(self, name: str, content: str | Handler, **members: Any) -> None:
        """Declare a prompt: text, or a handler that returns text or a whole result."""
        self._listings["prompts/list"][name] = {"name": name, **members}
        self._handlers["prompts/get", name] = content if callable(content) else lambda _: content

    def add_completion(self, handler: Handler) -> None:
        """Answer completion/complete: the handler returns the list of values, or a whole result."""
        self._handlers["completion/complete", ""] = handler

    def capabilities(self) -> Message:
        """Capabilities as declared now."""
        if self.fixed_capabilities is not None:
            return self.fixed_capabilities
        listings = self._listings
        declared: Message = {"logging": {}}
        if listings["tools/list"]:
            declared["tools"] = {"listChanged": True}
        if listings["resources/list"] or listings["resources/templates/list"]:
            declared["resources"] = {"listChanged": True, "subscribe": True}
        if listings["prompts/list"]:
            declared["prompts"] = {"listChanged": True}
        if ("completion/complete", "") in self._handlers:
            declared["completions"] = {}
        return declared

    def items(self, method: str) -> Sequence[Message]:
        """Items of a list method, in the order of their declaration."""
        return list(self._listings[method].values())

    # ── what a test orders ───────────────────────────────────────────────────────────────────────────────────────────

    def refuse(
        self, method: str, code: int, message: str = "refused", data: object = None, *, times: float = math.inf
    ) -> None:
        """Answer this method with an error, for the next `times` messages."""
        self._order(method, times, lambda request_id: (Say(error_answer(request_id, code, message, data), 200),))

    def silence(self, method: str, *, times: float = math.inf) -> None:
        """Never answer this method, for the next `times` messages."""
        self._order(method, times, lambda _: ())

    def die_on(self, method: str, *, status: int = 1, times: float = math.inf) -> None:
        """End the wire when this method arrives, without an answer; a process exits with `status`."""
        self._order(method, times, lambda _: (Die(status),))

    def answer_raw(self, method: str, data: bytes, *, times: float = math.inf) -> None:
        """Answer this method with these bytes, right or wrong; ``$ID`` in them becomes the id."""
        self._order(method, times, lambda request_id: (SayRaw(data.replace(b"$ID", encode(request_id))),))

    def answer_with(self, method: str, result: Message, *, times: float = math.inf) -> None:
        """Answer this method with exactly this result, undressed."""
        self._order(method, times, lambda request_id: (Say({"jsonrpc": "2.0", "id": request_id, "result": result}),))

    def obey(self, method: str) -> None:
        """Forget all orders for this method."""
        self._scripts.pop(method, None)

    def has_order(self, method: str) -> bool:
        """Whether the next message of this method is answered by order."""
        return bool(self._scripts.get(method))

    def _order(self, method: str, times: float, make: Callable[[MessageId | None], tuple[Action, ...]]) -> None:
        self._scripts.setdefault(method, []).append(_Script(make, times))

    def scripted(self, method: str, request_id: MessageId | None) -> tuple[Action, ...] | None:
        """What was ordered for this message; orders of one method are used up in their order."""
        scripts = self._scripts.get(method)
        if not scripts:
            return None
        script = scripts[0]
        scripts[0] = _Script(script.make, script.times - 1)
        if scripts[0].times <= 0:
            del scripts[0]
        return script.make(request_id)

    # ── what it saw ──────────────────────────────────────────────────────────────────────────────────────────────────

    def record(self, message: Message) -> None:
        """Keep a message and wake those who wait for it."""
        if len(self.received) >= MAX_RECEIVED:
            del self.received[: MAX_RECEIVED // 2]
        self.received.append(message)
        self._arrivals.unpark_all()

    def seen(self, method: str) -> list[Message]:
        """Messages of this method that arrived, oldest first."""
        return [message for message in self.received if message.get("method") == method]

    async def wait_seen(self, method: str, count: int = 1) -> list[Message]:
        """Wait until `count` messages of this method have arrived; returns them all.

        Cancellation:
            Safe.
        """
        while len(self.seen(method)) < count:
            await self._arrivals.park()
        return self.seen(method)

    # ── what it says by itself ───────────────────────────────────────────────────────────────────────────────────────

    async def notify(self, method: str, params: Message | None = None) -> int:
        """Send a notification to every client that may be sent it. Returns how many were."""
        return sum([await client.notify(method, params) for client in list(self.clients)])

    async def ask(self, method: str, params: Message | None = None) -> Message:
        """Ask the newest client that has initialized (legacy) and wait for its result.

        Raises:
            RpcError: it answered with an error.
            TransportBroken: there is none, or it went away.
        """
        for client in reversed(self.clients):
            if client.conversation.revision is not None:
                return await client.ask(method, params)
        raise TransportBroken(reason="no client has initialized")

    async def send_raw(self, data: bytes) -> None:
        """Write these bytes to every client, right or wrong."""
        for client in list(self.clients):
            await client.voice.note(data)

    def hang_up(self) -> None:
        """End the wire of every client; over HTTP the wire sessions are forgotten, so that clients find a 404."""
        for client in list(self.clients):
            client.hang_up()

    async def end_listens(self) -> None:
        """End every subscription in order (modern)."""
        for client in list(self.clients):
            await client.end_listens()

    # ── serving ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def attach(self, voice: Voice, conversation: Conversation | None = None) -> Iterator[LiveClient]:
        """Have a client for the time of the block; for those who own another kind of wire."""
        client = LiveClient(conversation or Conversation(self), voice, self.work)
        self.clients.append(client)
        try:
            yield client
        finally:
            self.clients.remove(client)
            client.lose()

    async def serve(self, link: Link) -> None:
        """Serve one client over a stream-like wire until it ends, or until a script says die.

        Cancellation:
            Safe. Running handlers are cancelled.
        """
        voice = _LinkVoice(link)
        with self.attach(voice) as client:
            async with trio.open_nursery() as nursery:
                voice.on_broken = client.hang_up = nursery.cancel_scope.cancel
                while True:
                    try:
                        raw = await link.receive()
                    except (trio.EndOfChannel, trio.BrokenResourceError, trio.ClosedResourceError):
                        break
                    died = await client.perform(client.conversation.receive(raw), voice, nursery)
                    if died is not None:
                        self.died_with = died.status
                        break
                nursery.cancel_scope.cancel()

    async def work(self, call: Call) -> Message:
        """Answer a call, read, get or completion with a result object.

        Raises:
            RpcError: the error to answer with.
        """
        key, text = WORK[call.method]
        wanted = call.params.get(key, "") if key else ""
        handler = self._handlers.get((call.method, wanted)) if isinstance(wanted, str) else None
        if handler is None:
            code = -32002 if call.method == "resources/read" and not call.is_modern else -32602
            raise RpcError(code=code, message=f"unknown {text}: {wanted}", data={key: wanted} if key else None)
        if not isinstance(call.params.get("arguments", {}), dict):
            raise RpcError(code=-32602, message="arguments must be an object")
        try:
            value = handler(call)
            if inspect.isawaitable(value):
                value = await value
        except RpcError:
            raise
        except Exception as exc:
            if call.method != "tools/call":
                raise
            return {**shape("tools/call", f"{type(exc).__name__}: {exc}", call), "isError": True}
        return value if isinstance(value, dict) else shape(call.method, value, call)


@define(eq=False)
class _LinkVoice:
    """A wire where notifications and replies go the same way."""

    link: Link
    on_broken: Callable[[], None] = lambda: None

    async def note(self, data: bytes) -> None:
        try:
            await self.link.send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.on_broken()

    async def reply(self, data: bytes, status: int) -> None:  # noqa: ARG002 (no HTTP here)
        await self.note(data)
