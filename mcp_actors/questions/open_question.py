"""Owns one open question of the elicitor: where it stands, what it came to, and how it is settled from outside.

What this is not: the elicitor, whose loop and tasks are the only writers here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import field

from mcp_actors.elicitation.requests import CANCELLED
from mcp_actors.questions.messages import PendingQuestion, Phase
from mcp_actors.values import define

if TYPE_CHECKING:
    from mcp_actors.actors.mailbox import Envelope
    from mcp_actors.elicitation.requests import Answer, InputRequest, Outcome
    from mcp_actors.questions.messages import AskQuestion, ElicitorMessage

__all__ = ["OpenQuestion"]


@define(eq=False)
class OpenQuestion:
    """One open question. Its task owns it; the loop may settle it from outside."""

    number: int
    question: AskQuestion
    # Holds the reply that is owed.
    envelope: Envelope[ElicitorMessage]
    since: float
    # As a person is shown it: without what must not be asked, with what hooks filled in.
    request: InputRequest
    phase: Phase = Phase.HOOKS
    # What is sent, and who said so; written once.
    outcome: Outcome | None = None
    by: str = "shutdown"
    # What a person said, already judged, at another door or by the server's notice.
    given: Answer | None = None
    # Set when the dialog may open.
    turn: trio.Event = field(factory=trio.Event)
    # The whole task, and the part of it in which a person is asked.
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    dialog: trio.CancelScope = field(factory=trio.CancelScope)

    @property
    def takes_answers(self) -> bool:
        """Whether a person may still answer: hooks come first, and one answer is enough."""
        return self.phase is not Phase.HOOKS and self.outcome is None and self.given is None

    def settle(self, outcome: Outcome, by: str) -> None:
        """Say what is sent; the first to say so wins."""
        if self.outcome is None:
            self.outcome, self.by = outcome, by

    def withdraw(self) -> None:
        """End it, wherever it is: nobody wants to know any more."""
        self.settle(CANCELLED, "withdrawn")
        self.scope.cancel()

    def give(self, answer: Answer, by: str) -> None:
        """Answer in the person's place; the dialog closes."""
        self.given, self.by = answer, by
        self.dialog.cancel()

    def show(self) -> PendingQuestion:
        """Describe it as it is now."""
        return PendingQuestion(self.number, self.phase, self.since, self.request)
