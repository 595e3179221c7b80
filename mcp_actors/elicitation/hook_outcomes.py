"""Owns what a hook's end means: its exit code, its output, and what several of them come to.

What this is not: the running of hooks, or the judging of forms (`policy.judge_answer` judges a hook's content too).

Rule 1: a hook that fails, times out or says nonsense decides nothing; it is a warning, never an error of the server's.
Rule 2: of several decisions the most careful wins: decline, cancel, accept; among equals the first configured (S310).
Rule 3: a hook after the answer may tighten it, never loosen it: what a person refused stays refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve, field

from mcp_actors.elicitation.answers import check_value
from mcp_actors.elicitation.fields import Form
from mcp_actors.elicitation.policy import judge_answer
from mcp_actors.elicitation.requests import Action, Answer
from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode_object
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.elicitation.hooks import HookEvent
    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "MAX_OUTPUT_BYTES",
    "MAX_TEXT_CHARS",
    "Exited",
    "Failed",
    "HookEnd",
    "Responded",
    "Verdict",
    "Written",
    "combine",
    "prefill",
    "read_end",
    "read_written",
    "revise_answer",
    "settle_question",
    "specific_output",
]

# What a hook may write; more is no decision. A runner reads no further.
MAX_OUTPUT_BYTES: Final = 1024 * 1024
# Texts in a hook's content are cut here (S317).
MAX_TEXT_CHARS: Final = 10_000
BLOCKED: Final = 2
_CARE: Final[Mapping[Action, int]] = {Action.DECLINE: 2, Action.CANCEL: 1, Action.ACCEPT: 0}


@frozen
class Exited:
    """A command ended, or a tool answered: then the status is 0, and its text is `stdout`."""

    status: int
    stdout: bytes = field(default=b"", repr=False)
    stderr: bytes = field(default=b"", repr=False)


@frozen
class Responded:
    """An HTTP hook answered."""

    status: int
    body: bytes = field(default=b"", repr=False)


@frozen
class Failed:
    """The hook could not be run, or took too long: `reason` says which."""

    reason: str


HookEnd: TypeAlias = Exited | Responded | Failed


@frozen
class Verdict:
    """What one hook says. Without `action` it decided nothing; `warning` says why, where it should have."""

    action: Action | None = None
    # Maps raw field name -> value; None: not said.
    content: JsonObject | None = field(default=None, repr=False)
    warning: str | None = None


@frozen
class Written:
    """What a hook leaves, whatever its kind. A `warning` beside an `output` counts where that decides nothing."""

    output: JsonObject | None = field(default=None, repr=False)
    # What it said when it refused by exit code 2, in one line; None: it did not.
    refusal: str | None = None
    warning: str | None = None


def read_written(end: HookEnd) -> Written:
    """Take an end apart.

    Source:
        S308, S309, S312.
    """
    match end:
        case Failed(reason):
            return Written(warning=reason)
        case Exited(status, _, stderr) if status == BLOCKED:
            return Written(refusal=" ".join(stderr[:400].decode("utf-8", "replace").split()))
        case Exited(status, stdout, _):
            written = _object(stdout) if stdout.lstrip()[:1] == b"{" else Written()
            # Another status than 0 and valid JSON: the JSON still counts (S308).
            return evolve(written, warning=f"a hook ended with status {status}") if status != 0 else written
        case Responded(status, body):
            if not 200 <= status < 300:
                return Written(warning=f"a hook answered {status}")
            if body.lstrip()[:1] == b"{":
                return _object(body)
            return Written(warning="a hook answered with no JSON object" if body.strip() else None)


def _object(raw: bytes) -> Written:
    if len(raw) > MAX_OUTPUT_BYTES:
        return Written(warning="a hook wrote too much")
    try:
        return Written(decode_object(raw.strip()))
    except RemoteProtocolError:
        return Written(warning="a hook wrote malformed JSON")


def specific_output(event: HookEvent, output: JsonObject) -> JsonObject | str:
    """The ``hookSpecificOutput`` of an event, or else empty; a warning when it is another event's (S307)."""
    specific = output.get("hookSpecificOutput")
    if not isinstance(specific, Mapping):
        return {}
    if specific.get("hookEventName") != event:
        return f"a hook wrote hookSpecificOutput for another event than {event}"
    return specific


