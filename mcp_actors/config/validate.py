"""Owns the way from one raw entry to a `ServerSpec`: kinds, expansion, what the values mean together.

What this is not: where entries come from (`sources`), which transport one means (`transport_type`), what is only
remarked on (`remarks`), nor who wins when two have one name (`merge`).

Rules. One entry's fault touches no other entry (fault 21). Nothing is dropped in silence: an entry becomes a spec or
leaves at least one problem. No problem and no note holds a value of the file (S030).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from attrs import field

from mcp_actors.config.checks import HEADER_NAME, header_fault, plain_fault, url_fault
from mcp_actors.config.entries import Entry, Restart, structure_entry
from mcp_actors.config.expand import expand
from mcp_actors.config.notes import EntryFindings
from mcp_actors.config.remarks import note_slips, remark_on
from mcp_actors.config.specs import (
    EraChoice,
    RemoteTarget,
    RestartPolicy,
    RestartType,
    Scope,
    ServerSpec,
    StdioTarget,
    TransportName,
)
from mcp_actors.config.transport_type import is_guessed, read_transport
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.config.notes import Findings, KeyPath
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["RESERVED_NAMES", "EntryContext", "read_entry"]

T = TypeVar("T")

# S033. `ide` belongs to the IDE's own server.
RESERVED_NAMES = frozenset({"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser", "ide"})

# Of entries that say nothing about it: one for all.
DEFAULT_POLICY = RestartPolicy()

# Below this an entry's timeout is ignored (S200).
MIN_CALL_TIMEOUT_MS = 1000


@frozen
class EntryContext:
    """What an entry is read against; the same for all entries of one source."""

    findings: Findings
    scope: Scope
    environ: Mapping[str, str] = field(repr=False)
    # Names that we provide before `environ` (S031).
    fixed: Mapping[str, str] = field(factory=dict, repr=False)
    # True: an unset variable without default keeps the entry from running (fault 26).
    is_unset_fatal: bool = False


def read_entry(
    name: str, raw: Json, path: KeyPath, context: EntryContext, *, shown: JsonObject | None = None
) -> ServerSpec | None:
    """Turn one entry into a spec.

    Args:
        name: its key.
        raw: its value, as written.
        path: where it stands in the document.
        context: its surroundings; problems and notes go to its findings.
        shown: what `ServerSpec.raw` holds when `raw` has values that must not be shown; None: `raw`.

    Returns:
        The spec, or None when the entry cannot run; then at least one problem says why.

    Source:
        S002-S007, S027-S036, S200; faults 19-21, 25-27.
    """
    return _Reader(name, EntryFindings(context.findings, name, path), context, shown).read(raw)


@frozen
class _Reader:
    name: str
    told: EntryFindings
    context: EntryContext
    shown: JsonObject | None = None

    def read(self, raw: Json) -> ServerSpec | None:
        before = len(self.context.findings.problems)
        if not self._is_name_usable():
            return None
        if not isinstance(raw, Mapping):
            self.told.problem((), "must be an object")
            return None
        transport = read_transport(raw, self.told)
        entry, faults = structure_entry(raw)
        for fault in faults:
            if fault.path != ("type",):  # told already, with what is accepted
                self.told.problem(fault.path, fault.reason)
        if entry is None or transport is None:
            note_slips(raw, self.told)  # perhaps that is all that is wrong
            return None
        remark_on(raw, self.told)
        spec = self._spec(entry, transport, raw)
        return spec if len(self.context.findings.problems) == before else None

    def _is_name_usable(self) -> bool:
        if self.name in RESERVED_NAMES:
            self.told.problem((), "the name is reserved", "give the server another name", "reserved_name")
            return False
        if not self.name.strip() or not self.name.isprintable():
            self.told.problem((), "the name is empty or holds characters that cannot be shown", "give it another name")
            return False
        return True

    def _spec(self, entry: Entry, transport: TransportName, raw: JsonObject) -> ServerSpec | None:
        is_enabled, reason = entry.enabled and not entry.disabled, "user"
        target: StdioTarget | RemoteTarget | None
        if transport is TransportName.STDIO:
            target = self._stdio(entry)
        else:
            target = self._remote(entry, transport, is_guess=is_guessed(raw))
            if target is not None and not target.url.strip():
                is_enabled, reason = False, "not-configured"  # S035: no attempt, and not an error
                self.told.note(("url",), "not-configured", "is empty: the server is not configured", is_warning=False)
        era, restart_type, policy = self._era(entry), *self._restart(entry.restart)
        if target is None:
            return None
        timeout = entry.timeout
        if timeout is not None and timeout < MIN_CALL_TIMEOUT_MS:
            self.told.note(
                ("timeout",), "ignored-timeout", f"is in milliseconds and below {MIN_CALL_TIMEOUT_MS}: ignored"
            )
            timeout = None
        return ServerSpec(
            name=self.name,
            target=target,
            scope=self.context.scope,
            source=self.context.findings.file,
            era=era,
            restart_type=restart_type,
            restart_policy=policy,
            connect_timeout=_seconds(entry.connect_timeout),
            call_timeout=_seconds(timeout),
            request_timeout=_seconds(entry.request_timeout),
            always_load=entry.always_load,
            is_enabled=is_enabled,
            disabled_reason=reason,
            raw=raw if self.shown is None else self.shown,
        )

    def _stdio(self, entry: Entry) -> StdioTarget | None:
        command = self._expanded(entry.command or "", ("command",), plain_fault)
        if not command.strip():
            self.told.problem(("command",), "is empty", "name the program to start")
            return None
        for name in entry.env:
            if not name or "=" in name or plain_fault(name):
                self.told.problem(("env", name), "is not a name that a variable can have")
        return StdioTarget(
            command=command,
            args=tuple(self._expanded(arg, ("args", i), plain_fault) for i, arg in enumerate(entry.args)),
            environment={
                name: self._expanded(value, ("env", name), plain_fault)
                for name, value in entry.env.items()
                if value is not None
            },
            cwd=self._expanded(entry.cwd, ("cwd",), plain_fault) if entry.cwd else None,
        )

    def _remote(self, entry: Entry, transport: TransportName, *, is_guess: bool) -> RemoteTarget | None:
        url = self._expanded(entry.url or "", ("url",), header_fault, lambda text: url_fault(text, transport))
        for name in entry.headers:
            if not re.fullmatch(HEADER_NAME, name):
                self.told.problem(("headers", name), "is not a name that a header can have")
        return RemoteTarget(
            url=url,
            transport=transport,
            headers={
                name: self._expanded(value, ("headers", name), header_fault)
                for name, value in entry.headers.items()
                if value is not None
            },
            headers_helper=entry.headers_helper,
            plugin_root=self.context.fixed.get("CLAUDE_PLUGIN_ROOT"),
            plugin_data=self.context.fixed.get("CLAUDE_PLUGIN_DATA"),
            is_guess=is_guess and transport is TransportName.HTTP,
        )

    def _expanded(
        self,
        text: str,
        path: KeyPath,
        fault_of: Callable[[str], str | None],
        shape_of: Callable[[str], str | None] = lambda _: None,
    ) -> str:
        """Fill in variables and check the outcome.

        `fault_of` tells what could not be passed on at all; `shape_of` what makes no sense, not asked of a text
        that still holds an unset variable, since that one is attempted as it is (S029).
        """
        expansion = expand(text, self.context.environ, self.context.fixed)
        fault = fault_of(expansion.text)
        if fault is None and not expansion.unset:
            fault = shape_of(expansion.text)
        if fault is not None:
            self.told.problem(path, fault)
        if expansion.unset:
            names = ", ".join(expansion.unset)
            text = f"the variable {names} is not set" if len(expansion.unset) == 1 else f"not set: {names}"
            if self.context.is_unset_fatal:
                remedy = "set it, or give a default: ${NAME:-default}"
                self.told.problem(path, text, remedy, "unset_variable")
            else:
                self.told.note(path, "unset-variable", f"{text}; the connection is tried all the same")
        return expansion.text

    def _era(self, entry: Entry) -> EraChoice:
        if entry.era is None:
            return EraChoice.AUTO
        try:
            return EraChoice(entry.era.strip().lower())
        except ValueError:
            self.told.problem(("era",), "is not an era", f"accepted: {', '.join(EraChoice)}")
            return EraChoice.AUTO

    def _restart(self, restart: Restart | None) -> tuple[RestartType | None, RestartPolicy]:
        default = DEFAULT_POLICY
        if restart is None:
            return None, default
        kind = None
        if restart.type is not None:
            try:
                kind = RestartType(restart.type.strip().lower())
            except ValueError:
                self.told.problem(("restart",), "is not a restart type", f"accepted: {', '.join(RestartType)}")
        return kind, RestartPolicy(
            intensity=_or(restart.intensity, default.intensity),
            period=_or(_seconds(restart.period), default.period),
            backoff_first=_or(_seconds(restart.backoff_first), default.backoff_first),
            backoff_factor=_or(restart.backoff_factor, default.backoff_factor),
            backoff_max=_or(_seconds(restart.backoff_max), default.backoff_max),
            max_tries=_or(restart.max_tries, default.max_tries),
            stable_after=_or(_seconds(restart.stable_after), default.stable_after),
            has_jitter=restart.jitter,
            park_probe=_seconds(restart.park_probe),
        )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
