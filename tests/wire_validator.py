"""Owns the check of every message that our client sends, in all tests, against the official types of its revision.

What this is not: the rules of a conversation (the scripted server judges those), nor a part of the package. The types
are those of ``mcp-types`` on PyPI: one set of models per revision's shapes, and a table of which method each revision
has. They let unknown members pass; here the members of a message and of its ``params`` must be known too.

`CheckedSession` is what `tests/conftest.py` gives to every connection: whatever wire a test uses, memory, a scripted
server, HTTP or a real child, each frame passes here before it is sent.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from mcp_actors.protocol.events import ServerRequestReceived
from mcp_actors.protocol.outbound import META_PREFIX
from mcp_actors.protocol.revisions import LATEST_LEGACY
from mcp_actors.protocol.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from mcp_actors.protocol.types import Frame

__all__ = ["VIOLATIONS", "CheckedSession", "violations_of"]

# What was wrong since a test began, oldest first; conftest takes them after each test.
VIOLATIONS: Final[list[str]] = []

# Methods that the official types leave out: extensions, and tasks, which the 2025 types omit.
UNTYPED: Final = ("tasks/", "notifications/tasks/", "skills/")
# Members of `params` that belong to them; a request that becomes a task says so there.
EXTENSION_MEMBERS: Final = frozenset({"task"})
MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})


class CheckedSession(Session[Any]):
    """A session whose every frame is checked when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Id of a request of the server -> its method, until it is answered.
        self._asked: dict[object, str] = {}

    def request(self, *args: Any, **kwargs: Any) -> Frame:
        """Check a request."""
        return self._checked(super().request(*args, **kwargs))

    def notify(self, *args: Any, **kwargs: Any) -> Frame:
        """Check a notification; a cancel is made of one."""
        return self._checked(super().notify(*args, **kwargs))

    def answer(self, request_id: Any, result: Any) -> Frame | None:
        """Check an answer."""
        frame = super().answer(request_id, result)
        return None if frame is None else self._checked(frame)

    def answer_error(self, request_id: Any, code: int, message: str) -> Frame | None:
        """Check a refusal."""
        frame = super().answer_error(request_id, code, message)
        return None if frame is None else self._checked(frame)

    def frames_to_send(self) -> list[Frame]:
        """Check what nobody asked for: the handshake, answers to pings."""
        return [self._checked(frame) for frame in super().frames_to_send()]

    def events(self) -> list[Any]:
        """Learn what the server asks."""
        events = super().events()
        for event in events:
            if isinstance(event, ServerRequestReceived):
                self._asked[event.request_id] = event.method
        return events

    def _checked(self, frame: Frame) -> Frame:
        revision = LATEST_LEGACY if self.info is None else self.info.revision
        VIOLATIONS.extend(violations_of(frame.data, revision, self._asked))
        return frame


def violations_of(data: bytes, revision: str, asked: dict[object, str]) -> Iterator[str]:
    """Say what is wrong with a message of our client.

    Args:
        data: the message as sent.
        revision: agreed on; a request that names one itself is judged by that.
        asked: maps the id of a request of the server -> its method; an answered one is taken out.

    Yields:
        Where and what, such as "2026-07-28 tools/call params.arguments: Input should be a valid dictionary".
    """
    message = json.loads(data)
    if not isinstance(message, dict):
        yield f"{revision}: a message is an object, not {type(message).__name__}"
        return
    method = message.get("method")
    if method is None:
        yield from _violations_of_answer(message, revision, asked.pop(message.get("id"), "ping"))
        return
    params = message.get("params")
    if isinstance(params, dict):
        meta = params.get("_meta")
        named = params.get("protocolVersion") if method == "initialize" else None
        if isinstance(meta, dict):
            named = meta.get(META_PREFIX + "protocolVersion", named)
        revision = named if isinstance(named, str) else revision
    where = f"{revision} {method}"
    if method.startswith(UNTYPED):
        return
    model = _model_of(method, revision, is_request="id" in message)
    if model is None:
        yield f"{where}: no such {'request' if 'id' in message else 'notification'} of a client in this revision"
        return
    yield from _violations_of_type(model, message, where)
    yield from _unknown(message, MEMBERS, where)
    known = _members(model)
    if isinstance(params, dict) and known is not None:
        yield from _unknown(params, known | EXTENSION_MEMBERS, f"{where} params")


def _violations_of_answer(message: dict[str, Any], revision: str, method: str) -> Iterator[str]:
    from mcp_types.jsonrpc import JSONRPCError, JSONRPCResponse
    from mcp_types.methods import CLIENT_RESULTS

    where = f"{revision} answer to {method}"
    yield from _unknown(message, MEMBERS, where)
    if "error" in message:
        yield from _violations_of_type(JSONRPCError, message, where)
        return
    yield from _violations_of_type(JSONRPCResponse, message, where)
    model = CLIENT_RESULTS.get((method, revision))
    if model is None:
        yield f"{where}: no such request of a server in this revision"
    else:
        yield from _violations_of_type(model, message.get("result"), f"{where} result")


def _unknown(value: dict[str, Any], known: frozenset[str], where: str) -> Iterator[str]:
    yield from (f"{where}: unknown member {member!r}" for member in value if member not in known)


def _violations_of_type(model: Any, value: object, where: str) -> Iterator[str]:
    from pydantic import ValidationError

    try:
        _adapter(model).validate_python(value, by_name=False)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            yield f"{where} {'.'.join(str(step) for step in fault['loc'])}: {fault['msg']}"


@cache
def _adapter(model: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(model)


@cache
def _model_of(method: str, revision: str, *, is_request: bool) -> type[BaseModel] | None:
    """The model of a whole message; None: the revision has no such message. (Imported late: half a second.)"""
    from mcp_types.methods import CLIENT_NOTIFICATIONS, CLIENT_REQUESTS

    return (CLIENT_REQUESTS if is_request else CLIENT_NOTIFICATIONS).get((method, revision))


@cache
def _members(model: type[BaseModel]) -> frozenset[str] | None:
    """Names of the members of `params`; None where any may be."""
    from pydantic import BaseModel

    annotation = model.model_fields["params"].annotation
    kinds = [kind for kind in (get_args(annotation) or (annotation,)) if kind is not type(None)]
    if not all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
        return None
    if any(kind.model_config.get("extra") == "allow" for kind in kinds):
        return None
    return frozenset(field.alias or name for kind in kinds for name, field in kind.model_fields.items())
