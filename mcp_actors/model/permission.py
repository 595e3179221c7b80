"""Owns the permission of a model's calls: which rules count now, whom to ask, and what becomes of the answer.

What this is not: the order in which rules are asked (`tools.permissions`), or the call (`face`).

Rule 1: rules of settings files are those of now: after a reload the new ones count.
Rule 2: an answer lets one call pass, if no deny rule of then means it: a person takes time, and may change the input.
What is remembered of it is rules like others: an allow among them skips neither deny nor ask.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field

from mcp_actors.tools.permission_rules import Rules, Verdict, read_rules
from mcp_actors.tools.permissions import Decision, Mode, PermissionRequest, decide
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from mcp_actors.config.choices import RuleText
    from mcp_actors.fleet.configured import Configured
    from mcp_actors.jsontypes import JsonObject

__all__ = ["Allow", "AskPermission", "Deny", "Permission"]

logger = logging.getLogger("mcp_actors.model")


@frozen
class Allow:
    """Lets a call pass."""

    # What is to be called with instead; None: as the model wrote it.
    updated_input: JsonObject | None = field(default=None, repr=False)
    # Rules that count from now on for this face, as `read_rules` takes them: list -> rules. Ignored where the decision
    # says that the answer cannot be remembered (S237).
    updated_permissions: Mapping[str, Iterable[str]] = field(factory=dict)


@frozen
class Deny:
    """Refuses a call."""

    # Why, for the model.
    message: str = "the person said no"
    # The model is to stop and not to try another way: `ModelResult.is_interrupt` tells the host's loop.
    is_interrupt: bool = False


# Asks a person about one call; plain true and false are an `Allow` and a `Deny` without more.
AskPermission: TypeAlias = "Callable[[PermissionRequest, Decision], Awaitable[bool | Allow | Deny]]"


class Permission:
    """The permission of the calls of one face."""

    def __init__(
        self, configured: Configured, rules: Rules | None, mode: Mode | str, ask: AskPermission | None
    ) -> None:
        """Make it; see `ModelFace` for each. Raises `ValueError` when there is no such mode."""
        self.mode = Mode(mode)
        self._configured = configured
        self._ask = ask
        # Settings files have a say only where the program named no rules.
        self._is_of_settings = rules is None
        # The rules without those that a person wanted remembered, and the lists of settings that they were read from.
        self._base = Rules() if rules is None else rules
        self._written: Mapping[str, tuple[RuleText, ...]] = {}
        # What a person wanted remembered.
        self._remembered = Rules()
        # Both together; another object only when something changed.
        self._rules = self._base

    @property
    def rules(self) -> Rules:
        """The rules that count now; the same object until they change.

        Source:
            S230, S240.
        """
        written = self._configured.loaded.choices.permissions
        if self._is_of_settings and written is not self._written:
            is_same, self._written = written == self._written, written
            if not is_same:
                self._base = read_rules(written)
                self._rules = self._base.joined(self._remembered)
                _log_warnings(self._base)
        return self._rules

    async def settle(self, request: PermissionRequest) -> Allow | Deny:
        """Decide about a call, and ask the person where one is to be asked. Cancellation: as the person's.

        Source:
            S228, S234, S237, S241.
        """
        decision = decide(request, self.rules, self.mode)
        if decision.verdict is Verdict.ALLOW:
            return Allow()
        if decision.verdict is Verdict.DENY:
            return Deny(decision.reason)
        if self._ask is None:
            return Deny(f"{decision.reason}, and there is nobody to ask")
        answer = await self._ask(request, decision)
        if not isinstance(answer, Allow | Deny):
            answer = Allow() if answer is True else Deny()
        if isinstance(answer, Deny):
            return answer
        arguments = request.arguments if answer.updated_input is None else answer.updated_input
        rule = self.rules.first(Verdict.DENY, request.tool, arguments)
        if rule is not None:
            return Deny(f"denied by the rule {rule}")
        if answer.updated_permissions:
            self._remember(answer, decision)
        return answer

    def _remember(self, answer: Allow, decision: Decision) -> None:
        if not decision.can_remember:
            logger.warning("an answer was not remembered: %s", decision.reason)
            return
        fresh = read_rules(answer.updated_permissions)
        _log_warnings(fresh)
        self._remembered = self._remembered.joined(evolve(fresh, warnings=()))
        self._rules = self._base.joined(self._remembered)


def _log_warnings(rules: Rules) -> None:
    for warning in rules.warnings:
        logger.warning("%s", warning)
