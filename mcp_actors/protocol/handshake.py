"""Owns the decisions of the handshake: which era a server is of, by evidence, and when to give up.

What this is not: messages or time. `session` sends what a step says and reports what came of it.

Rules (spec_client 3.3-3.5).
Rule 1: in auto mode the first thing said is ``server/discover`` at our newest modern revision (A01).
Rule 2: a modern revision that both speak means modern, named in a result or in error -32022, and no falling back (A03).
Rule 3: on stdio-like wires every other error, silence and a death mean legacy (A02). No rule is keyed to one code.
Rule 4: on HTTP a refusal that says nothing modern means legacy; login, outage and silence say nothing (A04, A05).
Rule 5: everything is tried a counted number of times: two probes, so that a server may name the very revision that it
just refused, or turn out modern late.
Rule 6: a pinned era is never left.
Rule 7: a remembered legacy era spares the probe, no more: a refused ``initialize`` is followed by the probe, once,
unless it speaks of a login or an outage, which say nothing of an era (A06).

Source: S094, S111.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.errors import (
    AuthError,
    ConnectFailed,
    McpActorsError,
    RemoteProtocolError,
    RpcError,
    TransportError,
    UnsupportedRevision,
)
from mcp_actors.protocol.jsonrpc import HEADER_MISMATCH, MISSING_CAPABILITY, decode_object
from mcp_actors.protocol.outbound import META_PREFIX
from mcp_actors.protocol.recovery import is_version_error, supported_by
from mcp_actors.protocol.refusals import is_outage, read_refusal, rpc_error_in
from mcp_actors.protocol.revisions import (
    LATEST_LEGACY,
    LATEST_MODERN,
    LEGACY,
    MODERN,
    era_of,
    named_revisions,
    newest_mutual,
)
from mcp_actors.protocol.types import Era, ServerInfo
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import Refusal

__all__ = ["Fail", "Finish", "Handshake", "Initialize", "Probe", "Reopen", "Step"]

# Only modern servers know these; on HTTP they are evidence, on stdio any code may come from anybody.
_MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY})
_MAX_PROBES: Final = 2
_MAX_INITIALIZES: Final = 3


@frozen
class Probe:
    """Send ``server/discover`` at this modern revision."""

    revision: str


@frozen
class Initialize:
    """Send ``initialize`` offering this revision; `fell_back` says by what evidence, None when it was pinned."""

    revision: str
    fell_back: str | None = None


@frozen
class Reopen:
    """The probe killed the transport: open another one, pinned to legacy."""

    reason: str


@frozen(eq=False)
class Finish:
    """Both sides agree."""

    info: ServerInfo


@frozen(eq=False)
class Fail:
    """It cannot end well on this transport; the class of `error` says whether another try can help."""

    error: McpActorsError


Step: TypeAlias = Probe | Initialize | Reopen | Finish | Fail


@define(eq=False)
class Handshake:
    """The state of one handshake: what was tried and what it showed."""

    is_http: bool
    pinned_era: Era | None = None
    # What an earlier handshake found; forgotten when it is refused.
    remembered_era: Era | None = None
    # Whether a probe was said last, and not ``initialize``.
    is_probing: bool = field(default=False, init=False)
    _probes: int = field(default=0, init=False)
    _initializes: int = field(default=0, init=False)
    # The legacy revision on offer.
    _offered: str = field(default=LATEST_LEGACY, init=False)
    # By what evidence the server is legacy; shown when `initialize` fails as well (fault 34).
    _fell_back: str | None = field(default=None, init=False)

    def begin(self) -> Step:
        """Decide what to say first."""
        era = self.pinned_era or self.remembered_era
        return self._initialize(LATEST_LEGACY) if era is Era.LEGACY else self._probe(LATEST_MODERN)

    def answered(self, answer: bytes | McpActorsError) -> Step:
        """Judge the answer to what was said last: an undecoded result, or the error it came to."""
        result: JsonObject | McpActorsError
        try:
            result = decode_object(answer) if isinstance(answer, bytes) else answer
        except RemoteProtocolError as exc:
            result = exc
        if isinstance(result, McpActorsError):
            return self.probe_failed(result) if self.is_probing else self._doubt(self.initialize_failed(result))
        return self.probe_answered(result) if self.is_probing else self._doubt(self.initialize_answered(result))

    def refused(self, refusal: Refusal) -> Step:
        """Judge an HTTP answer, to what was said last, that is no message."""
        return self.probe_refused(refusal) if self.is_probing else self._doubt(self.initialize_refused(refusal))

    # ── what came of a probe ────────────────────────────────────────────────────────────────────────────────────────

    def probe_answered(self, result: JsonObject) -> Step:
        """Judge the result of ``server/discover``."""
        supported = named_revisions(result.get("supportedVersions"))
        revision = newest_mutual(MODERN, supported)
        if revision is None:
            return self._without_mutual_modern(supported, "its discover result names no modern revision")
        return Finish(_server_info(result, revision, Era.MODERN))

    def probe_failed(self, error: McpActorsError) -> Step:
        """Judge an error that answers the probe."""
        if is_version_error(error):
            supported = supported_by(error)
            revision = newest_mutual(MODERN, supported)
            if revision is not None and self._probes < _MAX_PROBES:
                return self._probe(revision)
            if revision is not None or (self.is_http and not supported):
                return Fail(UnsupportedRevision(offered=MODERN, supported=supported))
            return self._without_mutual_modern(supported, error.describe())
        if self.is_http and isinstance(error, RpcError) and error.code in _MODERN_CODES:
            return Fail(error)
        return self._fall_back(f"the probe was answered with {error.describe()}")

    def probe_refused(self, refusal: Refusal) -> Step:
        """Judge an HTTP answer to the probe that is no message."""
        status = refusal.status
        error = read_refusal(refusal, is_connecting=True)
        if status in (401, 403) or is_outage(status) or 300 <= status < 400:
            return Fail(error)
        in_band = rpc_error_in(refusal)
        if in_band is not None:
            return self.probe_failed(in_band)
        if status < 300 and refusal.body:
            return Fail(error)  # a page instead of MCP (fault 37)
        return self._fall_back(f"the probe failed: {error.describe()}")

    def probe_unanswered(self) -> Step | None:
        """Judge silence: legacy on stdio-like wires, an outage that the connect timeout ends elsewhere."""
        if self.is_http or self.pinned_era is not None:
            return None
        return self._fall_back("the probe was not answered in time")

    def probe_ended_wire(self) -> Step | None:
        """Judge the end of the transport while the probe was out: a verdict on stdio-like wires, not a crash."""
        if self.is_http or self.pinned_era is not None:
            return None
        return Reopen("the server ended when it was probed")

    # ── what came of initialize ─────────────────────────────────────────────────────────────────────────────────────

    def initialize_answered(self, result: JsonObject) -> Step:
        """Judge the result of ``initialize``: any legacy revision that we know will do (fault 78)."""
        revision = result.get("protocolVersion")
        if isinstance(revision, str) and revision in LEGACY:
            return Finish(_server_info(result, revision, Era.LEGACY))
        named = (revision[:40] or "an empty text",) if isinstance(revision, str) else ()
        return Fail(UnsupportedRevision(offered=(self._offered,), supported=named))

    def initialize_failed(self, error: McpActorsError) -> Step:
        """Judge an error that answers ``initialize``."""
        supported = supported_by(error)
        modern = newest_mutual(MODERN, supported)
        # The probe timed out here but was read there (3.4.6): ask again at a version that it names.
        if is_version_error(error) and modern and self.pinned_era is None and self._probes < _MAX_PROBES:
            return self._probe(modern)
        legacy = newest_mutual(LEGACY, supported)
        if legacy is not None and legacy != self._offered and self._initializes < _MAX_INITIALIZES:
            return self._initialize(legacy)
        if is_version_error(error) or supported:
            return Fail(UnsupportedRevision(offered=(self._offered,), supported=supported, reason=error.describe()))
        return Fail(error)

    def initialize_refused(self, refusal: Refusal) -> Step:
        """Judge an HTTP answer to ``initialize`` that is no message. 400, 404 and 405 may be an HTTP+SSE server."""
        error = read_refusal(refusal, is_connecting=True)
        if isinstance(error, RpcError):
            return self.initialize_failed(error)
        # Twice the same answer is told once.
        if isinstance(error, ConnectFailed) and self._fell_back and error.reason not in self._fell_back:
            error.reason = f"{error.reason} (before that: {self._fell_back})"
        return Fail(error)

    # ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _doubt(self, step: Step) -> Step:
        """Probe after all where ``initialize`` was said from memory and failed (rule 7)."""
        if not isinstance(step, Fail) or self.pinned_era is not None or self.remembered_era is not Era.LEGACY:
            return step
        if isinstance(step.error, AuthError) or (isinstance(step.error, TransportError) and step.error.can_retry):
            return step
        self.remembered_era = None
        return self._probe(LATEST_MODERN) if not self._probes else step

    def _probe(self, revision: str) -> Step:
        self._probes += 1
        self.is_probing = True
        return Probe(revision)

    def _initialize(self, revision: str, fell_back: str | None = None) -> Step:
        self._initializes += 1
        self.is_probing = False
        self._offered = revision
        return Initialize(revision, fell_back)

    def _fall_back(self, reason: str) -> Step:
        if self.pinned_era is Era.MODERN:
            return Fail(UnsupportedRevision(offered=MODERN, reason=f"pinned to the modern era, but {reason}"))
        self._fell_back = reason
        return self._initialize(LATEST_LEGACY, reason)

    def _without_mutual_modern(self, supported: Sequence[str], reason: str) -> Step:
        """Choose when no modern revision is shared: legacy if the server has any of it or has nothing modern."""
        speaks_legacy = newest_mutual(LEGACY, supported) is not None
        if speaks_legacy or not any(era_of(revision) is Era.MODERN for revision in supported):
            return self._fall_back(reason)
        return Fail(UnsupportedRevision(offered=MODERN, supported=supported))


def _server_info(result: JsonObject, revision: str, era: Era) -> ServerInfo:
    meta = result.get("_meta")
    implementation = meta.get(META_PREFIX + "serverInfo") if isinstance(meta, dict) else None
    if not isinstance(implementation, dict):
        implementation = result.get("serverInfo")  # legacy, and early modern servers
    capabilities = result.get("capabilities")
    instructions = result.get("instructions")
    return ServerInfo(
        revision=revision,
        era=era,
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        implementation=implementation if isinstance(implementation, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )
