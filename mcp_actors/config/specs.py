"""Owns `ServerSpec`: what to run, desired and frozen.

What this is not: how to read it from a file (`formats`), nor what became of it (`actors.lifecycle`).
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from attrs import evolve, field

from mcp_actors.errors import ConfigError
from mcp_actors.origins import place_of
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.jsontypes import Json

__all__ = [
    "LIBRARY_RESTARTS",
    "SERVICE_RESTARTS",
    "Batch",
    "EraChoice",
    "InProcessTarget",
    "RemoteTarget",
    "RestartDefaults",
    "RestartPolicy",
    "RestartType",
    "Scope",
    "ServerSpec",
    "StdioTarget",
    "Target",
    "TransportName",
]


class EraChoice(enum.StrEnum):
    """Which protocol era to speak to a server: found by evidence, or pinned (A07)."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "modern"


class Scope(enum.StrEnum):
    """Where a definition comes from (S008)."""

    PLUGIN = "plugin"
    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    ENTERPRISE = "enterprise"
    CLAUDEAI = "claudeai"
    DYNAMIC = "dynamic"


class TransportName(enum.StrEnum):
    """How messages move (S006); the members behind `WS` cannot be named in files (S007).

    A program of this machine is `STDIO`, a service `HTTP`; `SSE` is for old servers, `WS` for those that push (S044).
    """

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"
    WS = "ws"
    SSE_IDE = "sse-ide"
    WS_IDE = "ws-ide"
    SDK = "sdk"


class Batch(enum.StrEnum):
    """Class of server for the connect limits: spawning and opening sockets cost differently (S105)."""

    LOCAL = "local"
    REMOTE = "remote"


class RestartType(enum.StrEnum):
    """When a dead child is started again (OTP).

    `permanent`: always. `transient`: unless it ended in order. `temporary`: not by itself; the next call starts it.
    """

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    TEMPORARY = "temporary"


@frozen
class RestartPolicy:
    """How eagerly a dead child is started again. Durations are seconds.

    More than `intensity` starts within `period` give up; so do `max_tries` failed tries in a row (S116). A connection
    has proved itself once a call was answered or it stayed up for `stable_after`; only then the counters start anew.
    """

    # Ten starts in the first minute (fault 91): the first try and all five retries of the default backoff fit in, and
    # five tries of a server that dies twice in each, of the era probe and when it is asked as a legacy one.
    intensity: int = 10
    period: float = 60.0
    backoff_first: float = 1.0
    backoff_factor: float = 2.0
    backoff_max: float = 30.0
    max_tries: int = 5
    stable_after: float = 60.0
    # Spread each backoff over (0, backoff]; None: as the runtime does (S116, fault 90).
    has_jitter: bool | None = None
    # After giving up, probe again every so many seconds; None: as the runtime does (S118).
    park_probe: float | None = None


@frozen
class RestartDefaults:
    """What holds for servers whose definition does not say; by default a library's, which mostly acts when asked."""

    local: RestartType = RestartType.TEMPORARY
    remote: RestartType = RestartType.PERMANENT
    has_jitter: bool = False
    # Seconds between probes of a server that was given up; None: only when asked.
    park_probe: float | None = None

    def type_of(self, batch: Batch) -> RestartType:
        """The restart type of a batch."""
        return self.remote if batch is Batch.REMOTE else self.local

    def fill(self, spec: ServerSpec) -> ServerSpec:
        """Give the spec with everything said about its restarts.

        Source:
            S116-S118, S120, and the decisions about them.
        """
        own = spec.restart_policy
        policy = evolve(
            own,
            has_jitter=self.has_jitter if own.has_jitter is None else own.has_jitter,
            park_probe=self.park_probe if own.park_probe is None else own.park_probe,
        )
        return evolve(spec, restart_type=spec.restart_type or self.type_of(spec.batch), restart_policy=policy)


LIBRARY_RESTARTS: Final = RestartDefaults()
# Of a service, where no call may come for hours: programs that died come back, the tries of many servers are spread,
# and one that was given up is looked at every five minutes (a number of hermes-agent).
SERVICE_RESTARTS: Final = RestartDefaults(local=RestartType.TRANSIENT, has_jitter=True, park_probe=300.0)


def _require(is_sound: bool, what: str) -> None:
    if not is_sound:
        raise ConfigError(reason=what)


def _are_texts(values: object) -> bool:
    if isinstance(values, Mapping):
        return _are_texts(tuple(values)) and _are_texts(tuple(values.values()))
    return isinstance(values, tuple | list) and all(isinstance(value, str) for value in values)


@frozen
class StdioTarget:
    """A program to start. All values are expanded; `environment` is added to the minimal base (fault 101)."""

    command: str
    # Not in the repr: people pass tokens as arguments (S354).
    args: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    # Directory to start in; None: the runtime's own.
    cwd: str | None = None
    transport = TransportName.STDIO

    def __attrs_post_init__(self) -> None:
        _require(isinstance(self.command, str), "a command is a text")
        _require(isinstance(self.args, tuple | list) and _are_texts(self.args), "arguments are a tuple of texts")
        is_environment = isinstance(self.environment, Mapping) and _are_texts(self.environment)
        _require(is_environment, "an environment maps texts to texts")
        _require(isinstance(self.cwd, str | None), "a working directory is a text")


