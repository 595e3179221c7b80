"""Owns the older HTTP transport, HTTP+SSE of revision 2024-11-05: one event stream in, one POST per message out.

What this is not: streamable HTTP (`http`); nothing of it is shared but the exchange itself.

Rules.

- The stream's first event of use is `endpoint`: where messages are posted to. Nothing is posted before it came; how
  long that may take is the connect timeout of the caller (fault 48).
- The endpoint is resolved against the stream's URL with its query kept (fault 47), and must be of the same origin: the
  headers that we post there may be secrets (C13).
- Two clients (S073): the stream may be silent for ever (fault 45), a POST must be answered within a minute up to its
  first byte (S076), whatever the answer of the message itself takes.
- The session lives in the endpoint and dies with the stream: its end, and an endpoint that is not known any more, break
  the wire.
- Every message comes over the stream, and a POST's own body says nothing, unless it is the answer that is waited for:
  servers of the newer transport behind an older address do that. It is taken, and noted.
- `send` lasts as long as its POST and concerns one frame alone, so `is_exchange` is true: servers exist that answer the
  POST only after the message was carried out, and a caller must not wait for that when its answer has come.
- The transport belongs to the legacy era (spec_client 6). A modern probe is answered here, as a server of that age
  would on streamable HTTP: many of them say nothing at all to it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urldefrag, urljoin

import trio

from mcp_actors.config.specs import RemoteTarget, TransportName
from mcp_actors.errors import (
    AuthError,
    ConfigError,
    ConnectFailed,
    LocalProtocolError,
    RemoteProtocolError,
    TransportBroken,
    TransportClosed,
    TransportError,
)
from mcp_actors.origins import origin_of, place_of
from mcp_actors.protocol.jsonrpc import ABSENT, decode_envelope
from mcp_actors.protocol.refusals import read_refusal
from mcp_actors.protocol.sse import SseParser
from mcp_actors.protocol.types import Refusal
from mcp_actors.sent_secrets import SentSecrets
from mcp_actors.transports.base import Diagnostics, Turn
from mcp_actors.transports.carried_headers import REFUSALS, CarriedHeaders
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.http_exchange import EVENT_STREAM, JSON, is_success, refusal_of
from mcp_actors.transports.http_headers import fixed_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import Frame, ServerInfo
    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.http_answer import HttpAnswer
    from mcp_actors.transports.http_client import Auth

__all__ = ["REQUEST_SECONDS", "SseTransport", "request_seconds", "resolve_endpoint"]

# A POST's first byte; what the clients that made these servers popular wait (S073, S076).
REQUEST_SECONDS: Final = 60.0
MAX_ENDPOINT_BYTES: Final = 8192
# Bytes and seconds spent on the body of a POST, which says nothing as a rule, for the connection's sake.
MAX_RECEIPT_BYTES: Final = 256 * 1024
RECEIPT_SECONDS: Final = 1.0
MAX_NOTES: Final = 8
NO_ENDPOINT: Final = "the event stream opened, but no endpoint event with an address came over it"
# The endpoint holds the session: whoever does not know it any more has lost that.
LOST_STATUSES: Final = frozenset({404, 410})
PROBE: Final = "server/discover"
# What servers of streamable HTTP answer to a bare GET.
NEWER_STATUSES: Final = frozenset({400, 405, 406})


class SseTransport:
    """One MCP server behind HTTP+SSE. See the rules in this module's docstring."""

    kind = "sse"
    is_exchange = True
    is_eager = False
    is_full = False
    # Closing sockets waits for nobody.
    shutdown_bound = 0.5

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        *,
        auth: Auth | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the transport; nothing is opened.

        Args:
            spec: its target is a `RemoteTarget`.
            settings: for the bound of a message.
            auth: adds credentials to each request, asked anew for each (S074); None: only the configured headers.
            environ: maps variable name -> text, for proxies and TLS; None: no proxy, and what is shipped is trusted.

        Raises:
            ConfigError: a configured header cannot be sent.
        """
        target = spec.target
        if not isinstance(target, RemoteTarget):
            raise LocalProtocolError(server=spec.name, reason="HTTP+SSE needs a remote target")
        self._target = target
        self._auth = auth
        self._environ = environ
        self._max_bytes = settings.max_message_bytes
        self._request_seconds = request_seconds(spec, settings)
        self._carried = CarriedHeaders(spec, environ, partial(fixed_headers, server=spec.name))
        self._sent = SentSecrets()
        # Of the endpoint, while `run` serves.
        self._poster: HttpClient | None = None
        self._sink: Sink | None = None
        self._is_ready = False
        # Whether its event stream opened.
        self._has_stream = False
        # Scopes of the POSTs under way; the end of the wire cancels them.
        self._posts: set[trio.CancelScope] = set()
        # Why the wire ended; None while it has not.
        self._verdict: TransportError | None = None
        # Set with a verdict that a POST found; ends `run`.
        self._reader = trio.CancelScope()
        self._notes: list[str] = []

    def __repr__(self) -> str:
        state = "open" if self._poster is not None else "closed"
        return f"<SseTransport {place_of(self._target.url)} {state} | posts: {len(self._posts)} active>"

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open the stream, wait for its endpoint, serve it. Runs until cancelled or until the stream ends.

        Raises:
            ConnectFailed: the stream was refused, ended before its endpoint, or named one that must not be used.
            AuthError: a person must log in.
            ConfigError: of the headers helper.
            TransportBroken: the stream ended, or the server does not know its endpoint any more.

        Cancellation:
            POSTs under way fail with `TransportClosed`; every connection is closed, without waiting for anybody.

        Source:
            MCP 2024-11-05, basic/transports, "HTTP with SSE"; S072-S075, C13, faults 45, 47, 48.
        """
        await self._carried.open()
        client = HttpClient(self._target.url, auth=self._auth, environ=self._environ, sent=self._sent)
        answer: HttpAnswer | None = None
        try:
            with self._reader:
                answer = await self._get(client)
                await self._check(answer)
                await self._read(answer, sink, task_status)
        finally:
            self._end(TransportClosed(reason="the connection was closed by us"))
            if answer is not None:
                await answer.aclose()
            if self._poster is not None:
                await self._poster.aclose()
            await client.aclose()
        raise self._error()

    async def send(self, frame: Frame) -> None:
        """Post one frame; returns once the server took it.

        Raises:
            ConnectFailed: the POST did not arrive. This frame alone.
            TransportBroken: the POST was not answered in time, or the wire is gone.
            TransportClosed: `run` is not running.
            AuthError: the credentials did not do.

        Cancellation:
            Safe. A POST that was cut is no message.

        Source:
            S073, S075, S076, C13.
        """
        sink, poster = self._sink, self._poster
        if self._verdict is not None:
            raise self._error()
        if sink is None or poster is None:
            raise TransportClosed
        if frame.method == PROBE:
            sink.refuse(frame, Refusal(405, url=place_of(poster.url)))
            return
        with trio.CancelScope() as scope:
            self._posts.add(scope)
            try:
                await self._post(frame, sink, poster)
            finally:
                self._posts.discard(scope)
        if scope.cancelled_caught:
            raise self._error()

    def session_ready(self, info: ServerInfo) -> None:
        """Learn that calls may come: one that is refused may run the headers helper again."""
        del info
        self._is_ready = True

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its requests carried, of the stream and of the endpoint."""
        return self._sent.secrets

    def diagnostics(self) -> Diagnostics:
        """Describe the wire as it is now. No side effects, no secrets."""
        missing = (NO_ENDPOINT,) if self._has_stream and self._poster is None else ()
        return Diagnostics(notes=(*missing, *self._notes))

    async def _get(self, client: HttpClient) -> HttpAnswer:
        try:
            return await client.request("GET", [*self._carried.pairs, (b"Accept", EVENT_STREAM.encode())])
        except TransportBroken as exc:  # nothing was open yet
            raise ConnectFailed(reason=exc.reason) from exc

    async def _check(self, answer: HttpAnswer) -> None:
        """Make sure that this is an event stream."""
        if is_success(answer.status) and answer.content_type == EVENT_STREAM:
            self._has_stream = True
            return
        error = read_refusal(await refusal_of(answer, had_session=False), is_connecting=True)
        # Not where it was only tried after the newer one (`fallback`).
        is_meant = self._target.transport is TransportName.SSE
        if is_meant and isinstance(error, TransportError) and error.http_status in NEWER_STATUSES:
            error.reason += "; a newer server is of type http"
        if isinstance(error, (TransportError, AuthError)):
            raise error
        place = place_of(answer.url)
        raise ConnectFailed(
            reason=f"{place} answered {answer.status}: {error.describe()}", http_status=answer.status, can_retry=False
        )

    async def _read(self, answer: HttpAnswer, sink: Sink, task_status: trio.TaskStatus[None]) -> None:
        """Read the stream to its end; leaves a verdict."""
        parser, turn = SseParser(self._max_bytes), Turn()
        reason = "the server closed its event stream"
        try:
            while chunk := await answer.receive_some():
                for event in parser.feed(chunk):
                    if turn.spend(len(event.data or b"")):
                        await trio.lowlevel.checkpoint()
                    if not event.data:
                        continue
                    if event.event == "message":
                        sink.deliver(event.data)
                    elif event.event == "endpoint" and self._poster is None:
                        endpoint = resolve_endpoint(answer.url, event.data)
                        self._poster = HttpClient(endpoint, auth=self._auth, environ=self._environ, sent=self._sent)
                        self._sink = sink
                        task_status.started()
        except (TransportBroken, RemoteProtocolError) as exc:
            reason = exc.reason
        if self._poster is None:
            raise ConnectFailed(reason=f"{place_of(answer.url)}: no endpoint event came: {reason}")
        self._end(TransportBroken(reason=reason))

    async def _post(self, frame: Frame, sink: Sink, poster: HttpClient) -> None:
        version = self._carried.version
        answer = await self._request(frame, poster)
        if answer.status in REFUSALS and self._is_ready and self._carried.has_helper:
            # Who we are may have run out: the helper knows, and the same is tried once more (S091).
            await answer.aclose()
            with suppress(ConnectFailed, ConfigError):
                await self._carried.renew(version)
            answer = await self._request(frame, poster)
        if frame.request_id is not None:
            sink.answering(frame)
        try:
            if is_success(answer.status):
                self._take_receipt(frame, sink, await answer.read_start(MAX_RECEIPT_BYTES, RECEIPT_SECONDS))
            elif answer.status in LOST_STATUSES:
                reason = f"{place_of(poster.url)} does not know this session any more: HTTP {answer.status}"
                self._end(TransportBroken(reason=reason, http_status=answer.status))
                await trio.sleep_forever()  # cancelled by what was just said
            elif frame.request_id is not None:
                sink.refuse(frame, await refusal_of(answer, had_session=False))
            else:
                self._note_once(f"{frame.method or 'an answer of ours'} was refused: HTTP {answer.status}")
        finally:
            await answer.aclose()

    def _take_receipt(self, frame: Frame, sink: Sink, body: bytes) -> None:
        """Look whether the body of a POST is the answer to its request."""
        if frame.request_id is None or not sink.is_waiting(frame.request_id):
            return
        try:
            envelope = decode_envelope(body)
        except RemoteProtocolError:
            return
        if envelope.id == frame.request_id and envelope.method is ABSENT:
            self._note_once("answers come in the body of the POST, not over the stream")
            sink.deliver(body)

    async def _request(self, frame: Frame, poster: HttpClient) -> HttpAnswer:
        headers = [
            *self._carried.pairs,
            *((name.encode(), value.encode()) for name, value in frame.headers),
            (b"Accept", f"{JSON}, {EVENT_STREAM}".encode()),
            (b"Content-Type", JSON.encode()),
        ]
        with trio.move_on_after(self._request_seconds):
            return await poster.request("POST", headers, frame.data)
        text = f"{place_of(poster.url)} did not begin to answer within {self._request_seconds:g} s"
        raise TransportBroken(reason=text)

    def _end(self, verdict: TransportError) -> None:
        """Judge the end of the wire, once; everybody who asks gets this cause."""
        if self._verdict is not None:
            return
        self._verdict = verdict
        if self._sink is not None:
            self._sink.ended(self._error())
        self._reader.cancel()
        for scope in self._posts:
            scope.cancel()

    def _error(self) -> TransportError:
        # A new one for each who asks: a raised exception collects tracebacks.
        verdict = self._verdict or TransportClosed()
        return type(verdict)(reason=verdict.reason, http_status=verdict.http_status)

    def _note_once(self, text: str) -> None:
        if text not in self._notes and len(self._notes) < MAX_NOTES:
            self._notes.append(text)


def resolve_endpoint(stream_url: str, data: bytes) -> str:
    """Where messages are posted to.

    Args:
        stream_url: of the event stream, after redirects.
        data: of the `endpoint` event: a URI, mostly relative.

    Raises:
        ConnectFailed: it is no URL, or of another origin; shows no query.

    Source:
        RFC 3986, section 5; C13, fault 47.
    """
    place = place_of(stream_url)
    try:
        if len(data) > MAX_ENDPOINT_BYTES:
            raise ValueError
        endpoint = urldefrag(urljoin(stream_url, data.decode().strip())).url
        theirs, ours = origin_of(endpoint), origin_of(stream_url)
    except ValueError as exc:
        raise ConnectFailed(reason=f"{place} named an endpoint that is no URL", can_retry=False) from exc
    if theirs != ours:
        raise ConnectFailed(
            reason=f"{place} named an endpoint of another origin: {place_of(endpoint)}", can_retry=False
        )
    return endpoint


def request_seconds(spec: ServerSpec, settings: Settings) -> float:
    """Seconds to the first byte of a POST's answer: the server's own, else a minute, or the call's limit if longer.

    The runtime's limit counts where it was set: its default is in effect no limit at all.

    Source:
        S076.
    """
    if spec.request_timeout is not None:
        return spec.request_timeout
    limit = spec.call_timeout
    if limit is None and settings.call_timeout != type(settings)().call_timeout:
        limit = settings.call_timeout
    return max(REQUEST_SECONDS, limit or 0.0)
