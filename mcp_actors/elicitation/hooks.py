"""Owns which hooks look at a question, an answer or a call: their configuration, their matchers, what they are told.

What this is not: running them (`questions.hook_runners`), nor what their output means (`hook_outcomes`; of calls
`model.tool_hooks`).

Rule 1: a hook that cannot be read is left out with a warning; the others count.
Rule 2: all that match run in parallel, identical ones once (S310).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.elicitation.requests import Action, Kind
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.elicitation.requests import Answer, InputRequest
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "QUESTION_EVENTS",
    "TOOL_EVENTS",
    "CommandHook",
    "Handler",
    "Hook",
    "HookContext",
    "HookEvent",
    "Hooks",
    "HttpHook",
    "ToolHook",
    "expand_headers",
    "fill_input",
    "hook_input",
    "matches_server",
    "read_hooks",
]

# What a hook may take (S309).
DEFAULT_TIMEOUT: Final = 600.0


class HookEvent(enum.StrEnum):
    """When a hook looks (S301, S314, S315)."""

    ELICITATION = "Elicitation"
    ELICITATION_RESULT = "ElicitationResult"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"


# Of servers that ask; a matcher means the server's name.
QUESTION_EVENTS: Final = (HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT)
# Of a model's calls; a matcher means the tool's full name (S303).
TOOL_EVENTS: Final = (HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE)


@frozen
class CommandHook:
    """A program: `command` in a shell, or with `args` the program itself (S311)."""

    command: str
    args: tuple[str, ...] | None = None
    timeout: float = DEFAULT_TIMEOUT


@frozen
class HttpHook:
    """A POST. Values of `headers` may name variables, of which only those in `allowed` are filled in (S312)."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    allowed: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT


@frozen
class ToolHook:
    """A tool of a server that is connected already; asking never connects it (S313)."""

    server: str
    tool: str
    # ``${path}`` in its texts stands for what the hook is told.
    input: JsonObject = field(factory=dict)
    timeout: float = DEFAULT_TIMEOUT


Handler: TypeAlias = CommandHook | HttpHook | ToolHook


@frozen
class Hook:
    """One handler and when it looks."""

    event: HookEvent
    # Of the server's or the tool's name; see `matches_server`.
    matcher: str
    handler: Handler


@frozen
class Hooks:
    """All hooks, in the order of the configuration, and what was wrong with those that are not among them."""

    hooks: tuple[Hook, ...] = ()
    warnings: tuple[str, ...] = ()

    def select(self, event: HookEvent, name: str) -> tuple[Handler, ...]:
        """The handlers that look at this event of this server or tool, identical ones once."""
        selected: list[Handler] = []
        for hook in self.hooks:
            is_new = hook.handler not in selected
            if hook.event is event and is_new and matches_server(hook.matcher, name) and _is_sane(hook, name):
                selected.append(hook.handler)
        return tuple(selected)


def _is_sane(hook: Hook, server: str) -> bool:
    """A tool of the server that asks would ask again, and for ever (S313)."""
    return not (isinstance(hook.handler, ToolHook) and hook.handler.server == server)


_EXACT: Final = re.compile(r"[A-Za-z0-9_\- ,|]*")


def matches_server(matcher: str, name: str) -> bool:
    """Whether a matcher fits a name.

    Empty and ``*`` fit all. Only letters, digits, ``_ - , |`` and spaces: names, split by ``|`` or ``,``. Anything else
    is a regular expression, found anywhere.

    Source:
        S303.
    """
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return name in [part.strip() for part in re.split(r"[|,]", matcher)]
    return re.search(matcher, name) is not None


# ── configuration ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Unusable(Exception):
    """Never leaves this file."""


def read_hooks(section: Json, events: Sequence[HookEvent] = QUESTION_EVENTS) -> Hooks:
    """Read the value of ``hooks`` in a settings file; events of others are passed over.

    Args:
        section: the value, decoded; a tuple of such, the weakest file's first, is read as one.
        events: those that are wanted: of questions, or with `TOOL_EVENTS` of a model's calls.

    Source:
        S302, S303, S309, S311-S313.
    """
    if isinstance(section, tuple):
        parts = [read_hooks(part, events) for part in section]
        return Hooks(
            tuple(hook for part in parts for hook in part.hooks),
            tuple(text for part in parts for text in part.warnings),
        )
    if not isinstance(section, Mapping):
        return Hooks(warnings=() if section is None else ("hooks: is not an object",))
    hooks: list[Hook] = []
    warnings: list[str] = []
    for event in events:
        for at, group in enumerate(_array(section.get(event, ()), f"hooks.{event}", warnings)):
            place = f"hooks.{event}[{at}]"
            if not isinstance(group, Mapping):
                warnings.append(f"{place}: is not an object")
                continue
            matcher = group.get("matcher", "")
            try:
                if not isinstance(matcher, str):
                    raise _Unusable("matcher is not a text")
                matches_server(matcher, "")
            except (_Unusable, re.error) as exc:
                warnings.append(f"{place}: its matcher cannot be used: {exc}")
                continue
            for number, entry in enumerate(_array(group.get("hooks", ()), f"{place}.hooks", warnings)):
                try:
                    hooks.append(Hook(event, matcher, _read_handler(entry)))
                except _Unusable as exc:
                    warnings.append(f"{place}.hooks[{number}]: {exc}")
    return Hooks(tuple(hooks), tuple(warnings))


