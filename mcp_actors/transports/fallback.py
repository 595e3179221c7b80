"""Owns the choice between the two HTTP transports for a server whose configuration named none (fault 34).

What this is not: a third transport, nor for a server with ``type: http``, which never falls back.

Why here: the session judges answers and knows no wires, the connection has one transport for its life, and the
evidence, a refused POST and then an `endpoint` event, is of wires alone. So the choice is a wrapper, made once and
remembered in `Found` over the lives of a server.

::

    POST initialize refused with 400, 404, 405,         GET gives an endpoint event    HTTP+SSE, for good
    nothing delivered before, no word of revisions      GET does not                   failed; both attempts are shown
    POST refused otherwise (401, 403, 429, 5xx ...)                                    the session judges it
    remembered as HTTP+SSE                              GET gives an endpoint event    HTTP+SSE
                                                        GET is refused for good        HTTP, in the same life; forgotten
                                                        GET does not                   failed; forgotten

Source: MCP 2025-11-25, basic/transports, "Backwards Compatibility"; spec_client 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.errors import AuthError, ConnectFailed, McpActorsError, TransportBroken, TransportClosed, TransportError
from mcp_actors.protocol.jsonrpc import HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION
from mcp_actors.protocol.refusals import read_refusal, rpc_error_in
from mcp_actors.transports.base import PassingSink
from mcp_actors.transports.http import HttpTransport
from mcp_actors.transports.legacy_sse import SseTransport
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import Frame, Refusal, ServerInfo
    from mcp_actors.transports.base import Diagnostics, Sink
    from mcp_actors.transports.found import Found
    from mcp_actors.transports.http_client import Auth

__all__ = ["FallbackTransport"]

SUSPICIOUS_STATUSES: Final = frozenset({400, 404, 405})
# Errors by which a server shows that it reads what is posted there, nothing older is (spec_client 3.5).
MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})


class FallbackTransport:
    """Streamable HTTP, or else HTTP+SSE. See the table in this module's docstring."""

    is_exchange = True
    is_eager = False
    is_full = False
    shutdown_bound = HttpTransport.shutdown_bound

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        *,
        found: Found,
        auth: Auth | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the transport; nothing is opened. `found` is read and written, the rest is as for `HttpTransport`.

        Raises:
            ConfigError: a configured header cannot be sent.
        """
        self._spec = spec
        self._found = found
        self._http = HttpTransport(spec, settings, auth=auth, environ=environ)
        self._older = SseTransport(spec, settings, auth=auth, environ=environ)
        self._current: HttpTransport | SseTransport = self._older if found.is_older(spec) else self._http
        self.kind = self._current.kind
        # Why HTTP was left; None while it was not.
        self._note: str | None = None
        # While `run` runs.
        self._nursery: trio.Nursery | None = None
        self._sink: Sink | None = None
        self._http_life = trio.CancelScope()
        # The refusal of `initialize` that has not been judged yet.
        self._suspicion: Refusal | None = None
        # How the older wire ended.
        self._failure: McpActorsError | None = None

    def __repr__(self) -> str:
        return f"<FallbackTransport to {self._current!r}>"

    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve over whichever transport it is. Runs until cancelled or until an HTTP+SSE stream ends.

        Raises:
            ConnectFailed: it is remembered as HTTP+SSE and is that no more.
            TransportBroken: the HTTP+SSE stream ended.
            AuthError: a person must log in.

        Cancellation:
            That of the transport in use.

        Source:
            Fault 34.
        """
        self._sink = sink
        try:
            async with trio.open_nursery() as self._nursery:
                if self._current is self._http:
                    await self._nursery.start(self._run_http, _Watching(sink, self._suspect))
                    task_status.started()
                elif await self._is_newer_now(sink, task_status):
                    self._current, self.kind = self._http, self._http.kind
                    await self._nursery.start(self._run_http, sink)
                    task_status.started()
        finally:
            self._sink = self._nursery = None
        if self._failure is not None:
            raise self._failure

    async def send(self, frame: Frame) -> None:
        """Send one frame; after a refused `initialize` the older transport is tried with it.

        Raises:
            ConnectFailed: the frame did not arrive, or neither transport works: the reason names both.
            TransportBroken: see the transport in use.
            TransportClosed: `run` is not running.
            AuthError: the credentials did not do.

        Cancellation:
            Safe.
        """
        if self._nursery is None:
            raise TransportClosed
        await self._current.send(frame)
        refusal, self._suspicion = self._suspicion, None
        if refusal is not None:
            await self._fall_back(frame, refusal)

    def session_ready(self, info: ServerInfo) -> None:
        """Learn the outcome of a handshake."""
        self._current.session_ready(info)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those of the transport in use."""
        return self._current.secrets

    def diagnostics(self) -> Diagnostics:
        """Describe the wire in use, and why it is not the other."""
        known = self._current.diagnostics()
        if self._current is self._http:
            known = evolve(known, notes=(*known.notes, *self._older.diagnostics().notes))
        return known if self._note is None else evolve(known, notes=(self._note, *known.notes))

    def _suspect(self, frame: Frame, refusal: Refusal) -> bool:
        """Whether this refusal may come from an older server; then it is kept from the session for now."""
        if frame.method != "initialize" or refusal.status not in SUSPICIOUS_STATUSES or _speaks_of_revisions(refusal):
            return False
        self._suspicion = refusal
        return True

    async def _fall_back(self, frame: Frame, refusal: Refusal) -> None:
        nursery, sink = self._nursery, self._sink
        if nursery is None or sink is None:
            raise TransportClosed
        posted = read_refusal(refusal, is_connecting=True).describe()
        try:
            await nursery.start(self._run_older, sink)
        except TransportError as exc:
            raise ConnectFailed(
                reason=f"POST: {posted}; GET, as HTTP+SSE: {exc.describe()}",
                http_status=refusal.status,
                can_retry=exc.can_retry,
            ) from exc
        self._current, self.kind = self._older, self._older.kind
        self._note = f"fell back to HTTP+SSE: {posted}"
        self._found.remember(self._spec, is_older=True)
        self._http_life.cancel()
        await self._older.send(frame)

    async def _run_http(self, sink: Sink, *, task_status: trio.TaskStatus[None]) -> None:
        with self._http_life:
            await self._http.run(sink, task_status=task_status)

    async def _is_newer_now(self, sink: Sink, task_status: trio.TaskStatus[None]) -> bool:
        """Serve a server that is remembered as HTTP+SSE; returns early, and True, where it has no such stream any more.

        Whatever else keeps the stream from opening, the memory goes with it: the next life looks anew (A06).
        """
        opened = _Opened(task_status)
        try:
            await self._run_older(sink, task_status=opened)
        finally:
            if not (opened.is_open or isinstance(self._failure, AuthError)):
                self._found.remember(self._spec, is_older=False)
        if opened.is_open or not isinstance(self._failure, ConnectFailed) or self._failure.can_retry:
            return False
        self._note, self._failure = f"it was HTTP+SSE before: {self._failure.describe()}", None
        return True

    async def _run_older(self, sink: Sink, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await self._older.run(sink, task_status=task_status)
        except TransportBroken as exc:
            self._failure = exc  # it was open
        except (ConnectFailed, AuthError) as exc:
            if self._current is self._http:
                raise  # to whoever tries it
            self._failure = exc


@define(eq=False)
class _Opened(trio.TaskStatus[None]):
    """A task status that notes whether it was told."""

    _told: trio.TaskStatus[None]
    is_open: bool = False

    def started(self, value: None = None) -> None:
        self.is_open = True
        self._told.started(value)


@define(eq=False)
class _Watching(PassingSink):
    """A sink for the HTTP transport: refusals go through `suspect`, until a message shows that HTTP works."""

    _suspect: Callable[[Frame, Refusal], bool]
    _works: bool = False

    def deliver(self, raw: bytes) -> None:
        self._works = True
        self._sink.deliver(raw)

    def refuse(self, frame: Frame, refusal: Refusal) -> None:
        if self._works or not self._suspect(frame, refusal):
            self._sink.refuse(frame, refusal)


def _speaks_of_revisions(refusal: Refusal) -> bool:
    """Whether the refusal is a server's word on revisions, which the session answers (A03, spec_client 3.5)."""
    error = rpc_error_in(refusal)
    if error is None:
        return False
    return error.code in MODERN_CODES or (isinstance(error.data, dict) and "supported" in error.data)
