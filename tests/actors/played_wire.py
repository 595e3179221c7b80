"""Owns `PlayedWire`: a wire to a scripted server on the virtual clock, some of whose methods functions play.

As a message stream, or as exchanges with refusals of their own, as HTTP has them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import define, field

from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.protocol.types import Frame, Refusal
from mcp_actors.transports.base import PassingSink, Sink
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from mcp_actors.testing.scripted import ScriptedServer

# Gives a result, an error (with a code), a refusal, or None for what the scripted server makes of it.
Play: TypeAlias = Callable[[dict], Awaitable[dict | Refusal | None]]


class PlayedWire(MemoryTransport):
    """One wire. `kind` is "http" or "stdio"; `sent` holds the methods that went out, `cut` exchanges given up."""

    def __init__(self, kind: str, server: ScriptedServer, plays: Mapping[str, Play]) -> None:
        super().__init__(server.serve)
        self.kind, self.is_exchange, self.plays = kind, kind == "http", plays
        self.sent: list[str | None] = []
        self.cut: list[str | None] = []

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self.nursery:
            self.sink = _Answers(sink)
            try:
                await super().run(self.sink, task_status=task_status)
            finally:
                self.nursery.cancel_scope.cancel()

    async def send(self, frame: Frame) -> None:
        self.sent.append(frame.method)
        if self.is_exchange:
            try:
                await self.perform(frame)
            except trio.Cancelled:
                self.cut.append(frame.method)
                raise
        elif frame.method in self.plays:
            self.nursery.start_soon(self.perform, frame)
        else:
            await super().send(frame)

    async def perform(self, frame: Frame) -> None:
        played = await self.plays[frame.method](decode(frame.data)) if frame.method in self.plays else None
        if isinstance(played, Refusal):
            self.sink.refuse(frame, played)
        elif played is not None:
            key = "error" if "code" in played else "result"
            self.sink.deliver(encode({"jsonrpc": "2.0", "id": frame.request_id, key: played}))
        else:
            await super().send(frame)
            if self.is_exchange and frame.request_id is not None:
                await self.sink.wait_answered(frame.request_id)


@define(eq=False)
class _Answers(PassingSink):
    """Knows which ids were answered."""

    ids: set[object] = field(factory=set, init=False)
    news: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot, init=False)

    def deliver(self, raw: bytes) -> None:
        message = decode(raw)
        if isinstance(message, dict) and "method" not in message:
            self.ids.add(message.get("id"))
            self.news.unpark_all()
        super().deliver(raw)

    async def wait_answered(self, request_id: object) -> None:
        while request_id not in self.ids:
            await self.news.park()
