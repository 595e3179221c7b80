"""Owns the one shape of every question a server asks, in either era, and of its answer.

What this is not: what a form holds (`forms`), which URL may be opened (`urls`), who answers (`policy`, `hooks`).

Rule 1: a question that cannot be put to a person is refused with the code that the server is owed, never half-read.
Rule 2: what a person sees is cleaned; what goes back (field names, choices, keys) is as the server wrote it.
Rule 3: what is read here was judged before, by `protocol.question_rules`: its kind and mode were declared (S294, F08).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.elicitation.forms import RefusedForm, read_form
from mcp_actors.elicitation.urls import JudgedUrl, RefusedUrl, judge_url
from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS
from mcp_actors.protocol.question_rules import Refused, elicitation_mode
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from mcp_actors.elicitation.fields import Form
    from mcp_actors.elicitation.forms import Clean
    from mcp_actors.errors import RpcError
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import RequestId

__all__ = [
    "CANCELLED",
    "DECLINED",
    "Action",
    "Answer",
    "InputRequest",
    "Kind",
    "Outcome",
    "Stage",
    "capabilities",
    "read_elicitation",
    "read_url_elicitations",
    "url_entries",
]

URL_ELICITATION_REQUIRED: Final = -32042
# Questions in one -32042: a person is not sent to more pages for one call.
MAX_URLS: Final = 8
# A message longer than this is no question any more.
MAX_MESSAGE_CHARS: Final = 8192
MAX_ID_CHARS: Final = 1024


class Kind(enum.StrEnum):
    """What is asked for."""

    FORM = "form"
    URL = "url"
    SAMPLING = "sampling"
    ROOTS = "roots"


class Stage(enum.StrEnum):
    """How far a question has come."""

    FIRST = "first"
    # The person went to the page; now: is it done? The server's notice answers it as well (S290).
    COMPLETION = "completion"


class Action(enum.StrEnum):
    """What a person can do (S291). Dismissing is cancel."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@frozen
class Answer:
    """The answer to an elicitation. `content` maps raw field name -> value; only for an accepted form."""

    action: Action
    content: JsonObject | None = field(default=None, repr=lambda content: "None" if content is None else "<content>")

    def __attrs_post_init__(self) -> None:
        # Programs make answers too, and what they make is judged as an answer only where it is one (fault 76).
        if not isinstance(self.action, Action):
            raise LocalProtocolError(reason="the action of an answer is an Action")
        if not isinstance(self.content, Mapping | None):
            raise LocalProtocolError(reason="the content of an answer maps names of fields to their values")

    def result(self) -> JsonObject:
        """The answer as it goes on the wire: content only where it was accepted (S289)."""
        if self.action is Action.ACCEPT and self.content is not None:
            return {"action": str(self.action), "content": self.content}
        return {"action": str(self.action)}


DECLINED: Final = Answer(Action.DECLINE)
CANCELLED: Final = Answer(Action.CANCEL)


Outcome: TypeAlias = Answer | Refused


@frozen(eq=False)
class InputRequest:
    """One question of one server."""

    # Raw name of the server that asks; a person is always shown it (S296, E03).
    server: str
    # Its id (legacy) or its key in the result (modern); for logs and withdrawal, unique for a server only.
    key: RequestId
    kind: Kind
    # Cleaned.
    message: str = ""
    # Of a form: its fields, and the schema as sent, for hooks.
    form: Form | None = None
    schema: JsonObject = field(factory=dict, repr=False)
    # Of a url.
    url: JudgedUrl | None = None
    # Legacy only: what the server's notice of completion will name.
    elicitation_id: str | None = None
    stage: Stage = Stage.FIRST
    # What was wrong with the answer before: maps raw field name -> problem; "" is the form as a whole.
    problems: Mapping[str, str] = field(factory=dict)


