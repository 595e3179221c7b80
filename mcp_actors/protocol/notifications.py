"""Owns the reading of a server's notifications: each becomes an event for a call, for a listener, or for everybody.

What this is not: the tables of calls and of the server's requests, which it looks into; those are the session's.

Rules.
Rule 1: a malformed or unknown notification costs only itself (fault 74).
Rule 2: what carries a subscription id counts while somebody listens by it; the id is compared with its type (F01).
Rule 3: the end of a subscription may be told by a result or by ``notifications/cancelled`` (spec_client 14.1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.inbound import Blame, Fault, read_params
from mcp_actors.protocol.listening import ACKNOWLEDGED, ListenFilter, subscription_id
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.calls import Calls
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.server_requests import ServerRequests

__all__ = ["NOTIFICATIONS", "NotificationReader", "Progress", "read_progress"]

W = TypeVar("W")


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_updated(params: JsonObject) -> happened.ResourceUpdated:
    return happened.ResourceUpdated(uri=_text(params, "uri"))


def _read_log(params: JsonObject) -> happened.LogReceived:
    logger = params.get("logger")
    return happened.LogReceived(
        level=_text(params, "level"), logger=logger if isinstance(logger, str) else None, data=params.get("data")
    )


def _text(params: JsonObject, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RemoteProtocolError(reason=f"{key!r} is no text")
    return value


# Maps method -> how its params become an event. A reader raises `RemoteProtocolError` for params it cannot use.
NOTIFICATIONS: Final[Mapping[str, Callable[[JsonObject], happened.Notice]]] = {
    "notifications/tools/list_changed": lambda _: happened.ListChanged("tools"),
    "notifications/prompts/list_changed": lambda _: happened.ListChanged("prompts"),
    "notifications/resources/list_changed": lambda _: happened.ListChanged("resources"),
    "notifications/resources/updated": _read_updated,
    "notifications/message": _read_log,
    "notifications/elicitation/complete": lambda params: happened.ElicitationCompleted(_text(params, "elicitationId")),
}
# Known, of no use to a client, and no fault of the peer. Whoever waits for a task asks for it: a notice of it is a hint
# (G02), under the name of 2025-11-25 and that of the extension.
_IGNORED: Final = frozenset({"notifications/initialized", "notifications/tasks/status", "notifications/tasks"})


# Of a report of progress, which every call in flight may keep one of: longer than anybody reads.
MAX_MESSAGE_CHARS: Final = 65_536


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
        message=message[:MAX_MESSAGE_CHARS] if isinstance(message, str) else None,
    )


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


# ── the reader ────────────────────────────────────────────────────────────────────────────────────────────────────────


@define(eq=False)
class NotificationReader(Generic[W]):
    """The reader of notifications over the tables of one session."""

    calls: Calls[W]
    server_requests: ServerRequests

    def read(self, method: str, raw: bytes) -> Event[W] | Blame | None:
        """Say what came of a notification; None when it is of no use to anybody."""
        if method in _IGNORED:
            return None
        try:
            if method == "notifications/progress":
                return self._read_progress(read_progress(read_params(raw)))
            if method == "notifications/cancelled":
                return self._read_cancelled(read_params(raw))
            if method == ACKNOWLEDGED:
                return self._read_acknowledged(read_params(raw))
            if method in NOTIFICATIONS:
                params = read_params(raw)
                return self._route(params, NOTIFICATIONS[method](params))
        except RemoteProtocolError as exc:
            return Blame(Fault.BAD_NOTIFICATION, f"{method[:80]}: {exc.reason}")
        return Blame(Fault.UNKNOWN_NOTIFICATION, method[:80])

    def _read_progress(self, report: Progress) -> Event[W] | Blame | None:
        request_id = self.calls.risen(report.token, report.progress)
        if request_id is not None:
            waiter = self.calls.waiting[request_id]
            return happened.ProgressReceived(waiter, report.progress, report.total, report.message)
        if self.calls.is_buried(report.token):
            return None
        return Blame(Fault.STALE_PROGRESS, f"for the token {repr(report.token)[:40]}")

    def _read_cancelled(self, params: JsonObject) -> Event[W] | None:
        request_id = params.get("requestId")
        if isinstance(request_id, int | str) and self.server_requests.close(request_id):
            return happened.ServerRequestCancelled(request_id)
        listener = self.calls.listener(request_id)
        if listener is None or not isinstance(request_id, int):
            return None
        self.calls.forget(request_id)
        return happened.ListenEnded(listener)

    def _read_acknowledged(self, params: JsonObject) -> Event[W] | Blame | None:
        tag = subscription_id(params)
        listener = self.calls.listener(tag)
        if listener is None:
            return self._stray(tag)
        return happened.ListenAcknowledged(listener, ListenFilter.read(params.get("notifications")))

    def _route(self, params: JsonObject, notice: happened.Notice) -> Event[W] | Blame | None:
        tag = subscription_id(params)
        return notice if tag is None or self.calls.listener(tag) is not None else self._stray(tag)

    def _stray(self, tag: object) -> Blame | None:
        if tag is None or self.calls.is_buried(tag):
            return None
        return Blame(Fault.UNKNOWN_SUBSCRIPTION, f"nobody listens by the id {repr(tag)[:40]}")
