"""Owns the streamable HTTP transport, for both eras: one POST per frame, its headers, the wire session, the GET stream.

What this is not: MCP. It reads no message; method, id and mirrored headers come as data on the frame. What an answer
means is in `http_exchange`, the GET stream in `http_stream`, httpx behind `http_client`.

Rules, beyond those of `base`:

- `run` does no I/O to open: HTTP has no connection. What is run is a headers helper, where there is one; once more
  when a later request is refused with 401 or 403, which is then tried once more (S091). The outcome of each exchange
  belongs to its frame.
- `send` raises where no answer began: `ConnectFailed` (the request never arrived; it is safe to send it again) or
  `TransportBroken` (it may have been carried out). Either concerns this frame alone; `run` goes on.
- Once an answer began, the sink learns the outcome and `send` returns: messages, ``refuse``, or ``lose``.
- A wire session is taken from an `initialize` answer only, sent on everything later, dropped by the next `initialize`
  together with its GET stream, and ended with DELETE. The modern era never sends `initialize`, so it never has one
  (C03, C04, C11). After a second handshake `session_ready` is called again and opens the new GET stream.
- A legacy response stream that ended before its answer is resumed (`http_resume`). The answer is taken from whatever
  stream brings it (C09); an exchange whose answer came over a GET stream is left.
- An exchange that was answered while its stream stays open is left to a task of `run` for a moment: the connection can
  be used again, and nobody waits for the stream's end.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import LocalProtocolError, McpActorsError, TransportClosed
from mcp_actors.origins import place_of
from mcp_actors.protocol.types import Era
from mcp_actors.sent_secrets import starred
from mcp_actors.shown import one_line
from mcp_actors.transports.base import Diagnostics, PassingSink
from mcp_actors.transports.carried_headers import REFUSALS, CarriedHeaders
from mcp_actors.transports.cursor import Cursor
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.http_exchange import EVENT_STREAM, JSON, is_success, take_answer
from mcp_actors.transports.http_headers import SESSION_HEADER, fixed_headers
from mcp_actors.transports.http_resume import Resuming, resume
from mcp_actors.transports.http_stream import PushStream, Reopening
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import Frame, ServerInfo
    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.http_answer import HttpAnswer
    from mcp_actors.transports.http_client import Auth

__all__ = ["HttpTransport"]

REVISION_HEADER: Final = "MCP-Protocol-Version"
POST_HEADERS: Final = ((b"Accept", f"{JSON}, {EVENT_STREAM}".encode()), (b"Content-Type", JSON.encode()))
# Seconds for the one DELETE on leaving (S144, fault 93).
DELETE_SECONDS: Final = 1.0
# Seconds that an answered stream may take to end, and how many may do so at once.
LINGER_SECONDS: Final = 1.0
MAX_LINGERERS: Final = 8
# Bytes and seconds spent on the ignored body of a notification's answer, for the connection's sake.
MAX_IGNORED_BYTES: Final = 64 * 1024
IGNORE_SECONDS: Final = 1.0
MAX_NOTES: Final = 8

# Visible ASCII, and no longer than any server's header limit (S079).
SESSION_PATTERN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


class HttpTransport:
    """One MCP endpoint over HTTP. See the rules in this module's docstring."""

    kind = "http"
    is_exchange = True
    is_eager = False
    is_full = False
    shutdown_bound = DELETE_SECONDS + 0.5

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        *,
        auth: Auth | None = None,
        environ: Mapping[str, str] | None = None,
        reopening: Reopening | None = None,
        resuming: Resuming | None = None,
    ) -> None:
        """Describe the transport; nothing is opened.

        Args:
            spec: its target is a `RemoteTarget`.
            settings: for the bound of a message.
            auth: adds credentials to each request; None: only the configured headers.
            environ: maps variable name -> text, for proxies and TLS; None: no proxy, and what is shipped is trusted.
            reopening: pace of the GET stream; None: the default one.
            resuming: patience with response streams that end early; None: the default one.

        Raises:
            ConfigError: a configured header cannot be sent.
        """
        target = spec.target
        if not isinstance(target, RemoteTarget):
            raise LocalProtocolError(server=spec.name, reason="HTTP needs a remote target")
        self._client = HttpClient(target.url, auth=auth, environ=environ)
        self._max_bytes = settings.max_message_bytes
        self._carried = CarriedHeaders(spec, environ, partial(fixed_headers, server=spec.name))
        self._reopening = reopening or Reopening()
        self._resuming = resuming or Resuming()
        # Set by `run` while it serves; None before and after.
        self._sink: Sink | None = None
        self._nursery: trio.Nursery | None = None
        # Maps the scope of each exchange under way -> its request, None for others; leaving cancels them (fault 93).
        self._exchanges: dict[trio.CancelScope, Frame | None] = {}
        self._lingerers = 0
        # Wire session id, from the last successful `initialize`; a secret.
        self._session_id: bytes | None = None
        # Outcome of the handshake, None while there is none; the event is set with it, and a new one with the next.
        self._info: ServerInfo | None = None
        self._is_ready = trio.Event()
        # Scope of the GET stream; a new handshake cancels it.
        self._push = trio.CancelScope()
        # Oldest first, at most MAX_NOTES.
        self._notes: deque[str] = deque(maxlen=MAX_NOTES)

    def __repr__(self) -> str:
        state = "open" if self._sink is not None else "closed"
        return f"<HttpTransport {place_of(self._client.url)} {state} | exchanges: {len(self._exchanges)} active>"

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve exchanges. Runs until cancelled; does no I/O before the first frame, but for running a headers helper.

        Raises:
            ConnectFailed, ConfigError: of the headers helper.

        Cancellation:
            Exchanges under way fail with `TransportClosed`; a wire session is ended with one DELETE, shielded for at
            most one second, whose outcome does not matter.

        Source:
            S079, S081, S144, C05, C06; faults 33, 93.
        """
        await self._carried.open()
        try:
            async with trio.open_nursery() as nursery:
                self._sink, self._nursery = sink, nursery
                task_status.started()
                while True:
                    is_ready = self._is_ready
                    await is_ready.wait()
                    with trio.CancelScope() as self._push:
                        if is_ready is self._is_ready:
                            await self._listen(sink)
        finally:
            self._sink = self._nursery = None
            for scope in list(self._exchanges):
                scope.cancel()
            await self._leave()

    async def send(self, frame: Frame) -> None:
        """Make the exchange of one frame; returns when no more of it can arrive.

        Raises:
            ConnectFailed: the request did not arrive, or was redirected to where it must not go. This frame alone.
            TransportBroken: the connection ended before an answer began. This frame alone.
            TransportClosed: `run` is not running.
            AuthError: the credentials did not do.

        Cancellation:
            Safe. The connection of this exchange is closed, which is how the modern era cancels (B17).

        Source:
            S077-S080; C01, C03, B17.
        """
        sink = self._sink
        if sink is None:
            raise TransportClosed
        with trio.CancelScope() as scope:
            self._exchanges[scope] = frame if frame.request_id is not None else None
            try:
                await self._exchange(frame, sink)
            finally:
                del self._exchanges[scope]
        if scope.cancelled_caught and self._sink is None:
            raise TransportClosed

    def session_ready(self, info: ServerInfo) -> None:
        """Learn the outcome of a handshake: in the legacy era the optional GET stream is opened.

        To be called after each handshake: a session that was lost is followed by another one over this transport.
        """
        self._info = info
        self._is_ready.set()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its requests carried."""
        return self._client.secrets

    def diagnostics(self) -> Diagnostics:
        """Describe the wire as it is now. No side effects, no secrets."""
        return Diagnostics(notes=tuple(self._notes))

    async def _listen(self, sink: Sink) -> None:
        """Keep the GET stream of this session. Runs until cancelled."""
        if self._is_legacy:
            stream = PushStream(
                self._client,
                self._later_headers,
                self._note_once,
                self._max_bytes,
                self._reopening,
                has_session=self._session_id is not None,
            )
            await stream.run(_Sweeping(sink, self._sweep))
        await trio.sleep_forever()

    def _sweep(self) -> None:
        """Leave the exchanges whose answer came over a GET stream (C09)."""
        sink = self._sink
        for scope, frame in self._exchanges.items():
            if sink is not None and frame is not None and not sink.is_waiting(frame.request_id or 0):
                scope.cancel()

    def _begin_session(self) -> None:
        """Forget the session before: a new `initialize` goes without it (C04)."""
        self._session_id = None
        self._info = None
        if self._is_ready.is_set():
            self._is_ready = trio.Event()
        self._push.cancel()

    async def _exchange(self, frame: Frame, sink: Sink) -> None:
        is_initialize = frame.method == "initialize"
        if is_initialize:
            self._begin_session()
        cursor = Cursor() if is_initialize or self._is_legacy else None
        session = self._session_id
        had_session = session is not None
        answer = await self._post(frame, session)
        is_lent = False
        try:
            if is_initialize and is_success(answer.status):
                self._take_session(answer)
                session = self._session_id
            if frame.request_id is None:
                await self._take_receipt(answer, frame)
                return
            sink.answering(frame)
            if answer.status == 200 and not answer.content_type:
                self._note_once("an answer came without a content type")
            broken = await take_answer(
                answer, frame, sink, max_bytes=self._max_bytes, had_session=had_session, cursor=cursor
            )
            is_lent = broken is None and self._lend(answer)
        finally:
            if not is_lent:
                await answer.aclose()
        if broken is not None and cursor is not None:
            await resume(
                self._client,
                lambda: self._later_headers() if self._session_id is session else None,
                frame,
                _Sweeping(sink, self._sweep),
                cursor,
                reason=broken,
                max_bytes=self._max_bytes,
                resuming=self._resuming,
            )

    async def _post(self, frame: Frame, session: bytes | None) -> HttpAnswer:
        """Make the request; once more where the server refuses who we are and a helper may know better (S091)."""
        version = self._carried.version
        answer = await self._client.request("POST", self._post_headers(frame, session), frame.data)
        # Within the handshake what the helper printed is fresh.
        if answer.status not in REFUSALS or self._info is None or not self._carried.has_helper:
            return answer
        try:
            may_retry = await self._carried.renew(version)
        except McpActorsError as exc:
            self._note_once(exc.describe())
            return answer
        except BaseException:
            await answer.aclose()
            raise
        if may_retry:
            await answer.aclose()
            answer = await self._client.request("POST", self._post_headers(frame, session), frame.data)
        return answer

    def _post_headers(self, frame: Frame, session: bytes | None) -> list[tuple[bytes, bytes]]:
        headers = [*self._carried.pairs, *POST_HEADERS]
        headers += [(name.encode(), value.encode()) for name, value in frame.headers]
        if session is not None:
            headers.append((SESSION_HEADER.encode(), session))
        return headers

    @property
    def _is_legacy(self) -> bool:
        return self._info is not None and self._info.era is Era.LEGACY

    def _lend(self, answer: HttpAnswer) -> bool:
        """Leave an answered stream to a task of `run`, if there is one and it may end soon."""
        is_worth = answer.content_type == EVENT_STREAM and not answer.is_complete and not answer.is_broken
        if self._nursery is None or not is_worth or self._lingerers >= MAX_LINGERERS:
            return False
        self._nursery.start_soon(self._linger, answer)
        self._lingerers += 1
        return True

    async def _linger(self, answer: HttpAnswer) -> None:
        try:
            await answer.read_start(MAX_IGNORED_BYTES, LINGER_SECONDS)
        finally:
            self._lingerers -= 1
            await answer.aclose()

    async def _take_receipt(self, answer: HttpAnswer, frame: Frame) -> None:
        """Accept whatever a notification or an answer of ours was received with (fault 35)."""
        if not is_success(answer.status):
            self._note_once(f"{frame.method or 'an answer of ours'} was refused: HTTP {answer.status}")
        await answer.read_start(MAX_IGNORED_BYTES, IGNORE_SECONDS)

    def _take_session(self, answer: HttpAnswer) -> None:
        value = answer.header(SESSION_HEADER)
        if value is None:
            return
        if SESSION_PATTERN.fullmatch(value):
            self._session_id = value.encode()
        else:
            self._note_once("the server gave a session id that is not visible ASCII: ignored")

    def _later_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of a GET or DELETE."""
        headers = [*self._carried.pairs]
        if self._session_id is not None:
            headers.append((SESSION_HEADER.encode(), self._session_id))
        if self._info is not None:
            headers.append((REVISION_HEADER.encode(), self._info.revision.encode()))
        return headers

    async def _leave(self) -> None:
        """End the wire session and close every connection; bounded, and nothing that goes wrong matters (fault 93)."""
        if self._session_id is not None:
            with trio.move_on_after(DELETE_SECONDS, shield=True), suppress(McpActorsError):
                answer = await self._client.request("DELETE", self._later_headers())
                await answer.aclose()
        await self._client.aclose()

    def _note_once(self, text: str) -> None:
        text = one_line(starred(text, self.secrets))  # a server may have worded it
        if text not in self._notes:
            self._notes.append(text)


@define(eq=False)
class _Sweeping(PassingSink):
    """A sink for messages of GET streams: after each one, exchanges that it answered are left."""

    _sweep: Callable[[], None]

    def deliver(self, raw: bytes) -> None:
        self._sink.deliver(raw)
        self._sweep()
