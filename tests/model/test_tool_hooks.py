"""Hooks around a model's calls: what their ends mean, and what follows for the call, its result and the model."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from scripted_fleet import spec

from mcp_actors.elicitation.hook_outcomes import MAX_OUTPUT_BYTES, Exited, Failed, HookEnd, Responded
from mcp_actors.elicitation.hooks import TOOL_EVENTS, HookEvent, read_hooks
from mcp_actors.model.face import ModelFace
from mcp_actors.model.tool_hooks import Said, read_said
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.permission_rules import Rules, Verdict, read_rules
from mcp_actors.tools.permissions import Mode
from mcp_actors.tools.plans import ModelText

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deadline(20)

PRE, POST = TOOL_EVENTS
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def written(event: HookEvent, **specific: object) -> bytes:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **specific}}).encode()


# ── what an end means ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("event", "end", "said"),
    [
        (PRE, Exited(0), Said()),
        (PRE, Exited(0, b"all is well"), Said()),
        (PRE, Exited(0, b"{}"), Said()),
        (PRE, Exited(2, b"", b"not\n today"), Said(DENY, "not today")),
        (PRE, Exited(2, written(PRE, permissionDecision="allow")), Said(DENY)),
        (PRE, Exited(1), Said(warning="a hook ended with status 1")),
        (PRE, Exited(1, written(PRE, permissionDecision="ask")), Said(ASK)),
        (PRE, Exited(-9, b"{"), Said(warning="a hook ended with status -9")),
        (PRE, Exited(0, b"{"), Said(warning="a hook wrote malformed JSON")),
        (PRE, Exited(0, b"{" + b" " * MAX_OUTPUT_BYTES + b"}"), Said(warning="a hook wrote too much")),
        (PRE, Failed("took longer"), Said(warning="took longer")),
        (PRE, Responded(500, b"{}"), Said(warning="a hook answered 500")),
        (PRE, Responded(200, b"ok"), Said(warning="a hook answered with no JSON object")),
        (PRE, Responded(204), Said()),
        (PRE, Responded(200, written(PRE, permissionDecision="deny")), Said(DENY)),
        (PRE, Exited(0, written(PRE, permissionDecision="defer")), Said(ASK)),
        (
            PRE,
            Exited(0, written(PRE, permissionDecision="allow", permissionDecisionReason="safe")),
            Said(ALLOW, "safe"),
        ),
        (PRE, Exited(0, written(PRE, permissionDecision="maybe")), Said(warning="a hook wrote the decision 'maybe'")),
        (PRE, Exited(0, written(PRE, permissionDecision=True)), Said(warning="a hook wrote the decision 'True'")),
        (PRE, Exited(0, written(PRE, updatedInput={"a": 1})), Said(replacement={"a": 1})),
        (PRE, Exited(0, written(PRE, updatedInput=[1])), Said(warning="a hook wrote updatedInput that is no object")),
        (PRE, Exited(0, written(PRE, additionalContext="hot")), Said(context="hot")),
        (PRE, Exited(0, written(PRE, updatedToolOutput="x")), Said()),
        (PRE, Exited(0, b'{"decision": "block", "reason": "no"}'), Said(DENY, "no")),
        (PRE, Exited(0, b'{"decision": "approve"}'), Said(ALLOW)),
        (PRE, Exited(0, b'{"continue": false, "stopReason": "enough"}'), Said(DENY, "enough")),
        (POST, Exited(0, written(POST, updatedToolOutput="x")), Said(replacement="x")),
        (POST, Exited(0, written(POST, updatedMCPToolOutput=[])), Said(replacement=[])),
        (POST, Exited(0, b'{"decision": "block", "reason": "look again"}'), Said(DENY, "look again")),
    ],
)
def test_an_end_means(event: HookEvent, end: HookEnd, said: Said) -> None:
    """S308, S312, S314, S315: every way to end has one meaning; nonsense decides nothing and is told."""
    assert read_said(event, end) == said


def test_another_event_decides_nothing() -> None:
    """S307: what is written for another event has no effect."""
    said = read_said(PRE, Exited(0, written(POST, permissionDecision="deny")))

    assert said.verdict is None
    assert said.warning is not None


def test_texts_are_cut() -> None:
    """S317: 10,000 characters are enough for a model."""
    said = read_said(PRE, Exited(0, written(PRE, permissionDecisionReason="x" * 20_000, permissionDecision="deny")))

    assert len(said.reason) == 10_000


# ── what follows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def shop() -> ScriptedServer:
    server = ScriptedServer("shop")
    promise = {"type": "object", "properties": {"card": {"type": "string"}}, "required": ["card"]}
    secret = {"content": [{"type": "text", "text": "card 4111"}], "structuredContent": {"card": "4111"}}
    server.add_tool("buy", lambda call: f"bought {call.arguments['item']}")
    server.add_tool("card", lambda call: secret, outputSchema=promise)
    server.add_tool("fail", lambda call: {"content": [{"type": "text", "text": "card 4111"}], "isError": True})
    return server


def says(output: bytes, *, status: int = 0, error: str = "") -> dict[str, object]:
    code = f"import sys; sys.stdout.write({output.decode()!r}); sys.stderr.write({error!r}); sys.exit({status})"
    return {"type": "command", "command": sys.executable, "args": ["-c", code]}


def hooks(event: HookEvent, *handlers: dict[str, object], matcher: str = "mcp__shop__.*"):
    return read_hooks({event: [{"matcher": matcher, "hooks": list(handlers)}]}, TOOL_EVENTS)


def texts(result) -> list[str]:
    return [block.text for block in result.blocks if isinstance(block, ModelText)]


@pytest.mark.parametrize(
    ("handlers", "rules", "shown"),
    [
        ([says(written(PRE, permissionDecision="allow"))], {}, "bought tea"),
        ([says(b"")], {}, "nobody to ask"),
        ([says(written(PRE, permissionDecision="allow")), says(b"", status=2, error="too dear")], {}, "too dear"),
        ([says(written(PRE, permissionDecision="allow")), says(written(PRE, permissionDecision="ask"))], {}, "to ask"),
        (
            [says(written(PRE, permissionDecision="allow"))],
            {"deny": ["mcp__shop__buy(item:tea)"]},
            "denied by the rule",
        ),
        ([says(written(PRE, updatedInput={"item": "milk"}))], {"allow": ["mcp__shop"]}, "bought milk"),
        (
            [says(written(PRE, updatedInput={"item": "gun"}))],
            {"deny": ["mcp__shop__buy(item:gun)"]},
            "denied by the rule",
        ),
        ([says(b"", status=1)], {"allow": ["mcp__shop"]}, "bought tea"),
        ([{"type": "command", "command": "/no/such/program", "args": []}], {"allow": ["mcp__shop"]}, "bought tea"),
        ([{"type": "mcp_tool", "server": "away", "tool": "x"}], {"allow": ["mcp__shop"]}, "bought tea"),
    ],
)
async def test_hooks_come_before_the_rules(handlers, rules, shown: str) -> None:
    """S314, S234: the most careful verdict wins, new input is what the rules see, no allow overrules a rule."""
    server = shop()
    async with open_runtime([spec("shop", server)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=read_rules(rules), hooks=hooks(PRE, *handlers))
        result = await face.call("mcp__shop__buy", {"item": "tea"})

    assert shown in texts(result)[0]
    assert len(server.seen("tools/call")) == shown.startswith("bought")


@pytest.mark.parametrize(
    ("tool", "output", "shown"),
    [
        ("card", "hidden", ["hidden"]),
        ("card", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a", "b"]),
        ("card", {"content": [{"type": "text", "text": "whole"}]}, ["whole"]),
        ("card", {"n": 1}, ['{"n":1}']),
        ("card", [], ["[]"]),
        ("fail", "hidden", ["card 4111"]),
    ],
)
async def test_new_output_takes_the_place_of_all(tool: str, output: object, shown: list[str]) -> None:
    """S315: what was masked is nowhere, structured content neither, and a schema is not held against a hook's word."""
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        mask = hooks(POST, says(written(POST, updatedToolOutput=output)))
        face = ModelFace(runtime, rules=Rules(), mode=Mode.BYPASS, is_strict=True, hooks=mask)
        result = await face.call(f"mcp__shop__{tool}")

    assert texts(result) == shown
    assert result.is_error == (tool == "fail")


