"""Owns the table of notifications: how the params of each become an event, and what a progress report says.

What this is not: whom one is for, which needs the state of the conversation (`notices`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.events import ElicitationCompleted, ListChanged, LogReceived, ResourceUpdated
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.events import Notice

__all__ = ["IGNORED", "NOTIFICATIONS", "Progress", "read_progress"]


def _read_updated(params: JsonObject) -> ResourceUpdated:
    return ResourceUpdated(uri=_text(params, "uri"))


def _read_log(params: JsonObject) -> LogReceived:
    logger = params.get("logger")
    return LogReceived(
        level=_text(params, "level"), logger=logger if isinstance(logger, str) else None, data=params.get("data")
    )


def _text(params: JsonObject, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RemoteProtocolError(reason=f"{key!r} is no text")
    return value


# Maps method -> how its params become an event. A reader raises `RemoteProtocolError` for params it cannot use.
NOTIFICATIONS: Final[Mapping[str, Callable[[JsonObject], Notice]]] = {
    "notifications/tools/list_changed": lambda _: ListChanged("tools"),
    "notifications/prompts/list_changed": lambda _: ListChanged("prompts"),
    "notifications/resources/list_changed": lambda _: ListChanged("resources"),
    "notifications/resources/updated": _read_updated,
    "notifications/message": _read_log,
    "notifications/elicitation/complete": lambda params: ElicitationCompleted(_text(params, "elicitationId")),
}
# Known, of no use to a client, and no fault of the peer. Whoever waits for a task asks for it: a notice of it is a hint
# (G02), under the name of 2025-11-25 and that of the extension.
IGNORED: Final = frozenset({"notifications/initialized", "notifications/tasks/status", "notifications/tasks"})


@frozen
class Progress:
    """One progress notification; `token` is as the peer sent it."""

    token: Json
    progress: float
    total: float | None
    message: str | None


def read_progress(params: JsonObject) -> Progress:
    """Read a progress notification.

    Raises:
        RemoteProtocolError: `progress` is no number.
    """
    progress = _number(params.get("progress"))
    if progress is None:
        raise RemoteProtocolError(reason="'progress' is no number")
    message = params.get("message")
    return Progress(
        token=params.get("progressToken"),
        progress=progress,
        total=_number(params.get("total")),
        message=message if isinstance(message, str) else None,
    )


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
