"""Owns the messages of the elicitor and the events that it reports.

What this is not: the elicitor (`elicitor`), or what a question is (`elicitation.requests`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from mcp_actors.actors.mailbox import Ask
from mcp_actors.elicitation.requests import Outcome
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.elicitation.requests import Action, Answer, InputRequest

__all__ = [
    "AnswerQuestion",
    "AskQuestion",
    "CompleteUrl",
    "DialogOpened",
    "ElicitorEvent",
    "ElicitorMessage",
    "PendingQuestion",
    "Phase",
    "QuestionAnswered",
    "QuestionQueued",
    "QuestionWarned",
    "UrlCompleted",
    "WithdrawQuestion",
    "WithdrawQuestions",
]


# ── to the elicitor ──────────────────────────────────────────────────────────────────────────────────────────────────


@frozen(eq=False)
class AskQuestion(Ask[Outcome]):
    """Get this question answered, by a hook, the policy or a person. Use `Elicitor.ask`, which also withdraws it."""

    request: InputRequest


@frozen(eq=False)
class WithdrawQuestion:
    """Nobody waits for the answer to this question any more."""

    question: AskQuestion


@frozen
class WithdrawQuestions:
    """This server's questions are void: it is gone."""

    server: str


@frozen
class CompleteUrl:
    """The server says that what it sent a person to a page for is done (S290)."""

    server: str
    elicitation_id: str


@frozen
class AnswerQuestion(Ask[Mapping[str, str]]):
    """A person answers at another door than the dialog.

    Answered with what is wrong: raw field name -> problem, "" for the whole; empty when the answer was taken.
    """

    number: int
    answer: Answer


ElicitorMessage: TypeAlias = AskQuestion | WithdrawQuestion | WithdrawQuestions | CompleteUrl | AnswerQuestion


# ── what it shows and tells ──────────────────────────────────────────────────────────────────────────────────────────


class Phase(enum.StrEnum):
    """Where an open question is."""

    HOOKS = "hooks"  # hooks look at it, before or after a person
    WAITING = "waiting"  # for its dialog, or for the server's notice
    OPEN = "open"  # its dialog is


@frozen(eq=False)
class PendingQuestion:
    """One open question, for status and pages. Untrusted text in it is cleaned."""

    number: int
    phase: Phase
    # On trio's clock.
    since: float
    # As a person is shown it.
    request: InputRequest


@frozen(eq=False)
class QuestionQueued:
    """A question waits for a person."""

    question: PendingQuestion


@frozen(eq=False)
class DialogOpened:
    """A person is asked now: `elicitation_dialog`, or `elicitation_url_dialog` for a url (S298)."""

    question: PendingQuestion


@frozen
class QuestionAnswered:
    """A question has its answer: `elicitation_response`. `action` is None when it was refused with an error."""

    number: int
    server: str
    action: Action | None
    # "hook", "policy", "person", "notice", "withdrawn", "full", "failed" or "shutdown".
    by: str


@frozen
class UrlCompleted:
    """The server says a page is done: `elicitation_complete`."""

    server: str
    elicitation_id: str


@frozen
class QuestionWarned:
    """Something about a question that a person may want to know; quotes no value."""

    server: str
    text: str


ElicitorEvent: TypeAlias = QuestionQueued | DialogOpened | QuestionAnswered | UrlCompleted | QuestionWarned
