"""Owns every exception of the package. The name answers *whose fault it was*.

::

    McpActorsError                        base; every error has .server (str | None)
    ├── ConfigError                       file, key, reason, remedy
    │   └── ServerNotAllowed              policy said no
    ├── TransportError                    the wire
    │   ├── ConnectFailed                 never came up
    │   ├── TransportClosed               we closed it
    │   └── TransportBroken               they, or the world, did
    ├── ProtocolError                     abstract; cannot be raised itself
    │   ├── LocalProtocolError            we broke the rules: a bug
    │   └── RemoteProtocolError           they broke the rules
    │       └── UnsupportedRevision       offered, supported
    ├── RpcError                          the peer answered with an error: code, message, data
    ├── AuthError
    │   ├── AuthRequired                  a person must log in
    │   ├── AuthFailed                    tried and refused
    │   └── CredentialsRefused            those that configuration brings along: no login helps
    ├── CallError
    │   ├── UnknownServer · UnknownTool · UnknownPrompt   with the nearest names
    │   ├── ServerNotReady                current state, reason, what to do
    │   ├── ElicitationDeclined
    │   ├── NotWatched                    the server does not tell when a resource changes
    │   └── TaskEnded                     cancelled or forgotten by the server
    └── ActorError
        ├── ActorGone                     mailbox closed; .cause is why
        ├── MailboxFull                   only from tell_nowait
        └── GaveUp                        restart intensity exceeded; .failures

What this is not: timeouts. Those are trio's own ``TooSlowError``.

Rules. Fields first: ``__init__`` takes data and ``__str__`` is computed, so that nothing is formatted before somebody
reads it. No field ever holds a secret (S354). A class without fields of its own needs no decorator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import field

from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ActorError",
    "ActorGone",
    "AuthError",
    "AuthFailed",
    "AuthRequired",
    "CallError",
    "ConfigError",
    "ConnectFailed",
    "CredentialsRefused",
    "ElicitationDeclined",
    "GaveUp",
    "LocalProtocolError",
    "MailboxFull",
    "McpActorsError",
    "NotWatched",
    "ProtocolError",
    "RemoteProtocolError",
    "RpcError",
    "ServerNotAllowed",
    "ServerNotReady",
    "TaskEnded",
    "TransportBroken",
    "TransportClosed",
    "TransportError",
    "UnknownPrompt",
    "UnknownServer",
    "UnknownTool",
    "UnsupportedRevision",
]


def _shown(name: str) -> str:
    """A name as it stands in a line of text: whoever wrote the file chose it, so it may break no line (S346)."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


@define(eq=False, kw_only=True, str=False, slots=False)
class McpActorsError(Exception):
    """Anything that this package raises on purpose."""

    # Name of the server it concerns, where one is known; whoever learns it first fills it in.
    server: str | None = None

    def describe(self) -> str:
        """What happened, in one line, without the server's name."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{_shown(self.server)}: {self.describe()}" if self.server else self.describe()


@define(eq=False, kw_only=True, str=False, slots=False)
class ConfigError(McpActorsError):
    """Configuration that cannot be used as written.

    `file` is a path or a label such as ``<--config 2>``; `key` a dotted path inside it; `line` and `column` count
    from 1.
    """

    reason: str
    file: str | None = None
    key: str | None = None
    remedy: str | None = None
    line: int | None = None
    column: int | None = None
    # One of S034: unknown_type, url_missing_type, invalid_config, reserved_name; ours besides: unset_variable,
    # unreadable.
    category: str = "invalid_config"

    def describe(self) -> str:
        place = self.file or "configuration"
        if self.line is not None:
            place += f":{self.line}:{self.column or 1}"
        if self.key:
            place += f": {_shown(self.key)}"
        return f"{place}: {self.reason}" + (f" ({self.remedy})" if self.remedy else "")


@define(eq=False, kw_only=True, str=False, slots=False)
class ServerNotAllowed(ConfigError):
    """Policy forbids this server; `rule` is the rule that said so."""

    rule: str | None = None


@define(eq=False, kw_only=True, str=False, slots=False)
class TransportError(McpActorsError):
    """The wire. `stderr_tail` holds the last lines a child wrote, oldest first.

    `can_retry` is false where the same attempt would fail the same way: no such command, a plain 404 (S413).
    `retry_after` is the pause in seconds that the peer asked for.
    """

    reason: str
    can_retry: bool = True
    exit_status: int | None = None
    http_status: int | None = None
    retry_after: float | None = None
    stderr_tail: Sequence[str] = ()

    def describe(self) -> str:
        text = self.reason
        if self.stderr_tail:
            text += "\n" + "\n".join(f"  | {line}" for line in self.stderr_tail)
        return text


@define(eq=False, kw_only=True, str=False, slots=False)
class ConnectFailed(TransportError):
    """The connection never came up."""

    # Reason code of what failed before anything was reached; None: what else is known of it says which.
    code: str | None = None


@define(eq=False, kw_only=True, str=False, slots=False)
class TransportClosed(TransportError):
    """We closed it."""

    reason: str = "the connection was closed by us"


class TransportBroken(TransportError):
    """They, or the world, broke it. Calls in flight may or may not have run."""


@define(eq=False, kw_only=True, str=False, slots=False)
class ProtocolError(McpActorsError):
    """Abstract: somebody broke the rules of MCP."""

    reason: str

    def __attrs_pre_init__(self) -> None:
        if type(self) is ProtocolError:
            raise TypeError("ProtocolError is abstract: raise LocalProtocolError or RemoteProtocolError")

    def describe(self) -> str:
        return self.reason


class LocalProtocolError(ProtocolError):
    """We broke the rules: a bug here, or an illegal command. Nothing was changed by it."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the rules."""


