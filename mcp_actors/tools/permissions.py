"""Owns whether a call may be made: the modes, and the order in which hooks, rules and modes are asked.

What this is not: how rules are read (`permission_rules`), or asking a person. `decide` says that one must be asked;
a host asks, and comes back with the answer.

Rule 1: there is one check for tools of servers and tools of the host, by full name (S228, S229): a tool called `Write`
on a server is ``mcp__server__Write`` here and never meets the rules of the host's own `Write`, nor the reverse.
Rule 2: the order is deny, ask, mode, allow, person; a deny of any scope wins, and an allow of a hook skips neither deny
nor ask (S234).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from attrs import Factory, field

from mcp_actors.tools.naming import ToolNames
from mcp_actors.tools.permission_rules import Rule, Rules, Verdict
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import JsonObject

__all__ = ["FREE_TOOLS", "Decision", "Mode", "PermissionRequest", "decide"]

# Listing and reading resources needs no permission (S242).
FREE_TOOLS: Final = frozenset({"ListMcpResourcesTool", "ReadMcpResourceTool"})
# What acceptEdits lets pass: the host's own file tools; never a tool of a server (S235).
EDIT_TOOLS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})


class Mode(enum.StrEnum):
    """How a host treats calls that no rule speaks of; ``manual`` is read as the default (S235)."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    AUTO = "auto"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"

    @classmethod
    def _missing_(cls, value: object) -> Mode | None:
        return cls.DEFAULT if value == "manual" else None


@frozen
class PermissionRequest:
    """A call that wants to be made."""

    # Callable name for a tool of a server, plain name for a tool of the host; never a title (S229).
    name: str
    arguments: JsonObject = field(factory=dict, repr=False)
    is_read_only: bool = False
    requires_user_interaction: bool = False
    # What hooks said before; None when they said nothing.
    hook: Verdict | None = None
    hook_reason: str = ""
    # True when the organisation wants to be asked about this connector each time (S238).
    is_org_ask: bool = False
    # What rules may call the tool by; by default `name` alone.
    tool: ToolNames = field(default=Factory(lambda self: ToolNames(self.name, self.name), takes_self=True), repr=False)


@frozen
class Decision:
    """What is to happen, and why, in words for a person."""

    verdict: Verdict
    reason: str
    rule: Rule | None = None
    # Whether a person may say "always"; never where every call has to be asked (S237).
    can_remember: bool = True


def decide(request: PermissionRequest, rules: Rules, mode: Mode = Mode.DEFAULT) -> Decision:
    """Decide about one call.

    Returns:
        ALLOW or DENY, or ASK: the person decides, and the answer of a prompt tool counts as a person's except where
        `Decision.can_remember` is false (S237).

    Source:
        S228-S242.
    """
    if request.hook is Verdict.DENY:
        return Decision(Verdict.DENY, "denied by a hook" + (f": {request.hook_reason}" if request.hook_reason else ""))
    rule = rules.first(Verdict.DENY, request.tool, request.arguments)
    if rule is not None:
        return Decision(Verdict.DENY, f"denied by the rule {rule}", rule)
    if request.requires_user_interaction:
        return _asked(mode, "the tool asks for a person on every call", can_remember=False)
    rule = rules.first(Verdict.ASK, request.tool, request.arguments)
    if rule is not None:
        return _asked(mode, f"the rule {rule} wants to be asked", rule)
    if request.is_org_ask:
        return _asked(mode, "the organisation wants to be asked", can_remember=False)
    if request.hook is Verdict.ASK:
        return _asked(mode, "a hook wants to be asked" + (f": {request.hook_reason}" if request.hook_reason else ""))
    if request.name in FREE_TOOLS:
        return Decision(Verdict.ALLOW, "reading resources needs no permission")
    if mode is Mode.BYPASS:
        return Decision(Verdict.ALLOW, "the mode lets everything pass")
    if mode is Mode.PLAN and not request.is_read_only:
        return Decision(Verdict.DENY, "only planning: nothing may be changed now")
    if mode is Mode.ACCEPT_EDITS and request.name in EDIT_TOOLS:
        return Decision(Verdict.ALLOW, "the mode accepts edits")
    if request.hook is Verdict.ALLOW:
        return Decision(Verdict.ALLOW, "allowed by a hook")
    rule = rules.first(Verdict.ALLOW, request.tool, request.arguments)
    # In plan mode even what only reads goes through the person: the hint is a claim of the server (S235, E05).
    if rule is not None and mode is not Mode.PLAN:
        return Decision(Verdict.ALLOW, f"allowed by the rule {rule}", rule)
    return _asked(mode, "no rule speaks of it")


def _asked(mode: Mode, reason: str, rule: Rule | None = None, *, can_remember: bool = True) -> Decision:
    """Ask, or deny where nobody is to be asked (S235, S237)."""
    if mode is Mode.DONT_ASK:
        return Decision(Verdict.DENY, f"{reason}, and nobody is to be asked", rule, can_remember)
    return Decision(Verdict.ASK, reason, rule, can_remember)
