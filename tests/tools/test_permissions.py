"""Permissions: modes, and the order of evaluation, as tables."""

from __future__ import annotations

import pytest

from mcp_actors.tools.permission_rules import Verdict, read_rules
from mcp_actors.tools.permissions import Mode, PermissionRequest, decide

ALLOW, ASK, DENY = Verdict


T = "mcp__s__t"
ORDER = [
    # hook, deny, ask, allow, mode -> verdict
    (None, 0, 0, 0, Mode.DEFAULT, ASK),
    (None, 0, 0, 1, Mode.DEFAULT, ALLOW),
    (None, 0, 1, 1, Mode.DEFAULT, ASK),
    (None, 1, 1, 1, Mode.DEFAULT, DENY),
    (ALLOW, 0, 0, 0, Mode.DEFAULT, ALLOW),
    (ALLOW, 0, 1, 0, Mode.DEFAULT, ASK),
    (ALLOW, 1, 0, 0, Mode.DEFAULT, DENY),
    (ASK, 0, 0, 1, Mode.DEFAULT, ASK),
    (DENY, 0, 0, 1, Mode.BYPASS, DENY),
    (None, 0, 0, 0, Mode.BYPASS, ALLOW),
    (None, 0, 1, 0, Mode.BYPASS, ASK),
    (None, 1, 0, 0, Mode.BYPASS, DENY),
    (None, 0, 0, 0, Mode.ACCEPT_EDITS, ASK),
    (None, 0, 0, 1, Mode.ACCEPT_EDITS, ALLOW),
    (None, 0, 0, 0, Mode.DONT_ASK, DENY),
    (None, 0, 0, 1, Mode.DONT_ASK, ALLOW),
    (None, 0, 1, 1, Mode.DONT_ASK, DENY),
    (None, 0, 0, 1, Mode.PLAN, DENY),
    (ALLOW, 0, 0, 1, Mode.PLAN, DENY),
    (None, 0, 0, 0, Mode.AUTO, ASK),
    (None, 0, 0, 1, Mode.AUTO, ALLOW),
]


@pytest.mark.parametrize(("hook", "deny", "ask", "allow", "mode", "expected"), ORDER)
def test_the_order_of_evaluation(
    hook: Verdict | None, deny: int, ask: int, allow: int, mode: Mode, expected: Verdict
) -> None:
    """Deny before ask before mode before allow before the person; a hook's allow skips neither deny nor ask (S234)."""
    rules = read_rules({"deny": [T] * deny, "ask": [T] * ask, "allow": [T] * allow})

    assert decide(PermissionRequest(T, hook=hook), rules, mode).verdict is expected


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("hook", [None, ALLOW])
def test_a_tool_may_insist_on_a_person(mode: Mode, hook: Verdict | None) -> None:
    """It is asked about in every mode, and cannot be remembered; where nobody is asked it is denied (S237)."""
    decision = decide(PermissionRequest(T, requires_user_interaction=True, hook=hook), read_rules({"allow": [T]}), mode)

    assert decision.verdict is (DENY if mode is Mode.DONT_ASK else ASK)
    assert not decision.can_remember


def test_what_only_reads_is_asked_about_while_planning() -> None:
    """While planning even a tool that claims to read only goes through the person (S235)."""
    rules = read_rules({"allow": [T]})

    assert decide(PermissionRequest(T, is_read_only=True), rules, Mode.PLAN).verdict is ASK


def test_resource_tools_are_free() -> None:
    """Listing and reading resources needs no permission, but can be denied (S242)."""
    request = PermissionRequest("ReadMcpResourceTool", {"server": "s", "uri": "x:y"})

    assert decide(request, read_rules({}), Mode.DONT_ASK).verdict is ALLOW
    assert decide(request, read_rules({"deny": ["ReadMcpResourceTool"]})).verdict is DENY


def test_edits_of_the_host_are_accepted() -> None:
    """The mode that accepts edits means the host's own tools (S235)."""
    assert decide(PermissionRequest("Write"), read_rules({}), Mode.ACCEPT_EDITS).verdict is ALLOW
    assert decide(PermissionRequest("mcp__s__Write"), read_rules({}), Mode.ACCEPT_EDITS).verdict is ASK


def test_an_organisation_may_insist() -> None:
    """A connector that the organisation wants to be asked about is, whatever allows it (S238)."""
    assert decide(PermissionRequest(T, is_org_ask=True), read_rules({"allow": [T]}), Mode.BYPASS).verdict is ASK


def test_modes_by_name() -> None:
    """Modes are read by their names, with one alias (S235)."""
    assert (Mode("manual"), Mode("plan")) == (Mode.DEFAULT, Mode.PLAN)
    with pytest.raises(ValueError, match="yolo"):
        Mode("yolo")
