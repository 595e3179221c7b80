"""A transport that runs in a test: its sink, its peer, and how it ended."""

from __future__ import annotations

import trio

from mcp_actors.errors import AuthRequired, ConnectFailed, TransportBroken, TransportClosed
from mcp_actors.testing.contracts import RecordingSink


class Rig:
    """A transport, the sink that it tells, and the peer that it talks to. `serve` runs it."""

    def __init__(self, transport, peer=None):
        self.transport, self.peer, self.sink = transport, peer, RecordingSink()
        # How `run` ended, unless it was cancelled.
        self.failures = []
        self.ended = trio.Event()

    async def serve(self, task_status=trio.TASK_STATUS_IGNORED):
        """Run the transport; how it ends is kept."""
        try:
            await self.transport.run(self.sink, task_status=task_status)
        except (ConnectFailed, TransportBroken, AuthRequired) as exc:
            self.failures.append(exc)
            self.ended.set()

    async def ask(self, frame):
        """Send a request that somebody waits for."""
        self.sink.expect(frame.request_id)
        await self.transport.send(frame)

    async def ask_until_closed(self, frame, ends):
        """Send a request; that the transport closed under it is put into `ends`."""
        try:
            await self.ask(frame)
        except TransportClosed as exc:
            ends.append(exc)

    async def answered(self, frame):
        """Send a request and wait for its outcome."""
        await self.ask(frame)
        await self.sink.until(lambda sink: not sink.is_waiting(frame.request_id))
