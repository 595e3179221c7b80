"""Owns the tables of methods: in which eras and revisions each exists, what it needs, and how it may be treated.

What this is not: the making of requests. `outbound` refuses what the table forbids, so that a method that an era does
not have never reaches the wire (F14).

Rules.
Rule 1: what a server did not declare is not asked for (fault 69), except by methods that every server has.
Rule 2: a method that was removed from the modern era is refused, or mapped to what took its place: ``ping`` to nothing,
``logging/setLevel`` to a level in every request, ``resources/subscribe`` to `listening` (F13, F14).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.protocol.revisions import LEGACY, MODERN, REVISIONS
from mcp_actors.protocol.types import Era
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import ServerInfo

__all__ = [
    "ASKS_A_PERSON",
    "CAPABILITY_OF",
    "ELICITATION",
    "LOG_LEVELS",
    "METHODS",
    "ROOTS",
    "ROOTS_CHANGED",
    "SAMPLING",
    "SKILLS_EXTENSION",
    "TASKS_EXTENSION",
    "AskForLevel",
    "LogLevelPlan",
    "Method",
    "NoLevels",
    "StampLevel",
    "foreign_methods",
    "is_offered",
    "may_become_task",
    "may_send",
    "missing_capability",
    "plan_log_level",
    "refuse_method",
]


@frozen
class Method:
    """One method that a client sends: a request, or a notification."""

    name: str
    # The first and the last revision that has it.
    since: str = LEGACY[-1]
    until: str = MODERN[0]
    # Capabilities of the server, any of which is needed, as "name" or "name.setting"; none where it needs none.
    needs: tuple[str, ...] = ()
    # Capabilities of ours, any of which is needed.
    needs_ours: tuple[str, ...] = ()
    # Sending it again does no harm, whatever became of it (B19).
    is_safe: bool = False
    # Its result may say how long it lives (spec_client 7.5).
    is_cacheable: bool = False
    # Its result may be a question (B07).
    may_ask: bool = False
    # What a caller does instead where it does not exist.
    instead: str = ""


_LAST_LEGACY: Final = LEGACY[0]
_FIRST_MODERN: Final = MODERN[-1]
ROOTS_CHANGED: Final = "notifications/roots/list_changed"
# The capability, on both sides, of tasks in the modern era.
TASKS_EXTENSION: Final = "extensions.io.modelcontextprotocol/tasks"
# The server's alone (SEP-2640).
SKILLS_EXTENSION: Final = "extensions.io.modelcontextprotocol/skills"


def _reading(name: str, *needs: str, since: str = LEGACY[-1], may_ask: bool = False, instead: str = "") -> Method:
    """Describe a method that only reads, and whose result may be kept."""
    return Method(name, since, needs=needs, is_safe=True, is_cacheable=True, may_ask=may_ask, instead=instead)


_ROWS: Final = (
    Method("initialize", until=_LAST_LEGACY, instead="modern servers have no handshake"),
    Method("notifications/initialized", until=_LAST_LEGACY, instead="modern servers have no handshake"),
    _reading("server/discover", since=_FIRST_MODERN, instead="initialize tells what the server can"),
    Method("ping", until=_LAST_LEGACY, is_safe=True, instead="the transport tells whether the server lives"),
    _reading("tools/list", "tools"),
    Method("tools/call", needs=("tools",), may_ask=True),
    _reading("prompts/list", "prompts"),
    Method("prompts/get", needs=("prompts",), is_safe=True, may_ask=True),
    _reading("resources/list", "resources"),
    _reading("resources/templates/list", "resources"),
    _reading("resources/read", "resources", may_ask=True),
    # Not kept: whoever asks again wants to know what changed (SEP-2640, "Verification on Read").
    Method("skills/list", needs=(SKILLS_EXTENSION,), is_safe=True),
    Method("skills/get", needs=(SKILLS_EXTENSION,), is_safe=True),
    Method(
        "resources/subscribe",
        until=_LAST_LEGACY,
        needs=("resources.subscribe",),
        is_safe=True,
        instead="subscriptions/listen tells of resources",
    ),
    Method(
        "resources/unsubscribe",
        until=_LAST_LEGACY,
        needs=("resources.subscribe",),
        is_safe=True,
        instead="closing a subscriptions/listen ends it",
    ),
    Method(
        "subscriptions/listen",
        since=_FIRST_MODERN,
        is_safe=True,
        instead="legacy servers tell of lists unasked, and of resources after resources/subscribe",
    ),
    # Before 2025-03-26 there was no capability to declare it by.
    Method("completion/complete", needs=("completions",), is_safe=True),
    Method(
        "logging/setLevel",
        until=_LAST_LEGACY,
        needs=("logging",),
        is_safe=True,
        instead="every request names the level that it wants",
    ),
    Method("tasks/get", since=_LAST_LEGACY, needs=("tasks", TASKS_EXTENSION), is_safe=True),
    Method("tasks/cancel", since=_LAST_LEGACY, needs=("tasks.cancel", TASKS_EXTENSION), is_safe=True),
    Method(
        "tasks/result",
        since=_LAST_LEGACY,
        until=_LAST_LEGACY,
        needs=("tasks",),
        is_safe=True,
        instead="tasks/get brings the result along",
    ),
    Method(
        "tasks/list",
        since=_LAST_LEGACY,
        until=_LAST_LEGACY,
        needs=("tasks.list",),
        is_safe=True,
        instead="whoever began a task keeps its id",
    ),
    Method(
        "tasks/update",
        since=_FIRST_MODERN,
        needs=(TASKS_EXTENSION,),
        instead="legacy servers ask by requests of their own",
    ),
    Method("notifications/cancelled"),
    Method("notifications/progress"),
    Method(
        ROOTS_CHANGED,
        until=_LAST_LEGACY,
        needs_ours=("roots.listChanged",),
        instead="modern servers ask for the roots when they need them",
    ),
)

# Maps method -> row.
METHODS: Final = {row.name: row for row in _ROWS}

# What a server may ask of a client, as a request (legacy) or in a result (modern).
ROOTS: Final = "roots/list"
SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"
# Maps each of them -> our capability that lets a server ask.
CAPABILITY_OF: Final[Mapping[str, str]] = {ROOTS: "roots", SAMPLING: "sampling", ELICITATION: "elicitation"}
# Those whose answer may take a person's time: meanwhile the clocks of calls stop (S202, S297).
ASKS_A_PERSON: Final = frozenset({SAMPLING, ELICITATION})


def refuse_method(method: str, revision: str) -> str | None:
    """Say why a method must not be sent in this revision; None when it may, or is not in the table.

    Source:
        F14; MCP 2026-07-28, "Changelog"; spec_client 9.6.
    """
    row = METHODS.get(method)
    if row is None or row.since <= revision <= row.until:
        return None
    text = f"{method} does not exist in {revision}"
    return f"{text}: {row.instead}" if row.instead else text


@functools.cache
def foreign_methods(revision: str) -> frozenset[str]:
    """The methods that must not be sent in this revision."""
    return frozenset(method for method in METHODS if refuse_method(method, revision))


def missing_capability(method: str, info: ServerInfo, ours: JsonObject | None = None) -> str | None:
    """Name the capability without which a method must not be used; None when it may, or is not in the table.

    Args:
        method: that somebody wants to send.
        info: what the server declared.
        ours: capabilities that we declared to it.

    Source:
        Fault 69, F12; spec_client 2.
    """
    row = METHODS.get(method)
    if row is None:
        return None
    # 2024-11-05 has completion, but no capability to declare it by.
    is_undeclarable = method == "completion/complete" and info.revision == LEGACY[-1]
    if row.needs and not is_undeclarable and not any(is_offered(info.capabilities, path) for path in row.needs):
        return row.needs[-1] if info.era is Era.MODERN else row.needs[0]
    if row.needs_ours and not any(is_offered(ours or {}, path) for path in row.needs_ours):
        return row.needs_ours[0]
    return None


def may_send(method: str, info: ServerInfo, ours: JsonObject) -> bool:
    """Whether a server of this revision may be sent this, by what it declared and what we declared to it."""
    return refuse_method(method, info.revision) is None and missing_capability(method, info, ours) is None


def may_become_task(definition: bytes, info: ServerInfo) -> bool:
    """Whether it is worth reading an undecoded tool, and the rules of `tasks`, before it is called (G05)."""
    row = REVISIONS.get(info.revision)
    return row is not None and row.has_core_tasks and b'"taskSupport"' in definition


def is_offered(capabilities: JsonObject, path: str) -> bool:
    """Whether capabilities hold this one: "tools", "resources.subscribe", "extensions.io.example/x".

    A setting that is false is not offered; an object is, also an empty one.
    """
    name, _, setting = path.partition(".")
    value: Json = capabilities.get(name)
    if setting:
        value = value.get(setting) if isinstance(value, dict) else None
    return value is not None and value is not False


# ── log levels ──────────────────────────────────────────────────────────────────────────────────────────────────────

# From the least to the most severe (RFC 5424).
LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@frozen
class AskForLevel:
    """Send this request; again after every renewal and reconnect (A10)."""

    method: str
    params: JsonObject


@frozen
class StampLevel:
    """Call `Session.stamp_log_level` with this level; None for no log messages at all."""

    level: str | None


@frozen
class NoLevels:
    """The server has no log levels: it sends what it likes, or nothing."""

    reason: str


LogLevelPlan: TypeAlias = AskForLevel | StampLevel | NoLevels


def plan_log_level(level: str | None, info: ServerInfo) -> LogLevelPlan:
    """Decide how a server is told which log messages are wanted.

    Args:
        level: the least severe one; None for none at all, which only modern servers can be told.

    Source:
        F13; spec_client 7.6.
    """
    if level is not None and level not in LOG_LEVELS:
        return NoLevels(f"{level[:40]!r} is no log level; there are {', '.join(LOG_LEVELS)}")
    if info.era is Era.MODERN:
        return StampLevel(level)
    if not info.has("logging"):
        return NoLevels("the server does not declare logging")
    if level is None:
        return NoLevels("a legacy server cannot be told to send no log messages")
    return AskForLevel("logging/setLevel", {"level": level})
