"""Owns what happens between a scripted server and one living client: running handlers, asking, notifying.

What this is not: the rules (`rulebook`), nor the wire: whoever owns that gives a `Voice` and performs nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import trio
from attrs import field

from mcp_actors.errors import LocalProtocolError, RpcError, TransportBroken
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.testing.words import (
    LISTENABLE,
    LOG_LEVELS,
    META,
    Cancel,
    Die,
    Listen,
    Resolve,
    Run,
    Say,
    SayRaw,
    error_answer,
)
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_actors.testing.rulebook import Conversation
    from mcp_actors.testing.words import Action, Message, MessageId

__all__ = ["Call", "LiveClient", "Voice"]


class Voice(Protocol):
    """How a server is heard: on a stream both are the same, on HTTP a reply ends the exchange."""

    async def note(self, data: bytes) -> None:
        """Write a notification or a request of ours."""

    async def reply(self, data: bytes, status: int) -> None:
        """Write an answer; `status` is for HTTP."""


@define(eq=False)
class Call:
    """One request as a handler sees it. ``call["text"]`` is an argument."""

    method: str
    params: Message
    request_id: MessageId
    is_modern: bool
    client: LiveClient = field(repr=False)
    _voice: Voice = field(repr=False)

    @property
    def arguments(self) -> Message:
        """Arguments of a tool or a prompt, argument name -> JSON; empty when there are none."""
        arguments = self.params.get("arguments")
        return arguments if isinstance(arguments, dict) else {}

    @property
    def meta(self) -> Message:
        """The request's `_meta`; empty when there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification that belongs to this request."""
        await self._voice.note(encode(_notification(method, params)))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, when the client asked for it with a token."""
        token = self.meta.get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": progress, "total": total, "message": message}
            params = {key: value for key, value in params.items() if value is not None}
            await self.notify("notifications/progress", params)

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Send a log message, when this client wants that level (modern: by `_meta`, legacy: by logging/setLevel)."""
        wanted = self.meta.get(META + "logLevel") if self.is_modern else self.client.conversation.log_level
        if wanted in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted):
            params: Message = {"level": level, "data": data}
            await self.notify("notifications/message", params if logger is None else {**params, "logger": logger})

    async def ask(self, method: str, params: Message | None = None) -> Message:
        """Ask the client in the middle of this request (legacy) and wait for its result.

        Raises:
            RpcError: the client answered with an error.
            LocalProtocolError: modern servers never ask; they return an ``input_required`` result.
        """
        if self.is_modern:
            raise LocalProtocolError(reason="a modern server never sends requests")
        return await self.client.ask(method, params, voice=self._voice)


@define(eq=False)
class LiveClient:
    """One client while it is there. `work` answers a call with a result object or raises `RpcError`."""

    conversation: Conversation
    # For what belongs to no request: the pipe, or the GET stream of a wire session.
    voice: Voice
    work: Callable[[Call], Awaitable[Message]]
    # Ends this client's wire from our side.
    hang_up: Callable[[], None] = lambda: None
    # Requests that run.
    _running: dict[MessageId, trio.CancelScope] = field(factory=dict)
    # Our requests that wait for an answer.
    _asked: dict[MessageId, _Slot] = field(factory=dict)
    # Open subscriptions (modern): filter, voice, and what ends them.
    _listens: dict[MessageId, tuple[Message, Voice, trio.Event]] = field(factory=dict)
    _next_id: int = 0

    async def perform(self, actions: Iterable[Action], voice: Voice, nursery: trio.Nursery) -> Die | None:
        """Do what the rulebook said; requests run in `nursery`. Returns `Die` when that is what it said."""
        for action in self.perform_now(actions):
            if isinstance(action, Say):
                await voice.reply(encode(action.message), action.status)
            elif isinstance(action, SayRaw):
                await voice.reply(action.data, 200)
            elif isinstance(action, Run):
                nursery.start_soon(self.run, action, voice, name=f"scripted {action.method}")
            elif isinstance(action, Listen):
                await self.open_listen(action, voice)
            elif isinstance(action, Die):
                return action
        return None

    def perform_now(self, actions: Iterable[Action]) -> list[Action]:
        """Do what needs no waiting; returns the rest."""
        rest: list[Action] = []
        for action in actions:
            if isinstance(action, Cancel):
                self.cancel(action.request_id)
            elif isinstance(action, Resolve):
                self._resolve(action)
            else:
                rest.append(action)
        return rest

    async def run(self, action: Run, voice: Voice) -> bool:
        """Run one request and say its answer. Returns whether there was one: a cancelled request has none.

        Cancellation:
            Safe. Nothing is said.
        """
        with trio.CancelScope() as scope:
            self._running[action.request_id] = scope
            try:
                say = await self._produce(action, voice)
            finally:
                self._running.pop(action.request_id, None)
            await voice.reply(encode(say.message), say.status)
        return not scope.cancelled_caught

    async def _produce(self, action: Run, voice: Voice) -> Say:
        conversation = self.conversation
        call = Call(action.method, action.params, action.request_id, action.is_modern, self, voice)
        try:
            result = await self.work(call)
            answer = conversation.answer(action.request_id, action.method, result, is_modern=action.is_modern)
            encode(answer)
        except RpcError as exc:
            return conversation.refusal(action.request_id, exc, is_modern=action.is_modern)
        except Exception as exc:  # noqa: BLE001 (a handler of a test may raise anything; its server answers)
            return Say(error_answer(action.request_id, -32603, f"{type(exc).__name__}: {exc}"))
        return Say(answer)

    # ── what the client does to running work ─────────────────────────────────────────────────────────────────────────

    def cancel(self, request_id: MessageId) -> None:
        """Stop a request or a subscription; late and unknown ids are ignored."""
        if request_id in self._running:
            self._running[request_id].cancel()
        elif request_id in self._listens:
            self._listens.pop(request_id)[2].set()

    async def open_listen(self, action: Listen, voice: Voice) -> trio.Event:
        """Acknowledge a subscription. The event is set when it ends (spec_client 7.8)."""
        ended = trio.Event()
        self._listens[action.request_id] = (action.honoured, voice, ended)
        params = {"notifications": action.honoured}
        await voice.note(
            encode(_notification("notifications/subscriptions/acknowledged", _tagged(params, action.request_id)))
        )
        return ended

    async def end_listens(self) -> None:
        """End every subscription in order, with a result."""
        for request_id, (_, voice, ended) in list(self._listens.items()):
            self._listens.pop(request_id, None)
            result = {"_meta": {META + "subscriptionId": request_id}}
            answer = self.conversation.answer(request_id, "subscriptions/listen", result, is_modern=True)
            await voice.reply(encode(answer), 200)
            ended.set()

    # ── what the server wants of the client ──────────────────────────────────────────────────────────────────────────

    async def notify(self, method: str, params: Message | None) -> bool:
        """Send a notification to a client that may be sent it. Returns whether it was.

        Legacy: to every client that has initialized. Modern: to every subscription that asked for it.
        """
        if self.conversation.revision is not None:
            await self.voice.note(encode(_notification(method, params)))
            return True
        heard = False
        for request_id, (wanted, voice, _) in list(self._listens.items()):
            for key, value in wanted.items():
                if LISTENABLE[key][1] == method and (value is True or (params or {}).get("uri") in value):
                    await voice.note(encode(_notification(method, _tagged(params or {}, request_id))))
                    heard = True
        return heard

    async def ask(self, method: str, params: Message | None, *, voice: Voice | None = None) -> Message:
        """Send a request and wait for its result (legacy).

        Raises:
            RpcError: the client answered with an error.
            TransportBroken: the client went away.
        """
        self._next_id += 1
        request_id = f"server-{self._next_id}"
        slot = self._asked[request_id] = _Slot()
        request = {"jsonrpc": "2.0", "id": request_id, "method": method}
        try:
            await (voice or self.voice).note(encode(request if params is None else {**request, "params": params}))
            return await slot.wait()
        finally:
            self._asked.pop(request_id, None)

    def _resolve(self, action: Resolve) -> None:
        slot = self._asked.get(action.request_id)
        if slot is None:
            self.conversation.offer.violations.append(f"answered {action.request_id!r}, which was not asked")
        else:
            slot.fill(action.answer)

    def lose(self) -> None:
        """The client is gone: fail what waits for it, stop what runs for it."""
        for slot in self._asked.values():
            slot.fill(None)
        for scope in self._running.values():
            scope.cancel()
        for _, _, ended in self._listens.values():
            ended.set()
        self._listens.clear()


@define(eq=False)
class _Slot:
    """One answer that is waited for; None means that the client is gone."""

    answer: Message | None = None
    _arrived: trio.Event = field(factory=trio.Event)

    def fill(self, answer: Message | None) -> None:
        if not self._arrived.is_set():
            self.answer = answer
            self._arrived.set()

    async def wait(self) -> Message:
        await self._arrived.wait()
        if self.answer is None:
            raise TransportBroken(reason="the client went away")
        error = self.answer.get("error")
        if error is not None:
            raise RpcError(code=error.get("code", 0), message=str(error.get("message")), data=error.get("data"))
        result = self.answer["result"]
        return result if isinstance(result, dict) else {"result": result}


def _notification(method: str, params: Message | None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def _tagged(params: Message, request_id: MessageId) -> Message:
    return {**params, "_meta": {**params.get("_meta", {}), META + "subscriptionId": request_id}}
