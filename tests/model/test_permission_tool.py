"""The permission prompt that is a tool: what it is told, what it may answer, and what happens when it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from scripted_fleet import spec

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.model.face import ModelFace
from mcp_actors.model.permission import Allow, Deny
from mcp_actors.model.permission_tool import permission_tool, read_answer
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.permission_rules import Rules
from mcp_actors.tools.permissions import Mode
from mcp_actors.tools.plans import ModelText
from mcp_actors.tools.results import ToolResult

if TYPE_CHECKING:
    from mcp_actors.tools.plans import ModelResult

pytestmark = pytest.mark.deadline(10)


def answered(said: object, *, is_structured: bool = False, **keys: object) -> ToolResult:
    """The result of a tool that says this."""
    text = said if isinstance(said, str) else json.dumps(said)
    result: dict[str, object] = {"content": [{"type": "text", "text": "" if is_structured else text}], **keys}
    if is_structured:
        result["structuredContent"] = said
    return ToolResult(json.dumps(result).encode(), "auth", "approve")


def updates(behavior: object, *rules: object, kind: str = "addRules") -> dict[str, object]:
    return {"type": kind, "behavior": behavior, "rules": list(rules)}


BUY, RED = {"toolName": "mcp__s__buy"}, {"toolName": "mcp__s__buy", "ruleContent": "colour:red"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"behavior": "allow"}, Allow()),
        ({"behavior": "allow", "updatedInput": {"a": 1}}, Allow({"a": 1})),
        ({"behavior": "deny"}, Deny()),
        ({"behavior": "deny", "message": "no\u200bt now"}, Deny("not now")),
        ({"behavior": "deny", "message": 5, "interrupt": True}, Deny(is_interrupt=True)),
        ({"behavior": "deny", "interrupt": 1}, Deny()),
        (
            {"behavior": "allow", "updatedPermissions": [updates("allow", BUY), updates("deny", RED, "x", {})]},
            Allow(updated_permissions={"allow": ["mcp__s__buy"], "deny": ["mcp__s__buy(colour:red)"]}),
        ),
        (
            {
                "behavior": "allow",
                "updatedPermissions": [updates("all", BUY), updates("allow", BUY, kind="setMode"), 3],
            },
            Allow(),
        ),
        ({"behavior": "allow", "updatedPermissions": "all"}, Allow()),
    ],
)
@pytest.mark.parametrize("is_structured", [False, True])
def test_what_a_tool_may_answer(said: object, expected: Allow | Deny, is_structured: bool) -> None:
    """S239, S241: allow or deny with their extras, as text or as structured content; odd extras mean nothing."""
    assert read_answer(answered(said, is_structured=is_structured)) == expected


@pytest.mark.parametrize(
    "result",
    [
        answered("yes"),
        answered(""),
        answered([{"behavior": "allow"}]),
        answered({"behavior": "ALLOW"}),
        answered({"behavior": True}, is_structured=True),
        answered({"behavior": "allow", "updatedInput": [1]}),
        answered({"behavior": "allow"}, isError=True),
    ],
)
def test_what_is_no_answer_allows_nothing(result: ToolResult) -> None:
    """S239: whatever is not plainly an answer is an error."""
    with pytest.raises(RemoteProtocolError):
        read_answer(result)


# ── in front of a fleet ──────────────────────────────────────────────────────────────────────────────────────────────


def text_of(result: ModelResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, ModelText))


async def call(answer: object, tool: str = "mcp__shop__buy", **options: object) -> tuple[ModelResult, list[object]]:
    """Have a model call a tool, with a server that answers permissions so; gives also what that was told."""
    shop, auth = ScriptedServer("shop"), ScriptedServer("auth")
    shop.add_tool("buy", lambda call: json.dumps(call.arguments))
    shop.add_tool("ask", lambda call: "ok", _meta={"anthropic/requiresUserInteraction": True})
    auth.add_tool("approve", lambda call: answer if isinstance(answer, str) else json.dumps(answer))
    async with open_runtime([spec("shop", shop), spec("auth", auth)]) as runtime:
        await runtime.wait_ready()
        ask = permission_tool(runtime, "auth.approve")
        face = ModelFace(runtime, rules=Rules(), mode=Mode.DEFAULT, ask=ask)
        result = await face.call(tool, {"item": "gun"})
    return result, [seen["params"]["arguments"] for seen in auth.seen("tools/call")]


async def test_a_tool_decides_about_a_call() -> None:
    """S239: it is told the tool's full name and the input, and what it allows is called with the input it gives."""
    result, told = await call({"behavior": "allow", "updatedInput": {"item": "tea"}})

    assert (text_of(result), result.is_error) == ('{"item": "tea"}', False)
    assert told == [{"tool_name": "mcp__shop__buy", "input": {"item": "gun"}}]


@pytest.mark.parametrize("answer", ["what?", {"behavior": "deny", "message": "no guns"}])
async def test_what_it_does_not_allow_is_refused(answer: object) -> None:
    """S239: a deny with its message, and an answer that is none, are refusals that the model reads."""
    result, told = await call(answer)

    assert result.is_error
    assert ("auth.approve could not be asked" if answer == "what?" else "no guns") in text_of(result)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("tool", "reason"), [("mcp__shop__ask", "asks for a person"), ("mcp__auth__approve", "not for the model")]
)
async def test_a_tool_is_no_person_and_does_not_judge_itself(tool: str, reason: str) -> None:
    """S237, S239: what asks for a person is refused, and so is a model that wants to ask the tool itself."""
    result, told = await call({"behavior": "allow"}, tool)

    assert result.is_error
    assert reason in text_of(result)
    assert told == []


async def test_a_tool_that_is_gone_refuses(autojump_clock: object) -> None:
    """S239: without an answer nothing is called."""
    shop = ScriptedServer("shop")
    shop.add_tool("buy", lambda call: "bought")
    async with open_runtime([spec("shop", shop)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=Rules(), ask=permission_tool(runtime, "mcp__auth__approve"))
        result = await face.call("mcp__shop__buy")

    assert "mcp__auth__approve could not be asked" in text_of(result)
    assert shop.seen("tools/call") == []