async def test_a_model_hears_what_hooks_remark() -> None:
    """S314, S315: context of either side follows the result; a block after the call tells its reason."""
    before = {"matcher": "", "hooks": [says(written(PRE, permissionDecision="allow", additionalContext="cheap"))]}
    after = {"matcher": "mcp__shop__buy", "hooks": [says(b"", status=2, error="count it"), says(b"{}")]}
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        section = {PRE: [before], POST: [after]}
        face = ModelFace(runtime, rules=Rules(), hooks=read_hooks(section, TOOL_EVENTS))
        result = await face.call("mcp__shop__buy", {"item": "tea"})

    assert texts(result) == ["bought tea", "count it", "cheap"]


async def test_a_slow_hook_decides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """S309: it is ended at its timeout, the call goes on, the log says so."""
    slow = {"type": "command", "command": "sleep 60", "timeout": 0.2}
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=Rules(), mode=Mode.BYPASS, hooks=hooks(PRE, slow))
        with caplog.at_level(logging.WARNING, "mcp_actors.model"):
            result = await face.call("mcp__shop__buy", {"item": "tea"})

    assert texts(result) == ["bought tea"]
    assert "longer than 0.2 s" in caplog.text


async def test_hooks_are_told_of_the_call(tmp_path: Path) -> None:
    """S304, S314, S315: event, full name, input, and after the call the result as the server sent it."""
    told = tmp_path / "told"
    note = {"type": "command", "command": f"cat >> {shlex.quote(str(told))}; echo >> {shlex.quote(str(told))}"}
    section = {event: [{"matcher": "mcp__shop__buy", "hooks": [note]}] for event in TOOL_EVENTS}
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=Rules(), mode=Mode.BYPASS, hooks=read_hooks(section, TOOL_EVENTS))
        await face.call("mcp__shop__buy", {"item": "tea"})
        await face.call("mcp__shop__card")

    before, after = map(json.loads, told.read_text().splitlines())
    assert (before["hook_event_name"], after["hook_event_name"]) == ("PreToolUse", "PostToolUse")
    assert before["tool_name"] == after["tool_name"] == "mcp__shop__buy"
    assert before["tool_input"] == after["tool_input"] == {"item": "tea"}
    assert before["permission_mode"] == "bypassPermissions"
    assert after["tool_response"]["content"] == [{"type": "text", "text": "bought tea"}]
    assert "tool_response" not in before


def test_events_are_read_apart() -> None:
    """S301, S302: who answers questions does not get the hooks of calls, nor is warned of kinds that those may have."""
    section = {
        "PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "ok?"}]}],
        "Elicitation": [{"hooks": [{"type": "command", "command": "true"}]}],
    }

    questions, calls = read_hooks(section), read_hooks((section, section), TOOL_EVENTS)

    assert ([hook.event for hook in questions.hooks], questions.warnings) == ([HookEvent.ELICITATION], ())
    assert (calls.hooks, len(calls.warnings)) == ((), 2)
