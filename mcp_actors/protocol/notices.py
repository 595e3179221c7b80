"""Owns how a notification of the server is brought home: to a call, to somebody who listens, or to everybody.

What this is not: the shapes of notifications (`inbound`), nor the tables that it looks into, which are the session's.

Rules.
Rule 1: a malformed or unknown notification costs only itself (fault 74).
Rule 2: what carries a subscription id counts while somebody listens by it; the id is compared with its type (F01).
Rule 3: the end of a subscription may be told by a result or by ``notifications/cancelled`` (spec_client 14.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import events as happened
from mcp_actors.protocol.inbound import Blame, Fault, read_params
from mcp_actors.protocol.listening import ACKNOWLEDGED, ListenFilter, subscription_id
from mcp_actors.protocol.notifications import IGNORED, NOTIFICATIONS, Progress, read_progress
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.calls import Calls
    from mcp_actors.protocol.events import Event
    from mcp_actors.protocol.server_requests import ServerRequests

__all__ = ["Notices"]

W = TypeVar("W")


@define(eq=False)
class Notices(Generic[W]):
    """The reader of notifications over the tables of one session."""

    calls: Calls[W]
    server_requests: ServerRequests

    def read(self, method: str, raw: bytes) -> Event[W] | Blame | None:
        """Say what came of a notification; None when it is of no use to anybody."""
        if method in IGNORED:
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
