"""Owns the way from one raw entry to a `ServerSpec`: kinds, transport, expansion, what the values mean together.

What this is not: where entries come from (`sources`), nor who wins when two have one name (`merge`).

Rules. One entry's fault touches no other entry (fault 21). Nothing is dropped in silence: an entry becomes a spec or
leaves at least one problem. No problem and no note holds a value of the file (S030).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import field, frozen

from mcp_actors.config.checks import HEADER_NAME, header_fault, plain_fault, url_fault, watched_texts
from mcp_actors.config.entries import Entry, Restart, entry_keys, structure_entry
from mcp_actors.config.expand import expand
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

if TYPE_CHECKING:
    from mcp_actors.config.notes import Findings, KeyPath
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["OWN_KEYS", "RESERVED_NAMES", "TRANSPORT_SPELLINGS", "EntryContext", "read_entry"]

T = TypeVar("T")

# S033. `ide` belongs to the IDE's own server.
RESERVED_NAMES = frozenset({"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser", "ide"})

# Spelling without case and separators -> transport (S005, fault 20).
TRANSPORT_SPELLINGS: Mapping[str, TransportName] = {
    "stdio": TransportName.STDIO,
    "http": TransportName.HTTP,
    "streamablehttp": TransportName.HTTP,
    "sse": TransportName.SSE,
    "ws": TransportName.WS,
    "websocket": TransportName.WS,
}
# Not for files: they belong to IDE extensions and to programs that embed us (S007).
INTERNAL_SPELLINGS = frozenset({"sseide", "wside", "sdk", "claudeaiproxy"})
ACCEPTED = "stdio, http (or streamable-http), sse, ws (or websocket)"

# The keys of ours beside those of S002 and S003, with their meaning: docs/reference prints this table.
OWN_KEYS: Mapping[str, str] = {
    "envFile": "file of NAME=value lines for the program's environment; env wins",
    "cwd": "directory to start the program in",
    "connectTimeout": "milliseconds for one connect attempt of this server",
    "era": "auto, legacy or modern: which protocol era to speak",
    "restart": "permanent, transient or temporary; or an object with type, intensity, period, backoffFirst, "
    "backoffFactor, backoffMax, maxTries, stableAfter, jitter, parkProbe (durations in milliseconds)",
    "disabled": "true: defined, but not started",
    "enabled": "false: the same",
}

KNOWN_KEYS: Final = frozenset(OWN_KEYS) | {"transport", "oauth"} | entry_keys()
# As alike as arg and args; alwaysAllow of other programs is less like alwaysLoad.
SLIP_LIKENESS: Final = 0.85

# Below this an entry's timeout is ignored (S200).
MIN_CALL_TIMEOUT_MS = 1000

SHOWABLE = re.compile(r"[\w .+-]{1,32}")


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
    return _Reader(name, path, context, shown).read(raw)


@frozen
class _Reader:
    name: str
    path: KeyPath
    context: EntryContext
    shown: JsonObject | None = None

    def problem(self, path: KeyPath, reason: str, remedy: str | None = None, category: str = "invalid_config") -> None:
        self.context.findings.problem((*self.path, *path), reason, server=self.name, remedy=remedy, category=category)

    def note(self, path: KeyPath, code: str, text: str, *, is_warning: bool = True) -> None:
        self.context.findings.note((*self.path, *path), code, text, server=self.name, is_warning=is_warning)

    def read(self, raw: Json) -> ServerSpec | None:
        before = len(self.context.findings.problems)
        if not self._is_name_usable():
            return None
        if not isinstance(raw, Mapping):
            self.problem((), "must be an object")
            return None
        transport = self._transport(raw)
        entry, faults = structure_entry(raw)
        for fault in faults:
            if fault.path != ("type",):  # told already, with what is accepted
                self.problem(fault.path, fault.reason)
        if entry is None or transport is None:
            return None
        self._note_scalars(raw)
        self._note_whitespace(raw)
        self._note_slips(raw)
        spec = self._spec(entry, transport, raw)
        return spec if len(self.context.findings.problems) == before else None

    def _is_name_usable(self) -> bool:
        if self.name in RESERVED_NAMES:
            self.problem((), "the name is reserved", "give the server another name", "reserved_name")
            return False
        if not self.name.strip() or not self.name.isprintable():
            self.problem((), "the name is empty or holds characters that cannot be shown", "give it another name")
            return False
        return True

    def _transport(self, raw: JsonObject) -> TransportName | None:
        key = "type" if raw.get("type") is not None or raw.get("transport") is None else "transport"
        written = raw.get(key)
        has_command, has_url = (raw.get(field_) is not None for field_ in ("command", "url"))
        if written is None:
            if has_url and has_command:
                self.problem((), "has both command and url", f"say which with type: {ACCEPTED}")
                return None
            if has_url:
                return self._guess(raw["url"])
            if not has_command:
                self.problem((), "has neither command nor url", "name a program to start or an address to talk to")
                return None
            return TransportName.STDIO
        if not isinstance(written, str):
            self.problem((key,), "must be a text", f"accepted: {ACCEPTED}", "unknown_type")
            return None
        spelling = re.sub(r"[\W_]", "", written).lower()
        if spelling in INTERNAL_SPELLINGS:
            self.problem((key,), "is an internal type that no file may use", f"accepted: {ACCEPTED}")
            return None
        transport = TRANSPORT_SPELLINGS.get(spelling)
        if transport is None:
            shown = f" {written!r}" if SHOWABLE.fullmatch(written) else ""
            self.problem((key,), f"unknown transport type{shown}", f"accepted: {ACCEPTED}", "unknown_type")
            return None
        wanted, other = ("command", has_url) if transport is TransportName.STDIO else ("url", has_command)
        if raw.get(wanted) is None:
            self.problem((), f"is of type {transport} and has no {wanted}", f"add {wanted}")
            return None
        if other:
            ignored = "url" if wanted == "command" else "command"
            self.note((ignored,), "ignored-field", f"is not used: the type is {transport}")
        return transport

    def _guess(self, url: Json) -> TransportName:
        is_socket = isinstance(url, str) and url.strip().lower().startswith(("ws:", "wss:"))
        guess = TransportName.WS if is_socket else TransportName.HTTP
        text = "no type is given: taken as " + ("websocket" if is_socket else "streamable HTTP")
        self.note((), "url-without-type", text, is_warning=False)
        return guess

    def _note_scalars(self, raw: JsonObject) -> None:
        for key in ("env", "headers"):
            values = raw.get(key)
            for name, value in values.items() if isinstance(values, Mapping) else ():
                if isinstance(value, bool | int | float):
                    self.note((key, name), "taken-as-text", "is not a text and was taken as one", is_warning=False)
                elif value is None:
                    self.note((key, name), "not-set", "is null and so not set", is_warning=False)
        args = raw.get("args")
        for index, value in enumerate(args if isinstance(args, list) else ()):
            if isinstance(value, bool | int | float):
                self.note(("args", index), "taken-as-text", "is not a text and was taken as one", is_warning=False)

    def _note_whitespace(self, raw: JsonObject) -> None:
        """S036: warned about, used unchanged."""
        for path, value in watched_texts(raw):
            if value != value.strip():
                self.note(path, "whitespace", "begins or ends with whitespace; it is used as it is")
        for key in ("env", "headers"):
            names = raw.get(key)
            for name in names if isinstance(names, Mapping) else ():
                if name != name.strip():
                    self.note((key, name), "whitespace", "the name begins or ends with whitespace; it is used as it is")

    def _note_slips(self, raw: JsonObject) -> None:
        """Warn of keys that are nearly those of ours. Others stay unmentioned: entries hold keys of many programs."""
        for key in raw:
            if key not in KNOWN_KEYS and (meant := _nearest_key(key)) is not None:
                self.note((key,), "unknown-key", f"is no key that has an effect; did you mean {meant}?")

    def _spec(self, entry: Entry, transport: TransportName, raw: JsonObject) -> ServerSpec | None:
        is_enabled, reason = entry.enabled and not entry.disabled, "user"
        target: StdioTarget | RemoteTarget | None
        if transport is TransportName.STDIO:
            target = self._stdio(entry)
        else:
            target = self._remote(entry, transport, is_guess=raw.get("type") is None and raw.get("transport") is None)
            if target is not None and not target.url.strip():
                is_enabled, reason = False, "not-configured"  # S035: no attempt, and not an error
                self.note(("url",), "not-configured", "is empty: the server is not configured", is_warning=False)
        era, restart_type, policy = self._era(entry), *self._restart(entry.restart)
        if target is None:
            return None
        timeout = entry.timeout
        if timeout is not None and timeout < MIN_CALL_TIMEOUT_MS:
            self.note(("timeout",), "ignored-timeout", f"is in milliseconds and below {MIN_CALL_TIMEOUT_MS}: ignored")
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
            self.problem(("command",), "is empty", "name the program to start")
            return None
        for name in entry.env:
            if not name or "=" in name or plain_fault(name):
                self.problem(("env", name), "is not a name that a variable can have")
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
            if not HEADER_NAME.fullmatch(name):
                self.problem(("headers", name), "is not a name that a header can have")
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
            self.problem(path, fault)
        if expansion.unset:
            names = ", ".join(expansion.unset)
            text = f"the variable {names} is not set" if len(expansion.unset) == 1 else f"not set: {names}"
            if self.context.is_unset_fatal:
                remedy = "set it, or give a default: ${NAME:-default}"
                self.problem(path, text, remedy, "unset_variable")
            else:
                self.note(path, "unset-variable", f"{text}; the connection is tried all the same")
        return expansion.text

    def _era(self, entry: Entry) -> EraChoice:
        if entry.era is None:
            return EraChoice.AUTO
        try:
            return EraChoice(entry.era.strip().lower())
        except ValueError:
            self.problem(("era",), "is not an era", f"accepted: {', '.join(EraChoice)}")
            return EraChoice.AUTO

    def _restart(self, restart: Restart | None) -> tuple[RestartType | None, RestartPolicy]:
        default = RestartPolicy()
        if restart is None:
            return None, default
        kind = None
        if restart.type is not None:
            try:
                kind = RestartType(restart.type.strip().lower())
            except ValueError:
                self.problem(("restart",), "is not a restart type", f"accepted: {', '.join(RestartType)}")
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


def _folded(key: str) -> str:
    return re.sub(r"[\W_]", "", key[:40]).lower()


@lru_cache(256)  # a thousand entries of another program hold the same few keys
def _nearest_key(key: str) -> str | None:
    """The key of ours that this one is a slip of, also in case and separators; None when there is none."""
    from difflib import get_close_matches  # entries without unknown keys need not wait for it

    ours = {_folded(known): known for known in sorted(KNOWN_KEYS)}
    nearest = get_close_matches(_folded(key), ours, n=1, cutoff=SLIP_LIKENESS)
    return ours[nearest[0]] if nearest else None


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
