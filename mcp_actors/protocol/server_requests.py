"""Owns the table of the server's requests that are open, and what each is due at once: an answer, a refusal, a handler.

What this is not: what may be asked and what answers it (`question_rules`); a handler elsewhere makes the answer.
Ids of the server and ids of ours are two different worlds: equal ones are no conflict (fault 75).

Rule 1: an answer to a request that belongs to a task of 2025-11-25 names that task (a MUST of it; G05).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.events import ServerRequestReceived
from mcp_actors.protocol.inbound import Blame, Fault, read_params
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_actors.protocol.outbound import META_PREFIX
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import RequestId

__all__ = ["Due", "Pong", "Refuse", "ServerRequests"]

RELATED_TASK: Final = META_PREFIX + "related-task"
# What an answer repeats of its request, the id and the name of a task, is the peer's to choose and ours to keep: a
# thousand characters hold every UUID, URI and hash there is.
MAX_ID_CHARS: Final = 1024
MAX_ID_BITS: Final = 4096  # as many digits
# Params of all open requests; beyond it they are refused, but for a single one. Some pictures for a model go in.
MAX_OPEN_BYTES: Final = 8 * 1024 * 1024


@frozen
class Pong:
    """Answer ``{}`` at once."""

    request_id: RequestId


@frozen
class Refuse:
    """Answer with an error at once."""

    request_id: RequestId
    code: int
    message: str


Due: TypeAlias = Pong | Refuse | Blame | ServerRequestReceived


@frozen(eq=False)
class _Open:
    """What is known of an open request: the task that it belongs to, None for most, and the bytes of its params."""

    task_id: str | None
    size: int


@define(eq=False)
class ServerRequests:
    """The table of server requests that are open."""

    # Methods that a handler exists for.
    handled_methods: AbstractSet[str]
    # A server that asks faster than people answer is refused beyond this.
    max_open: int
    # By id, oldest first.
    open: dict[RequestId, _Open] = field(factory=dict, init=False)

    def receive(self, request_id: object, method: str, params: bytes, *, is_ready: bool) -> Due:
        """Decide what a request of the server is due: every one gets exactly one answer (fault 75).

        Args:
            is_ready: the handshake is over; before that a server may send nothing but ``ping`` (spec_client 2).
        """
        name = method[:40]
        if not isinstance(request_id, int | str) or isinstance(request_id, bool):
            return Blame(Fault.BAD_REQUEST, f"{name} has an id that cannot be answered")
        if _is_long(request_id):
            return Blame(Fault.BAD_REQUEST, f"{name} has an id of more than a thousand characters")
        if method == "ping":
            return Pong(request_id)
        if request_id in self.open:
            return Blame(Fault.BAD_REQUEST, f"{name} repeats an id that is still open")
        if method not in self.handled_methods or not is_ready:
            return Refuse(request_id, METHOD_NOT_FOUND, "Method not found")
        if len(self.open) >= self.max_open or self._is_full(len(params)):
            return Refuse(request_id, INTERNAL_ERROR, "Too many requests are open")
        try:
            decoded = read_params(params)
        except RemoteProtocolError:
            return Refuse(request_id, INVALID_PARAMS, "Invalid params")
        self.open[request_id] = _Open(_task_of(decoded), len(params))
        return ServerRequestReceived(request_id, method, decoded)

    def _is_full(self, size: int) -> bool:
        return bool(self.open) and size + sum(known.size for known in self.open.values()) > MAX_OPEN_BYTES

    def mark(self, request_id: RequestId, answer: JsonObject) -> JsonObject:
        """The answer as it is sent (rule 1)."""
        known = self.open.get(request_id)
        if known is None or known.task_id is None:
            return answer
        meta = answer.get("_meta")
        return {
            **answer,
            "_meta": {**(meta if isinstance(meta, Mapping) else {}), RELATED_TASK: {"taskId": known.task_id}},
        }

    def close(self, request_id: object) -> bool:
        """Take a request out of the table; False when it is not in it (any more)."""
        return isinstance(request_id, int | str) and self.open.pop(request_id, None) is not None


def _task_of(params: JsonObject) -> str | None:
    meta = params.get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, Mapping) else None
    task_id = related.get("taskId") if isinstance(related, Mapping) else None
    return task_id if isinstance(task_id, str) and not _is_long(task_id) else None


def _is_long(request_id: RequestId) -> bool:
    """Whether this is more than any peer needs to tell its requests apart."""
    return len(request_id) > MAX_ID_CHARS if isinstance(request_id, str) else request_id.bit_length() > MAX_ID_BITS