def _array(value: Json, place: str, warnings: list[str]) -> tuple[Json, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)
    warnings.append(f"{place}: is not an array")
    return ()


def _read_handler(entry: Json) -> Handler:
    if not isinstance(entry, Mapping):
        raise _Unusable("is not an object")
    timeout = entry.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9:
        raise _Unusable("timeout is not a positive number of seconds")
    match entry.get("type"):
        case "command":
            args = entry.get("args")
            return CommandHook(_text(entry, "command"), None if args is None else _texts(entry, "args"), float(timeout))
        case "http":
            headers = entry.get("headers", {})
            if not isinstance(headers, Mapping) or not all(isinstance(value, str) for value in headers.values()):
                raise _Unusable("headers is not an object of texts")
            pairs = tuple((name, str(value)) for name, value in headers.items())
            return HttpHook(_text(entry, "url"), pairs, _texts(entry, "allowedEnvVars"), float(timeout))
        case "mcp_tool":
            given = entry.get("input", {})
            if not isinstance(given, Mapping):
                raise _Unusable("input is not an object")
            return ToolHook(_text(entry, "server"), _text(entry, "tool"), given, float(timeout))
        case kind:
            raise _Unusable(f"there is no type {str(kind)[:40]!r} for this event")


def _text(entry: JsonObject, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise _Unusable(f"{key} is missing")
    return value


def _texts(entry: JsonObject, key: str) -> tuple[str, ...]:
    value = entry.get(key, ())
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise _Unusable(f"{key} is not an array of texts")
    return tuple(str(item) for item in value)


# ── what a hook is told ──────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class HookContext:
    """What every hook is told of us (S304)."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"

    def told(self, event: HookEvent) -> dict[str, Json]:
        """What hooks of every event are told (S304)."""
        return {
            "session_id": self.session_id,
            "transcript_path": self.transcript_path,
            "cwd": self.cwd,
            "permission_mode": self.permission_mode,
            "hook_event_name": str(event),
        }


def hook_input(context: HookContext, request: InputRequest, answer: Answer | None = None) -> JsonObject:
    """Write what a hook reads: about the question, or with an `answer` about that.

    Source:
        S304, S305, S306.
    """
    told: dict[str, Json] = {
        **context.told(HookEvent.ELICITATION if answer is None else HookEvent.ELICITATION_RESULT),
        "mcp_server_name": request.server,
        "mode": str(request.kind),
    }
    if request.elicitation_id is not None:
        told["elicitation_id"] = request.elicitation_id
    if answer is not None:
        told["action"] = str(answer.action)
        if answer.action is Action.ACCEPT and answer.content is not None:
            told["content"] = answer.content
        return told
    told["message"] = request.message
    if request.url is not None:
        told["url"] = request.url.text
    if request.kind is Kind.FORM:
        told["requested_schema"] = request.schema
    return told


_PATH: Final = re.compile(r"\$\{([A-Za-z0-9_.\-]+)\}")
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def fill_input(template: JsonObject, told: JsonObject) -> JsonObject:
    """Put what the hook is told into a tool's arguments: ``${content.title}``. An unknown path is an empty text.

    A text that is nothing but one path becomes the value itself, whatever its type.
    """
    return {key: _fill(value, told) for key, value in template.items()}


def _fill(value: Json, told: JsonObject) -> Json:
    if isinstance(value, Mapping):
        return {key: _fill(inner, told) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inner, told) for inner in value]
    if not isinstance(value, str):
        return value
    whole = _PATH.fullmatch(value)
    if whole is not None:
        return _follow(told, whole[1])
    return _PATH.sub(lambda match: str(_follow(told, match[1])), value)


def _follow(told: JsonObject, path: str) -> Json:
    value: Json = told
    for step in path.split("."):
        value = value.get(step, "") if isinstance(value, Mapping) else ""
    return value


def expand_headers(hook: HttpHook, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers of an HTTP hook; a variable that is not allowed, or not set, is empty (S312)."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return environ.get(name, "") if name in hook.allowed else ""

    return tuple((name, _VARIABLE.sub(value_of, value)) for name, value in hook.headers)
