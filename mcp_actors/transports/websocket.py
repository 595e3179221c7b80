"""Owns the WebSocket transport: one text frame per message. The only file that imports trio_websocket.

What this is not: part of any MCP revision (spec_client 3.6). It keeps the rules of message streams, as stdio has them.

Rules.

- Subprotocol `mcp`; who we are is told by headers alone, there is no OAuth (S084, S085).
- A binary frame is a fault that ends the wire: a peer that sends one would otherwise never be understood.
- What was accepted by `send` is written by one task, in order; a cancelled caller never leaves half a frame.
- Nothing queues without bound: messages are handed on one by one, `OUTBOX_FRAMES` wait to be written, and a message
  over the bound ends the wire.
- Whether the wire lives is ours to watch, in any era (S127): after a silence of `ping_interval` a ping goes out, and
  when nothing is heard for `ping_timeout` the wire is broken. A large message that is still moving counts as a sign of
  life. Whether the program behind it lives is not seen here: a library may answer pings for one that hangs
  (`actors.pulse` asks that in the legacy era, the clocks of calls in both).
- On leaving, what was accepted is written and the close handshake made, both within a second (S144).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import h11
import trio
import trio_websocket
from wsproto.utilities import ProtocolError as WsProtocolError

from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import (
    ConnectFailed,
    LocalProtocolError,
    McpActorsError,
    TransportBroken,
    TransportClosed,
    TransportError,
)
from mcp_actors.groups import causes, leaves
from mcp_actors.origins import place_of
from mcp_actors.sent_secrets import of_request, starred
from mcp_actors.shown import one_line
from mcp_actors.transports.base import Diagnostics
from mcp_actors.transports.carried_headers import CarriedHeaders
from mcp_actors.transports.close_codes import ABNORMAL, NORMAL, UNSUPPORTED_DATA, describe_close
from mcp_actors.transports.dialing import Dial, dial
from mcp_actors.transports.http_headers import user_headers
from mcp_actors.transports.watched_stream import WatchedStream
from mcp_actors.transports.websocket_handshake import read_head, refused, split_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import Frame, ServerInfo
    from mcp_actors.transports.base import Sink

__all__ = ["WebSocketTransport"]

SUBPROTOCOL: Final = "mcp"
# Frames that wait to be written: enough to overlap work, few enough that a slow reader is felt by the caller.
OUTBOX_FRAMES: Final = 16
READ_BYTES: Final = 64 * 1024
LEAVE_SECONDS: Final = 1.0


class WebSocketTransport:
    """One MCP server behind a WebSocket. See the rules in this module's docstring."""

    kind = "ws"
    is_exchange = False
    is_eager = False
    shutdown_bound = LEAVE_SECONDS + 0.5

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        *,
        environ: Mapping[str, str] | None = None,
        dial: Dial = dial,
    ) -> None:
        """Describe the transport; nothing is opened.

        Args:
            spec: its target is a `RemoteTarget` with a ws or wss URL.
            settings: for the bound of a message and the pace of pings.
            environ: maps variable name -> text, for proxies and TLS; None: no proxy, and what is shipped is trusted.
            dial: opens the stream.

        Raises:
            ConfigError: a configured header cannot be sent.
        """
        target = spec.target
        if not isinstance(target, RemoteTarget):
            raise LocalProtocolError(server=spec.name, reason="WebSocket needs a remote target")
        self._url = target.url
        self._carried = CarriedHeaders(
            spec, environ, lambda target: user_headers(target.headers, url=target.url, server=spec.name)
        )
        self._max_bytes = settings.max_message_bytes
        self._environ = environ
        self._dial = dial
        self._ping_interval, self._ping_timeout = settings.ping_interval, settings.ping_timeout
        # What is to be written; None before the wire is open.
        self._outgoing: trio.MemorySendChannel[bytes] | None = None
        self._sink: Sink | None = None
        # Ends reading; cancelled by whoever finds that the wire is gone.
        self._reader = trio.CancelScope()
        # Why the wire ended; None while it has not.
        self._verdict: TransportError | None = None
        self._notes: list[str] = []

    @property
    def is_full(self) -> bool:
        """Whether `send` waits until some of the frames before have been written."""
        if self._outgoing is None:
            return False
        return self._outgoing.statistics().current_buffer_used >= OUTBOX_FRAMES

    def __repr__(self) -> str:
        state = "open" if self._outgoing is not None and self._verdict is None else "closed"
        return f"<WebSocketTransport {place_of(self._url)} {state}>"

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Connect, shake hands, serve. Runs until cancelled or until the connection ends.

        Raises:
            ConnectFailed: it did not come up, or the handshake was refused.
            ConfigError: of the headers helper.
            AuthRequired: the handshake was refused with 401 or 403; only configured headers can help (S085).
            TransportBroken: it ended, fell silent, or the peer broke the rules.

        Cancellation:
            Writes what was accepted and closes in order, shielded for at most a second.

        Source:
            S084, S085, S127; RFC 6455.
        """
        await self._carried.open()
        wire = WatchedStream(await self._dial(self._url, environ=self._environ))
        try:
            async with trio.open_nursery() as nursery:
                shield = trio.CancelScope()
                try:
                    shelter = await nursery.start(_shelter, shield)
                    shield.shield = True  # not before: a cancelled `start` would wait for it
                    # Cancelled in between, the shelter has gone already.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    websocket = await self._shake_hands(wire, shelter)
                    await self._serve(websocket, wire, shelter, sink, task_status)
                finally:
                    shield.cancel()
        except BaseExceptionGroup as group:
            raise self._told(group) from group
        finally:
            self._end(TransportClosed())
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(wire)
        raise self._error()

    async def send(self, frame: Frame) -> None:
        """Put one frame on the wire; waits while `OUTBOX_FRAMES` others wait before it.

        Raises:
            TransportBroken: the wire is gone.
            TransportClosed: `run` is not running.

        Cancellation:
            Safe. The frame goes out whole or not at all.
        """
        if self._outgoing is None or self._verdict is not None:
            raise self._error()
        try:
            await self._outgoing.send(frame.data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise self._error() from exc

    def session_ready(self, info: ServerInfo) -> None:
        """Nothing depends on it here."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the handshake carried."""
        sent = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in self._carried.pairs]
        return of_request(sent, self._url)

    def diagnostics(self) -> Diagnostics:
        """Describe the wire as it is now. No side effects, no secrets."""
        return Diagnostics(notes=tuple(self._notes))

    # ── birth ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _shake_hands(self, wire: WatchedStream, nursery: trio.Nursery) -> trio_websocket.WebSocketConnection:
        parts = urlsplit(self._url)
        host, extra = split_host(self._carried.pairs, parts.netloc.rpartition("@")[2])
        # trio_websocket waits for ever when the peer hangs up before it answered.
        with trio.CancelScope() as scope:
            wire.begin_handshake(scope.cancel)
            websocket = await trio_websocket.wrap_client_stream(
                nursery,
                wire,  # type: ignore[arg-type]  # any stream does; the annotation names two
                host,
                (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                subprotocols=[SUBPROTOCOL],
                extra_headers=extra,
                message_queue_size=1,
                max_message_size=self._max_bytes,
                receive_buffer_size=READ_BYTES,
            )
            wire.end_handshake()
            if websocket.subprotocol != SUBPROTOCOL:
                self._notes.append(f"the server did not choose the subprotocol {SUBPROTOCOL}")
            return websocket
        # It reads no refusal whose body is as long as the connection, either.
        status, headers = read_head(wire.heard)
        if status is not None and status != 101:
            raise refused(place_of(self._url), status, headers, time.time())
        why = f": {wire.fault}" if wire.fault else ""
        raise ConnectFailed(reason=f"{place_of(self._url)} hung up during the WebSocket handshake{why}")

    def _told(self, group: BaseExceptionGroup[BaseException]) -> BaseException:
        """The one error that a group of them stands for; a group of what was not foreseen, if any."""
        foreseen = (McpActorsError, trio_websocket.HandshakeError, WsProtocolError, h11.ProtocolError)
        known, unforeseen = group.split(foreseen)
        if known is None or unforeseen is not None:
            # A bug of ours, or our leaving: what the library trips over meanwhile is of no interest.
            return unforeseen or group
        if isinstance(self._verdict, TransportBroken):
            return self._error()
        error = next(leaves(known))
        if isinstance(error, trio_websocket.ConnectionRejected):
            return refused(place_of(self._url), error.status_code, dict(error.headers), time.time())
        if isinstance(error, McpActorsError):
            return error
        kind = ConnectFailed if self._outgoing is None else TransportBroken
        return kind(
            reason=f"{place_of(self._url)} does not speak WebSocket: {one_line(starred(_root(error), self.secrets))}"
        )

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _serve(
        self,
        websocket: trio_websocket.WebSocketConnection,
        wire: WatchedStream,
        shelter: trio.Nursery,
        sink: Sink,
        task_status: trio.TaskStatus[None],
    ) -> None:
        self._outgoing, waiting = trio.open_memory_channel[bytes](OUTBOX_FRAMES)
        self._sink = sink
        written = trio.Event()
        shelter.start_soon(self._write, websocket, waiting, written)
        try:
            task_status.started()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, websocket, wire, shelter)
                with self._reader:
                    await self._read(websocket, sink)
                nursery.cancel_scope.cancel()
        finally:
            self._end(TransportClosed())
            with trio.move_on_after(LEAVE_SECONDS, shield=True):
                if websocket.closed is None and isinstance(self._verdict, TransportClosed):
                    await written.wait()
                await websocket.aclose(NORMAL if isinstance(self._verdict, TransportClosed) else UNSUPPORTED_DATA)
            waiting.close()

    async def _read(self, websocket: trio_websocket.WebSocketConnection, sink: Sink) -> None:
        """Deliver messages until the connection ends; leaves a verdict."""
        while True:
            try:
                message = await websocket.get_message()
            except trio_websocket.ConnectionClosed as closed:
                self._end(TransportBroken(reason=self._closing(closed.reason)))
                return
            if isinstance(message, bytes):
                self._end(TransportBroken(reason="the server sent a binary frame; messages are text"))
                return
            data = message.encode()
            if len(data) > self._max_bytes:  # the library counts characters
                self._end(TransportBroken(reason=f"message larger than {self._max_bytes} bytes"))
                return
            sink.deliver(data)

    async def _write(
        self,
        websocket: trio_websocket.WebSocketConnection,
        waiting: trio.MemoryReceiveChannel[bytes],
        written: trio.Event,
    ) -> None:
        with suppress(trio_websocket.ConnectionClosed, trio.ClosedResourceError):
            async for data in waiting:
                await websocket.send_message(data.decode())
        # Whoever still waits to send is told; the reader knows why.
        waiting.close()
        written.set()

    async def _watch(
        self, websocket: trio_websocket.WebSocketConnection, wire: WatchedStream, shelter: trio.Nursery
    ) -> None:
        """Break the wire when the peer is silent in spite of being asked."""
        await wire.wait_silent(self._ping_interval, self._ping_timeout, lambda: shelter.start_soon(_ping, websocket))
        silence = self._ping_interval + self._ping_timeout
        self._end(TransportBroken(reason=f"nothing was heard for {silence:g} s, not even an answer to a ping"))

    # ── end ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _closing(self, reason: trio_websocket.CloseReason | None) -> str:
        code, name, words = (ABNORMAL, "", None) if reason is None else (reason.code, reason.name, reason.reason)
        words = starred(words or "", self.secrets)
        return describe_close(code, name, words, max_bytes=self._max_bytes)

    def _end(self, verdict: TransportError) -> None:
        """Judge the end of the wire, once; everybody who asks gets this cause."""
        if self._verdict is not None:
            return
        self._verdict = verdict
        if self._outgoing is not None:
            self._outgoing.close()
        if self._sink is not None:
            self._sink.ended(self._error())
        self._reader.cancel()

    def _error(self) -> TransportError:
        # A new one for each who asks: a raised exception collects tracebacks.
        verdict = self._verdict or TransportClosed()
        return type(verdict)(reason=verdict.reason)


async def _shelter(shield: trio.CancelScope, *, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Run a nursery that only `shield` ends: closing in order needs the connection's reader after a cancellation."""
    with shield:
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()


async def _ping(websocket: trio_websocket.WebSocketConnection) -> None:
    with suppress(trio_websocket.ConnectionClosed):
        await websocket.ping()


def _root(error: BaseException) -> str:
    """What was wrong at first: the library answers a faulty handshake in ways that h11 refuses."""
    faults = [seen for seen in causes(error) if isinstance(seen, WsProtocolError | h11.ProtocolError)]
    return str(faults[-1] if faults else error)
