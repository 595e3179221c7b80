"""Owns who answers a question when no hook did: a person, a file, the defaults, or nobody.

What this is not: hooks, which come first (S286); the queue of those that a person answers (`queue`).

Rule 1: without anybody to ask, the answer is decline (S293).
Rule 2: nothing but a person consents to opening a URL, unless the file says so for it by name.
Rule 3: a form that asks for a secret is declined, whoever would fill it in: secrets belong on a page of the server, not
in what passes through a client and its logs (spec_client 12). Where such a field may be left out, it is.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import evolve, field

from mcp_actors.elicitation.answers import fill_form
from mcp_actors.elicitation.fields import Form
from mcp_actors.elicitation.requests import DECLINED, Action, Answer, InputRequest, Kind, Stage
from mcp_actors.errors import ConfigError, LocalProtocolError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["AskPerson", "Mode", "Policy", "PreparedAnswer", "Settled", "decide", "judge_answer", "read_answers"]


class Mode(enum.StrEnum):
    """Who answers."""

    ASK = "ask"
    ACCEPT_DEFAULTS = "accept-defaults"
    DECLINE = "decline"
    # Prepared answers decide; what they do not cover is declined.
    ANSWERS = "answers"


@frozen
class PreparedAnswer:
    """One answer given in advance. It applies where `server` and `message` fit; None fits all."""

    action: Action
    content: JsonObject = field(factory=dict, repr=False)
    server: str | None = None
    # A piece of the message, whatever its case.
    message: str | None = None

    def __attrs_post_init__(self) -> None:
        Answer(self.action, self.content)  # it must be one
        if not (isinstance(self.content, Mapping) and isinstance(self.message, str | None)):
            raise LocalProtocolError(reason="a prepared answer has an object of values, and a piece of a message")

    def fits(self, request: InputRequest) -> bool:
        """Whether it answers this question."""
        if self.server is not None and self.server != request.server:
            return False
        return self.message is None or self.message.casefold() in request.message.casefold()


@frozen
class Policy:
    """How questions are answered, and how many may wait."""

    mode: Mode = Mode.ASK
    # The first that fits wins.
    answers: tuple[PreparedAnswer, ...] = ()
    refuses_secrets: bool = True
    # Questions of one server that are open at once; more are cancelled (S300).
    max_per_server: int = 20
    # Of all servers together: a person's patience, and memory.
    max_open: int = 256
    # How often an answer that does not fit its form is asked for again.
    max_attempts: int = 5
    # Seconds that a page in the browser may take before the question about it is cancelled (spec_client 9.5).
    completion_timeout: float = 900.0


@frozen
class Settled:
    """The policy answers. `reason` says why, for the log and the person who reads it; it quotes no value."""

    answer: Answer
    reason: str


@frozen(eq=False)
class AskPerson:
    """A person answers. `request` is what to show: without the fields that must not be asked for."""

    request: InputRequest
    # What was changed in it, in words.
    notes: tuple[str, ...] = ()


def decide(policy: Policy, request: InputRequest, *, has_prompter: bool) -> Settled | AskPerson:
    """Decide who answers a question.

    Whether a page is done is a person's or the server's to say; only a prepared consent says it in advance, since with
    it nobody is there to say so later.

    Source:
        S287, S293, S300, E03, E04.
    """
    if request.stage is Stage.COMPLETION and policy.mode is not Mode.ANSWERS:
        return AskPerson(request)
    shown = request
    notes: tuple[str, ...] = ()
    if policy.refuses_secrets and request.form is not None and request.form.secret_fields:
        secret = request.form.secret_fields
        names = ", ".join(item.title[:40] for item in secret)
        if any(item.is_required for item in secret):
            return Settled(DECLINED, f"the form asks for a secret: {names}")
        shown = evolve(request, form=Form(tuple(item for item in request.form.fields if not item.asks_secret)))
        notes = (f"left out, since a form must not ask for secrets: {names}",)
    match policy.mode:
        case Mode.DECLINE:
            return Settled(DECLINED, "everything is declined")
        case Mode.ACCEPT_DEFAULTS:
            return _accept_defaults(shown)
        case Mode.ANSWERS:
            prepared = next((one for one in policy.answers if one.fits(shown)), None)
            return Settled(DECLINED, "no prepared answer fits") if prepared is None else _prepared(prepared, shown)
        case Mode.ASK:
            return AskPerson(shown, notes) if has_prompter else Settled(DECLINED, "there is nobody to ask")


def _accept_defaults(request: InputRequest) -> Settled:
    if request.form is None:
        return Settled(DECLINED, "a URL is opened with a person's consent only")
    filled = fill_form(request.form, {})
    if filled.problems:
        return Settled(DECLINED, f"there is no default for {', '.join(filled.problems)[:200]}")
    return Settled(Answer(Action.ACCEPT, filled.content), "the defaults were accepted")


def _prepared(prepared: PreparedAnswer, request: InputRequest) -> Settled:
    if prepared.action is not Action.ACCEPT:
        return Settled(Answer(prepared.action), "the prepared answer says so")
    if request.form is None:
        # A bare object of values is meant for forms; it is no consent to whatever page a server names.
        if prepared.server is None and prepared.message is None:
            return Settled(DECLINED, "a prepared answer consents to a URL only where it names server or message")
        return Settled(Answer(Action.ACCEPT), "the prepared answer consents")
    names = {item.name for item in request.form.fields}
    filled = fill_form(request.form, {name: value for name, value in prepared.content.items() if name in names})
    if filled.problems:
        titles = {item.name: item.title for item in request.form.fields}
        told = "; ".join(f"{titles[name]} {problem}" for name, problem in filled.problems.items())
        return Settled(DECLINED, f"the prepared answer does not fit: {told[:300]}")
    return Settled(Answer(Action.ACCEPT, filled.content), "the prepared answer was given")


def judge_answer(request: InputRequest, answer: Answer) -> Answer | Mapping[str, str]:
    """Judge an answer before it is sent.

    Returns:
        The answer as it may be sent, defaults filled in; or what is wrong with it (raw field name -> problem).

    Source:
        S289, S292: content goes with an accepted form only, and only when it fits.
    """
    if answer.action is not Action.ACCEPT or request.kind is not Kind.FORM:
        return Answer(answer.action)
    filled = fill_form(request.form or Form(), answer.content or {})
    return filled.problems or Answer(Action.ACCEPT, filled.content)


# ── answers given in advance ─────────────────────────────────────────────────────────────────────────────────────────

_RULE_KEYS: Final = frozenset({"server", "message", "action", "content"})


def read_answers(document: Json, *, file: str | None = None) -> tuple[PreparedAnswer, ...]:
    """Read prepared answers.

    Args:
        document: an array of rules ``{"server"?, "message"?, "action"?, "content"?}``, of which the first that fits
            wins; or one object of values by field name, for every form.
        file: where it stands, for errors.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(document, Mapping):
        return (PreparedAnswer(Action.ACCEPT, document),)
    if not isinstance(document, list | tuple):
        raise ConfigError(file=file, reason="prepared answers are an array of rules, or an object of values")
    return tuple(_read_rule(rule, f"[{index}]", file) for index, rule in enumerate(document))


def _read_rule(rule: Json, key: str, file: str | None) -> PreparedAnswer:
    if not isinstance(rule, Mapping):
        raise ConfigError(file=file, key=key, reason="a prepared answer is an object")
    unknown = sorted(rule.keys() - _RULE_KEYS)
    if unknown:
        raise ConfigError(file=file, key=f"{key}.{unknown[0]}", reason=f"a rule has {', '.join(sorted(_RULE_KEYS))}")
    content, server, message = rule.get("content", {}), rule.get("server"), rule.get("message")
    if not isinstance(content, Mapping):
        raise ConfigError(file=file, key=f"{key}.content", reason="values are an object")
    if not isinstance(server, str | None) or not isinstance(message, str | None):
        raise ConfigError(file=file, key=key, reason="'server' and 'message' are texts")
    try:
        action = Action(str(rule.get("action", "accept")))
    except ValueError:
        known = ", ".join(Action)
        raise ConfigError(file=file, key=f"{key}.action", reason=f"an action is one of {known}") from None
    return PreparedAnswer(action, content, server, message)
