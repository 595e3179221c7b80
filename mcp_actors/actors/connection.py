"""Owns one life of a server, from the opened transport to its end.

What this is not: a judge of MCP (`protocol.session` is), nor of its own death (`child` and `restarts` are).

Data plane: `request` runs in the caller's task and meets its answer in `calls`; the transport's reader brings it
through the `wire`.

Control plane: `open` shakes hands, in the task and the nursery of the `child`; `lists` keeps fresh what it offers. The
nursery is left by cancellation or by the first error; by then every call in flight has failed, before anything of the
transport is torn down (S146).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from attrs import evolve

from mcp_actors.actors.answering import Answering
from mcp_actors.actors.lists import Lists
from mcp_actors.actors.pulse import PINGED, Strikes, keep_pinging
from mcp_actors.actors.requests import ask_fully
from mcp_actors.actors.slots import Request
from mcp_actors.actors.users import Users
from mcp_actors.actors.wire import Wire
from mcp_actors.actors.wording import remedy_for
from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import AuthRequired, CredentialsRefused, LocalProtocolError, McpActorsError, TransportClosed
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.cache import ResponseCache
from mcp_actors.protocol.clocks import resolve_timeouts
from mcp_actors.protocol.events import ElicitationCompleted, LogReceived
from mcp_actors.protocol.features import ROOTS_CHANGED, may_send
from mcp_actors.protocol.jsonrpc import require_object
from mcp_actors.protocol.mirrored import mirrors_arguments
from mcp_actors.protocol.recovery import SessionExpiry, is_outgrown
from mcp_actors.protocol.refusals import is_shut_out
from mcp_actors.protocol.session import SessionSettings, SessionState
from mcp_actors.protocol.types import Era
from mcp_actors.transports.base import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from mcp_actors.actors.alarms import Alarms
    from mcp_actors.actors.host import WiredHost
    from mcp_actors.actors.listening import Listening
    from mcp_actors.actors.mailbox import Ref
    from mcp_actors.actors.messages import RegistryMessage
    from mcp_actors.actors.slots import ProgressCallback, Slot
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.listening import ListenFilter
    from mcp_actors.protocol.types import ServerInfo
    from mcp_actors.transports.base import Transport

__all__ = ["Connection"]

ErrorT = TypeVar("ErrorT", bound=BaseException)

DEFAULT_CALL_TIMEOUT: Final = Settings().call_timeout

logger = logging.getLogger("mcp_actors.connection")


class Connection:
    """One life of one server. `open` is called once; `request` is called by many."""

    def __init__(
        self,
        spec: ServerSpec,
        settings: Settings,
        open_transport: Callable[[], Transport],
        registry: Ref[RegistryMessage],
        *,
        generation: int,
        pinned_era: Era | None,
        remembered_era: Era | None,
        host: WiredHost,
        alarms: Alarms,
        listening: Listening,
    ) -> None:
        self.spec = spec
        self.generation = generation
        # What the handshake found; None before READY.
        self.info: ServerInfo | None = None
        # The clocks of a call to this server (S199-S201).
        self.timeouts = resolve_timeouts(
            spec.transport,
            call_timeout=settings.call_timeout,
            default=DEFAULT_CALL_TIMEOUT,
            entry_timeout=spec.call_timeout,
            idle_timeout=settings.idle_timeout,
            first_byte_timeout=spec.request_timeout,
        )
        # Requests of callers that were answered: proof of health (restarts, rule 3).
        self.served = 0
        # Who is in the middle of a call; a successor waits until they have left.
        self.users = Users()
        self._settings = settings
        self._open_transport = open_transport
        self._registry = registry
        self._pinned_era = pinned_era
        self._remembered_era = remembered_era
        # Whether the server turned a request away by the manners of another era: a new connection finds it anew (A06).
        self.is_outgrown = False
        self._host = host
        self._alarms = alarms
        self.answering = Answering(spec.name, host)
        # Where all of this life runs, from `open` on.
        self._life: trio.Nursery
        # The wire of this life; replaced once where the first died of the probe.
        self._wire: Wire | None = None
        self._strikes = Strikes()
        # What it is listened to for; outlives this life.
        self.listening = listening
        # Whether the server forgot the wire session, and the next is being begun.
        self._is_renewing = False
        # Answers that may still be good (modern era); its notifications wipe them out.
        self.cache = ResponseCache()
        # What it listed; whoever lives this life fetches it and keeps it fresh.
        self.lists = Lists(self, registry, page_timeout=settings.connect_timeout)

    # ── control plane ────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, life: trio.Nursery) -> ServerInfo:
        """Open the wire and shake hands; what runs from then on runs in `life`, which ends it by its end.

        Raises:
            TransportError: the wire never came up, or broke; also by way of `life`.
            ProtocolError, RpcError, AuthError: the handshake was refused.

        Cancellation:
            Ends nothing by itself: whoever gives up on it cancels `life`. Then calls in flight fail at once and the
            transport ends in order, shielded and bounded.
        """
        self._life = life
        wire, info = await self._open_wire(self._pinned_era)
        if info is None:  # died of the probe: a verdict, not a crash (A02)
            wire, info = await self._open_wire(Era.LEGACY)
            assert info is not None, "a pinned era is not probed"
        self.info = info
        await self.listening.begin(life, wire, info, self.lists)
        if wire.transport.kind in PINGED and info.era is Era.LEGACY:
            pace = {"interval": self._settings.ping_interval, "timeout": self._settings.ping_timeout}
            life.start_soon(partial(keep_pinging, wire, self._strikes, **pace))
        return info

    async def _open_wire(self, pinned: Era | None) -> tuple[Wire, ServerInfo | None]:
        """Open a wire and shake hands; without info when nothing of it is left and another one is to be tried."""
        transport = self._open_transport()
        settings = self._session_settings(pinned, is_http=transport.is_exchange)
        wire = Wire(self.spec.name, transport, settings, self._life, self._alarms, self.answering, self)
        self._wire = wire
        await wire.open()
        return wire, await wire.shake_hands(wire.session.open)

    async def _renew(self, wire: Wire) -> None:
        """Begin a new wire session for the one that the server forgot; calls wait meanwhile (S205, fault 32)."""
        logger.debug("[MCP:%s] = the wire session expired", self.spec.name)
        try:
            with wire.calls.resting(Budget(self._settings.connect_timeout, trio.current_time())):
                self.info = await wire.shake_hands(wire.session.renew)
        except McpActorsError as refused:
            wire.end(refused)  # and no call learns less than that
            return
        except trio.TooSlowError:
            wire.give_up("the server forgot the session and begins no other")
            return
        self._is_renewing = False
        self.lists.mark_all()
        wire.calls.release()
        self.listening.renewed()

    def _session_settings(self, pinned: Era | None, *, is_http: bool) -> SessionSettings:
        # Silence means legacy on message streams only, and never to a server that was modern before (spec_client 3.3).
        probe_timeout = None if is_http or self._remembered_era is Era.MODERN else self._settings.probe_timeout
        return SessionSettings(
            is_http=is_http,
            pinned_era=pinned,
            remembered_era=self._remembered_era,
            session_expiry=SessionExpiry(self._settings.session_expiry),
            probe_timeout=probe_timeout,
            capabilities=self.answering.capabilities,
            handled_methods=frozenset(self._host.handlers),
        )

    # ── what its wire tells (wire.Owner) ─────────────────────────────────────────────────────────────────────────────

    def list_changed(self, kind: str) -> None:
        """Fetch that list again."""
        self.cache.invalidate_list(kind)
        self.lists.mark(kind)

    def resource_updated(self, uri: str) -> None:
        """Tell who watches it."""
        self.cache.invalidate_resource(uri)
        self.listening.resource_updated(uri)

    def session_expired(self) -> None:
        """Renew it, once."""
        if self._wire is not None and not self._is_renewing:
            self._is_renewing = True
            self._life.start_soon(self._renew, self._wire)

    def listens(self, slot: Slot, honoured: ListenFilter) -> None:
        """From now on nothing of what is honoured is missed; what changed before is fetched."""
        self.listening.acknowledged(slot, honoured)

    def heard(self, event: Event[Slot]) -> None:
        """Pass on log messages, and that a page is done; nobody here waits for more."""
        if isinstance(event, LogReceived):
            self.listening.log_received(event)
        elif isinstance(event, ElicitationCompleted) and self._host.page_done is not None:
            self._host.page_done(self.spec.name, event.elicitation_id)
        logger.debug("[MCP:%s] < %s", self.spec.name, type(event).__name__)

    # ── data plane ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | Budget | None = None,
        on_progress: ProgressCallback | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """Ask the server and wait for its answer.

        Args:
            method: such as "tools/call".
            params: JSON object without the era's ``_meta`` fields.
            timeout: seconds for all of it, rounds and repetitions included, but for the time that a person takes; then
                it is given up and the server is told. None: as this server's calls (S199, S200).
            on_progress: called in this task with the newest progress.
            headers: further mirrored values, for transports that have headers.

        Returns:
            The result, an undecoded JSON object.

        Raises:
            LocalProtocolError: this is no request, or none that the era has; nothing was sent.
            RpcError: the server answered with an error.
            TransportError: the wire broke or was closed; the call may or may not have run.
            RemoteProtocolError: the answer broke the rules, or cannot come any more.
            trio.TooSlowError: a clock ran out; the message names it.

        Cancellation:
            Safe. The server is told once; nothing is left pending.

        Source:
            S147, S197-S204, S209, B17-B20.
        """
        require_object("params", params or {})
        if not isinstance(method, str) or not method:
            raise LocalProtocolError(reason="a method is a text")
        request = Request(method, params, self.budget(timeout), self.timeouts, on_progress, headers)
        with self.users:
            complete = await ask_fully(self, request)
        self.served += 1
        return complete.result

    def budget(self, timeout: float | Budget | None) -> Budget:
        """The time of a call that begins now; None: what the server's calls may take. One that began keeps its own."""
        if isinstance(timeout, Budget):
            return timeout
        return Budget(self.timeouts.wall if timeout is None else timeout, trio.current_time())

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clocks of all calls while a person is asked. See `Calls.paused`."""
        assert self._wire is not None, "its calls have begun"
        return self._wire.calls.paused()

    def resting(self, budget: Budget) -> AbstractContextManager[None]:
        """Hold a call to its budget while it does something else than to wait for an answer. See `Calls.resting`."""
        assert self._wire is not None, "its call has begun"
        return self._wire.calls.resting(budget)

    async def exchange(self, request: Request) -> bytes:
        """Send one request, once, and wait for its answer; that alone is no proof of health. See `request`."""
        wire = self._usable_wire()
        try:
            result = await wire.calls.ask(request)
        except McpActorsError as refused:
            error = self.judged(refused)
            error.server = self.spec.name
            if wire.gone is None and is_shut_out(error, has_helper=self.spec.has_headers_helper):
                wire.end(error)
            elif wire.gone is None and self.info is not None and is_outgrown(error, self.info.era):
                self.is_outgrown = True
                wire.give_up(f"the server has changed its era: {error.describe()}")
            elif self._strikes.note(error) and wire.gone is None:
                wire.give_up(f"three errors in a row, the last: {error.describe()}")
            if error is refused:
                raise
            raise error from refused
        self._strikes.note(None)
        return result

    def judged(self, error: ErrorT) -> ErrorT | CredentialsRefused:
        """What an error means for this server: where its entry brings credentials, nobody can log in (S085, S092)."""
        target = self.spec.target
        if not isinstance(error, AuthRequired) or not isinstance(target, RemoteTarget):
            return error
        if target.headers_helper is not None or not target.has_credentials:
            error.remedy = error.remedy or remedy_for("needs-auth", self.spec)
            return error
        return CredentialsRefused(server=self.spec.name, said=error.said, http_status=error.http_status)

    def roots_changed(self) -> None:
        """Tell the server that the host's roots changed, where it is to be told (F12)."""
        if self.info is not None and may_send(ROOTS_CHANGED, self.info, self._host.capabilities):
            self.notify(ROOTS_CHANGED)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification; nothing is waited for.

        None goes out on a connection that has ended, or while its next wire session is begun: that one knows nothing.
        """
        if self._wire is not None and self.is_alive and self._wire.session.state is SessionState.READY:
            self._wire.post(self._wire.session.notify(method, params))

    async def set_log_level(self, level: str) -> None:
        """Have the server send log messages of at least this level. See `Listening.set_log_level`."""
        wire, info = self._usable_wire(), self.info
        if info is None:
            raise TransportClosed(server=self.spec.name)
        await self.listening.set_log_level(level, wire, info)

    def _usable_wire(self) -> Wire:
        if self._wire is None:
            raise TransportClosed(server=self.spec.name)
        if self._wire.gone is not None:
            raise evolve(self._wire.gone)
        return self._wire

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, error: McpActorsError) -> None:
        """Take no more calls and fail those in flight. The first reason stays."""
        if self._wire is not None:
            self._wire.close(error)

    @property
    def is_alive(self) -> bool:
        """Whether who uses it may go on asking: READY and not closed."""
        return self.info is not None and self._wire is not None and self._wire.gone is None

    @property
    def is_open(self) -> bool:
        """Whether it takes new calls: alive, and not about to make room for another generation."""
        return self.is_alive and not self.users.are_leaving

    @property
    def transport(self) -> str:
        """How messages move: as configured, or, where nobody said, as was found (fault 34)."""
        target = self.spec.target
        is_guess = isinstance(target, RemoteTarget) and target.is_guess
        return self._wire.transport.kind if is_guess and self._wire is not None else self.spec.transport

    @property
    def wants_tasks(self) -> bool:
        """Whether the host takes tasks where a server offers them."""
        return self._host.wants_tasks

    @property
    def is_mirroring(self) -> bool:
        """Whether marked arguments travel as headers as well (B03)."""
        return self._wire is not None and mirrors_arguments(self.info, is_http=self._wire.transport.is_exchange)

    def diagnostics(self) -> Diagnostics:
        """What the transport tells of itself; empty before there is one."""
        return Diagnostics() if self._wire is None else self._wire.transport.diagnostics()

    @property
    def secrets(self) -> Sequence[str]:
        """What the server knows us by; see `transports.base.Transport`."""
        return () if self._wire is None else self._wire.transport.secrets

    @property
    def faults(self) -> tuple[str, ...]:
        """The last few things that the server did wrong and went on."""
        return () if self._wire is None else self._wire.calls.faults_since(0.0)

    def __repr__(self) -> str:
        state = "NEW" if self.info is None else "READY " + self.info.revision
        if self._wire is not None and self._wire.gone is not None:
            state = "GONE"
        active = 0 if self._wire is None else len(self._wire.calls)
        return f"<Connection {self.spec.name} {state} | calls: {active} active, {self.served} done>"