@frozen
class RemoteTarget:
    """An endpoint to talk to. All values are expanded."""

    url: str = field(repr=lambda url: repr(place_of(url)))
    transport: TransportName = TransportName.HTTP
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    # Shell command that prints more headers at every connect (S090).
    headers_helper: str | None = field(default=None, repr=False)
    # Root of the plugin that brings it along; None: no plugin does.
    plugin_root: str | None = None
    # Where that plugin keeps what outlives an update.
    plugin_data: str | None = None
    # Whether the helper may run: one of a repository needs a trusted folder, or a yes to its definition (S090).
    is_helper_trusted: bool = True
    # True: nobody said which transport this is, so the older one may be tried once (fault 34).
    is_guess: bool = False

    def __attrs_post_init__(self) -> None:
        _require(isinstance(self.url, str), "a url is a text")
        _require(isinstance(self.transport, TransportName), "a transport is a TransportName")
        _require(isinstance(self.headers, Mapping) and _are_texts(self.headers), "headers map texts to texts")
        _require(isinstance(self.headers_helper, str | None), "a headers helper is a text")

    @property
    def has_credentials(self) -> bool:
        """Whether the entry itself says who we are: then no login of ours plays a part (S092, S255, fault 102)."""
        is_editor = self.transport in (TransportName.SSE_IDE, TransportName.WS_IDE)  # its lock file has the token
        has_header = any(name.lower() == "authorization" for name in self.headers)
        if is_editor or has_header or self.headers_helper is not None:
            return True
        try:
            return urlsplit(self.url).username is not None
        except ValueError:  # an address that no request will go to
            return False


@frozen
class InProcessTarget:  # type: ignore[explicit-any] # of `serve`
    """A server in this process: `serve` is given its end of a link and serves until that ends.

    ``await link.receive()`` gives the next message of the fleet, the bytes of one JSON text, and raises
    ``trio.EndOfChannel`` when the fleet leaves; ``await link.send(data)`` sends one to it.
    """

    serve: Callable[..., Awaitable[None]]  # type: ignore[explicit-any] # the link's class is a floor above
    transport = TransportName.SDK

    def __attrs_post_init__(self) -> None:
        _require(callable(self.serve), "a server in this process is a coroutine function")


Target: TypeAlias = StdioTarget | RemoteTarget | InProcessTarget


@frozen
class ServerSpec:
    """One server that should run. Its name is its key everywhere."""

    name: str
    target: Target
    scope: Scope = Scope.DYNAMIC
    # File or label that it came from, for diagnostics.
    source: str = "<program>"
    era: EraChoice = EraChoice.AUTO
    # None: by transport, see `restart`.
    restart_type: RestartType | None = None
    restart_policy: RestartPolicy = RestartPolicy()
    # Seconds for one connect attempt; None: the runtime's setting (S107, fault 89).
    connect_timeout: float | None = None
    # Seconds for one call, whatever its progress; None: the runtime's setting (S200).
    call_timeout: float | None = None
    # Seconds to the first byte of an HTTP answer; None: the runtime's setting (S076).
    request_timeout: float | None = None
    # Its tools are always offered in full, never deferred (S003).
    always_load: bool = False
    is_enabled: bool = True
    # Why it is not enabled, a reason code: user, policy, pending-approval, rejected, not-configured.
    disabled_reason: str = "user"
    # The same in words, where there is more to say: the rule of a policy and its file.
    disabled_detail: str = ""
    # The entry as written, unexpanded: the only form that may be shown (S030). Maps key -> JSON.
    raw: Mapping[str, Json] = field(factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        _require(isinstance(self.name, str) and self.name != "", "a server's name is a text")
        _require(isinstance(self.target, Target), "a server's target is a StdioTarget, RemoteTarget or InProcessTarget")
        for limit in (self.connect_timeout, self.call_timeout, self.request_timeout):
            is_time = limit is None or (isinstance(limit, int | float) and limit >= 0)
            _require(is_time, "a timeout is a number of seconds")

    @property
    def transport(self) -> TransportName:
        """How messages move."""
        return self.target.transport

    @property
    def batch(self) -> Batch:
        """Which connect limit it counts against (S105, S389)."""
        return Batch.REMOTE if isinstance(self.target, RemoteTarget) else Batch.LOCAL

    @property
    def has_headers_helper(self) -> bool:
        """Whether a program prints its headers (S090)."""
        return isinstance(self.target, RemoteTarget) and self.target.headers_helper is not None

    @property
    def restart(self) -> RestartType:
        """Restart type: its own, else by transport as in a library (S117, S120)."""
        return self.restart_type or LIBRARY_RESTARTS.type_of(self.batch)

    def fingerprint(self) -> str:
        """Hash of all that decides how the server runs, without scope and source (S038, S114). Hex, 64 characters."""
        target = self.target
        if isinstance(target, StdioTarget):
            what: object = ["stdio", target.command, target.args, sorted(target.environment.items()), target.cwd]
        elif isinstance(target, RemoteTarget):
            what = [
                target.transport,
                target.url,
                sorted(target.headers.items()),
                target.headers_helper,
                target.plugin_root,
                target.plugin_data,
                target.is_helper_trusted,
                target.is_guess,
            ]
        else:
            what = ["sdk", id(target.serve)]
        times = [self.connect_timeout, self.call_timeout, self.request_timeout]
        rest = [self.era, self.restart, times, self.always_load, repr(self.restart_policy)]
        return hashlib.sha256(json.dumps([what, rest], ensure_ascii=False).encode()).hexdigest()
