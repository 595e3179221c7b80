"""Owns how a scripted server is heard over HTTP: on one exchange, or on the GET stream of a session; and the options.

What this is not: the decision what to answer (`http_server`).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import field

from mcp_actors.testing.http_doorway import DoorwayLimits, HttpAnswer, HttpRequest, Responder
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_actors.testing.live_client import LiveClient

__all__ = ["ExchangeVoice", "HttpOptions", "SessionVoice", "keep_open"]

# Messages that wait for a GET stream; the newest are dropped when it is full.
MAX_UNHEARD: Final = 1000


@frozen
class HttpOptions:
    """How the face behaves where the protocol leaves a choice."""

    # "json" or "sse" always, or "auto": SSE when something is said before the answer.
    answers: str = "auto"
    # Legacy: whether there are wire sessions, and GET streams on them.
    has_sessions: bool = True
    has_get_stream: bool = True
    # Seconds between keep-alive comments on streams that stay open.
    keep_alive: float = 15.0
    # Sees every request first; what it answers is sent and nothing else happens.
    intercept: Callable[[HttpRequest], HttpAnswer | None] | None = None
    limits: DoorwayLimits = field(factory=DoorwayLimits)


@define(eq=False)
class ExchangeVoice:
    """One POST: a reply ends it; what comes before makes it an event stream, unless the face answers in JSON only."""

    responder: Responder
    options: HttpOptions
    # Legacy: who hears what cannot be said here.
    client: LiveClient | None = None
    is_gone: bool = False

    async def note(self, data: bytes) -> None:
        if self.options.answers == "json" or self.is_gone:
            if self.client is not None:
                await self.client.voice.note(data)
        else:
            with self._minding_the_gone():
                await self.responder.event(data)

    async def reply(self, data: bytes, status: int) -> None:
        if self.is_gone:
            return
        with self._minding_the_gone():
            if self.responder.is_started or (self.options.answers == "sse" and status == 200):
                await self.responder.event(data)
                await self.responder.finish()
            else:
                await self.responder.answer(HttpAnswer(status, data))

    @contextmanager
    def _minding_the_gone(self) -> Iterator[None]:
        """A handler does not learn that its client is gone (legacy: it runs on)."""
        try:
            yield
        except trio.BrokenResourceError:
            self.is_gone = True


@define(eq=False)
class SessionVoice:
    """What belongs to no POST: waits for the GET stream, at most MAX_UNHEARD messages, oldest first."""

    _channels: Any = field(factory=lambda: trio.open_memory_channel[bytes](MAX_UNHEARD))

    async def note(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._channels[0].send_nowait(data)

    async def reply(self, data: bytes, status: int) -> None:  # noqa: ARG002 (a stream has no status)
        await self.note(data)

    async def pour(self, responder: Responder, keep_alive: float) -> None:
        """Write everything into an event stream until the session ends."""
        while True:
            with trio.move_on_after(keep_alive) as scope:
                try:
                    data = await self._channels[1].receive()
                except trio.EndOfChannel:
                    await responder.finish()
                    return
            if scope.cancelled_caught:
                await responder.comment()
            else:
                await responder.event(data)

    def close(self) -> None:
        self._channels[0].close()


async def keep_open(responder: Responder, ended: trio.Event, seconds: float) -> None:
    """Keep an event stream open until `ended`, with a comment every so many seconds."""
    while not ended.is_set():
        with trio.move_on_after(seconds):
            await ended.wait()
        if not ended.is_set():
            await responder.comment()
    if not responder.is_finished:
        await responder.finish()