def capabilities(kinds: AbstractSet[Kind], *, has_sampling_tools: bool = False) -> dict[str, Json]:
    """The client capabilities for what handlers exist for: nothing is declared that nobody answers (S110, F08)."""
    modes: dict[str, Json] = {str(kind): {} for kind in (Kind.FORM, Kind.URL) if kind in kinds}
    declared: dict[str, Json] = {"elicitation": modes} if modes else {}
    if Kind.SAMPLING in kinds:
        declared["sampling"] = {"tools": {}} if has_sampling_tools else {}
    if Kind.ROOTS in kinds:
        declared["roots"] = {"listChanged": True}
    return declared


def read_elicitation(
    server: str,
    key: RequestId,
    params: JsonObject,
    *,
    clean: Clean,
) -> InputRequest | Refused:
    """Read the params of ``elicitation/create``, or of an input request of that method.

    Args:
        server: raw name of the server.
        key: id of the request, or its key.
        params: as sent, and not refused by `question_rules.refuse_question`.
        clean: makes text safe to be seen (`tools.sanitise.clean_text`).

    Source:
        S283, S284, spec_client 9.5.
    """
    message = params.get("message")
    try:
        cleaned = clean(message if isinstance(message, str) else "")[:MAX_MESSAGE_CHARS]
        if elicitation_mode(params) == Kind.URL:
            return _read_url(server, key, cleaned, params)
        schema = params.get("requestedSchema")
        form = read_form(schema, clean)
    except RemoteProtocolError as exc:
        return Refused(INVALID_PARAMS, exc.reason)
    if isinstance(form, RefusedForm):
        return Refused(INVALID_PARAMS, form.reason)
    raw = schema if isinstance(schema, Mapping) else {}
    return InputRequest(server, key, Kind.FORM, cleaned, form=form, schema=raw)


def _read_url(server: str, key: RequestId, message: str, params: JsonObject) -> InputRequest | Refused:
    url = params.get("url")
    judged = judge_url(url) if isinstance(url, str) else RefusedUrl("'url' is no text")
    if isinstance(judged, RefusedUrl):
        return Refused(INVALID_PARAMS, judged.reason)
    # Required in the legacy era, gone in the modern one; a server that leaves it out only gets no notice through.
    known = params.get("elicitationId")
    elicitation_id = known if isinstance(known, str) and 0 < len(known) <= MAX_ID_CHARS else None
    return InputRequest(server, key, Kind.URL, message, url=judged, elicitation_id=elicitation_id)


def url_entries(error: RpcError, *, kinds: AbstractSet[Kind]) -> tuple[JsonObject, ...] | None:
    """Find the pages that a -32042 error lists, as sent, each id once.

    Returns:
        The entries; None when it is a plain error: another code, no entries or too many, an entry without id, with
        another mode or with a URL that may not be opened.

    Source:
        S207, F10.
    """
    data = error.data
    entries = data.get("elicitations") if isinstance(data, Mapping) else None
    if error.code != URL_ELICITATION_REQUIRED or Kind.URL not in kinds or not isinstance(entries, list | tuple):
        return None
    found: dict[str, JsonObject] = {}
    for entry in entries:
        if not isinstance(entry, Mapping) or entry.get("mode") != "url":
            return None
        known, url = entry.get("elicitationId"), entry.get("url")
        if not isinstance(known, str) or not 0 < len(known) <= MAX_ID_CHARS:
            return None
        if not isinstance(url, str) or isinstance(judge_url(url), RefusedUrl):
            return None
        found.setdefault(known, entry)
    return tuple(found.values()) if 0 < len(found) <= MAX_URLS else None


def read_url_elicitations(
    server: str, error: RpcError, *, kinds: AbstractSet[Kind], clean: Clean
) -> tuple[InputRequest, ...] | None:
    """Read the questions that a -32042 error lists; None when it is a plain error (see `url_entries`)."""
    entries = url_entries(error, kinds=kinds)
    if entries is None:
        return None
    read = [read_elicitation(server, str(entry["elicitationId"]), entry, clean=clean) for entry in entries]
    questions = tuple(question for question in read if isinstance(question, InputRequest))
    return questions if len(questions) == len(read) else None