@define(eq=False, kw_only=True, str=False, slots=False)
class UnsupportedRevision(RemoteProtocolError):
    """No revision that both sides speak. `offered` is ours, `supported` what the peer named (may be empty)."""

    offered: Sequence[str] = ()
    supported: Sequence[str] = ()
    reason: str = "no common protocol revision"

    def describe(self) -> str:
        theirs = ", ".join(self.supported) or "none that we know"
        return f"{self.reason}: we offered {', '.join(self.offered)}; the server supports {theirs}"


@define(eq=False, kw_only=True, str=False, slots=False)
class RpcError(McpActorsError):
    """The peer answered a request with a JSON-RPC error. `data` is whatever it sent along (decoded JSON).

    `http_status` is the status it came with where that was not a success: 404 with -32001 is a lost session (S405).
    """

    code: int
    message: str
    data: object = field(default=None, repr=False)
    http_status: int | None = None

    def describe(self) -> str:
        # The TypeScript SDK puts the code into the message as well.
        return f"error {self.code}: {self.message.removeprefix(f'MCP error {self.code}: ')}"


@define(eq=False, kw_only=True, str=False, slots=False)
class AuthError(McpActorsError):
    """Who we are was not accepted."""

    reason: str

    def describe(self) -> str:
        return self.reason


@define(eq=False, kw_only=True, str=False, slots=False)
class AuthRequired(AuthError):
    """A person must log in; `remedy` names the command."""

    reason: str = "the server asks for a login"
    remedy: str | None = None
    # What the server said with it; untrusted.
    said: str = ""
    http_status: int | None = None

    @property
    def told(self) -> str:
        """What happened, for a place that tells the remedy by itself."""
        return self.reason + (f": {self.said}" if self.said else "")

    def describe(self) -> str:
        return self.told + (f" ({self.remedy})" if self.remedy else "")


class AuthFailed(AuthError):
    """Credentials were tried and refused."""


@define(eq=False, kw_only=True, str=False, slots=False)
class CredentialsRefused(AuthError):
    """The server refused the credentials that its configuration brings along; only who wrote them can help (S092)."""

    reason: str = "the server refused the credentials of its configuration"
    remedy: str = "the credentials in its entry are not accepted: correct them, or take them out and log in"
    # What the server said with it; untrusted.
    said: str = ""
    http_status: int | None = None

    def describe(self) -> str:
        status = f" (HTTP {self.http_status})" if self.http_status else ""
        return f"{self.reason}{status}" + (f": {self.said}" if self.said else "")


class CallError(McpActorsError):
    """A call could not be made or finished."""


@define(eq=False, kw_only=True, str=False, slots=False)
class _Unknown(CallError):
    name: str
    nearest: Sequence[str] = ()
    _kind: ClassVar[str]

    def describe(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"no {self._kind} is named {self.name!r}{hint}"


class UnknownServer(_Unknown):
    """No server is configured under `name`; `nearest` are the most similar names."""

    _kind = "server"


class UnknownTool(_Unknown):
    """No connected server offers `name`; `nearest` are the most similar names."""

    _kind = "tool"


class UnknownPrompt(_Unknown):
    """No connected server has the command `name`; `nearest` are the most similar ones."""

    _kind = "prompt"


@define(eq=False, kw_only=True, str=False, slots=False)
class ServerNotReady(CallError):
    """The server cannot take calls now: its state, the reason, and what to do."""

    state: str
    reason: str
    remedy: str | None = None

    def describe(self) -> str:
        return f"the server is {self.state}: {self.reason}" + (f" ({self.remedy})" if self.remedy else "")


@define(eq=False, kw_only=True, str=False, slots=False)
class ElicitationDeclined(CallError):
    """The server asked for input and nobody gave it; `action` is decline or cancel."""

    action: str

    def describe(self) -> str:
        return f"the server asked for input and the answer was {self.action}"


@define(eq=False, kw_only=True, str=False, slots=False)
class NotWatched(CallError):
    """The server does not tell when the resource `uri` changes, though it was asked to; read it again now and then."""

    uri: str
    reason: str

    def describe(self) -> str:
        return f"changes of {_shown(self.uri)} are not told: {self.reason}"


@define(eq=False, kw_only=True, str=False, slots=False)
class TaskEnded(CallError):
    """The task that a call became ended without a result; `status` is "cancelled" or "expired"."""

    task_id: str
    status: str
    reason: str | None = None

    def describe(self) -> str:
        return f"the task {self.task_id} was {self.status}" + (f": {self.reason}" if self.reason else "")


class ActorError(McpActorsError):
    """An actor of ours could not serve."""


@define(eq=False, kw_only=True, str=False, slots=False)
class ActorGone(ActorError):
    """The mailbox is closed; `cause` is why its actor ended, None when it ended in order."""

    actor: str
    cause: BaseException | None = None

    def describe(self) -> str:
        return f"{self.actor} is gone" + (f": {self.cause}" if self.cause else "")


@define(eq=False, kw_only=True, str=False, slots=False)
class MailboxFull(ActorError):
    """Only from ``tell_nowait``: the bounded mailbox of `actor` holds `size` messages already."""

    actor: str
    size: int

    def describe(self) -> str:
        return f"the mailbox of {self.actor} is full ({self.size} messages)"


@define(eq=False, kw_only=True, str=False, slots=False)
class GaveUp(ActorError):
    """Restart intensity was exceeded: `failures` lists the recent failures, oldest first."""

    failures: Sequence[str] = ()

    def describe(self) -> str:
        last = f"; last: {self.failures[-1]}" if self.failures else ""
        return f"gave up after {len(self.failures)} failures{last}"