def read_end(event: HookEvent, end: HookEnd) -> Verdict:
    """Read how a hook ended.

    Source:
        S307-S309, S312, S317.
    """
    written = read_written(end)
    if written.refusal is not None:
        return Verdict(Action.DECLINE, warning=f"a hook refused: {written.refusal}" if written.refusal else None)
    verdict = Verdict() if written.output is None else _read_output(event, written.output)
    return verdict if verdict.action is not None or written.warning is None else Verdict(warning=written.warning)


def _read_output(event: HookEvent, output: JsonObject) -> Verdict:
    specific = specific_output(event, output)
    if isinstance(specific, str):
        return Verdict(warning=specific)
    action, content = specific.get("action"), specific.get("content")
    if action is None and content is None:
        return Verdict()
    if content is not None and not isinstance(content, Mapping):
        return Verdict(warning="a hook wrote content that is no object")
    try:
        # Content alone, about an answer, is the answer with other values.
        decided = Action(str(action if action is not None else Action.ACCEPT))
    except ValueError:
        return Verdict(warning=f"a hook wrote the action {str(action)[:40]!r}")
    return Verdict(decided, None if content is None else {key: _capped(value) for key, value in content.items()})


def _capped(value: Json) -> Json:
    if isinstance(value, str):
        return value[:MAX_TEXT_CHARS]
    return [_capped(inner) for inner in value] if isinstance(value, list | tuple) else value


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """Make one verdict of all, in the order of the configuration; its warning is left out."""
    deciding = [verdict for verdict in verdicts if verdict.action is not None]
    # `max` takes the first of equals.
    return (
        evolve(max(deciding, key=lambda one: _CARE[one.action or Action.ACCEPT]), warning=None)
        if deciding
        else Verdict()
    )


def prefill(request: InputRequest, content: JsonObject) -> InputRequest:
    """Show a form with a hook's values as its defaults; those that do not fit are left out (S318)."""
    if request.form is None:
        return request
    fields = tuple(
        evolve(item, default=content[item.name])
        if content.get(item.name) is not None and check_value(item, content[item.name]) is None
        else item
        for item in request.form.fields
    )
    return evolve(request, form=Form(fields))


def settle_question(request: InputRequest, verdict: Verdict) -> Answer | str | None:
    """Make the answer that hooks gave to a question.

    Returns:
        The answer; None when they decided nothing; a warning when what they decided cannot be sent (S316): then
        `prefill` what fits of it.
    """
    if verdict.action is None:
        return None
    judged = judge_answer(request, Answer(verdict.action, verdict.content))
    return judged if isinstance(judged, Answer) else _misfit(judged)


def revise_answer(request: InputRequest, answer: Answer, verdict: Verdict) -> Answer | str:
    """Make the answer that is sent, of a person's answer and what hooks say to it.

    Returns:
        The answer, masked or refused; a warning when what they decided does not stand, and the answer stays (S288).
    """
    if verdict.action is None:
        return answer
    if answer.action is not Action.ACCEPT:
        is_tighter = _CARE[verdict.action] > _CARE[answer.action]
        return Answer(verdict.action) if is_tighter else answer
    content = answer.content if verdict.content is None else verdict.content
    judged = judge_answer(request, Answer(verdict.action, content))
    return judged if isinstance(judged, Answer) else _misfit(judged)


def _misfit(problems: Mapping[str, str]) -> str:
    return f"a hook's content does not fit the form: {len(problems)} of its fields are wrong"
