"""The permission of a model's calls: which rules count now, and what a person's answer does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from scripted_fleet import spec

from mcp_actors.errors import UnknownTool
from mcp_actors.files.loading import load_config
from mcp_actors.model.face import ModelFace
from mcp_actors.model.permission import Allow, Deny
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.permission_rules import Rules, read_rules
from mcp_actors.tools.permissions import Mode
from mcp_actors.tools.plans import ModelText

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.files.loading import LoadedConfig
    from mcp_actors.model.permission import AskPermission
    from mcp_actors.tools.permissions import Decision, PermissionRequest
    from mcp_actors.tools.plans import ModelResult

pytestmark = pytest.mark.deadline(10)


def shop() -> ScriptedServer:
    """`buy` says what it was called with; `ask` wants a person on every call."""
    server = ScriptedServer("shop")
    server.add_tool("buy", lambda call: json.dumps(call.arguments))
    server.add_tool("ask", lambda call: "ok", _meta={"anthropic/requiresUserInteraction": True})
    return server


def text_of(result: ModelResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, ModelText))


def answers(*given: bool | Allow | Deny) -> tuple[AskPermission, list[tuple[str, str]]]:
    """A person who gives these answers in turn, and the questions that were asked."""
    left, asked = list(given), list[tuple[str, str]]()

    async def ask(request: PermissionRequest, decision: Decision) -> bool | Allow | Deny:
        asked.append((request.name, decision.reason))
        return left.pop(0)

    return ask, asked


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "said", "is_error", "is_interrupt"),
    [
        (True, '{"item": "gun"}', False, False),
        (False, "Permission to use mcp__shop__buy was denied: the person said no.", True, False),
        (Allow(), '{"item": "gun"}', False, False),
        (Allow({"item": "tea"}), '{"item": "tea"}', False, False),
        (Allow({}), "{}", False, False),
        (Allow({"item": "bomb"}), "denied by the rule mcp__shop__buy(item:bomb)", True, False),
        (Deny(), "denied: the person said no.", True, False),
        (Deny("buy tea."), "denied: buy tea.", True, False),
        (Deny("no more", is_interrupt=True), "denied: no more.", True, True),
    ],
)
async def test_what_a_person_may_answer(
    answer: bool | Allow | Deny, said: str, is_error: bool, is_interrupt: bool
) -> None:
    """S241: allow, with new input if wanted, or deny with a message; new input meets the deny rules once more."""
    server = shop()
    ask, asked = answers(answer)
    async with open_runtime([spec("shop", server)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=read_rules({"deny": ["mcp__shop__buy(item:bomb)"]}), ask=ask)
        result = await face.call("mcp__shop__buy", {"item": "gun"})

    assert said in text_of(result)
    assert (result.is_error, result.is_interrupt) == (is_error, is_interrupt)
    assert len(server.seen("tools/call")) == (not is_error)
    assert asked == [("mcp__shop__buy", "no rule speaks of it")]


async def test_a_person_is_asked_once_where_the_answer_is_remembered() -> None:
    """S241: rules that come with an answer count from then on for this face, and for no other."""
    ask, asked = answers(Allow(updated_permissions={"allow": ["mcp__shop__buy"]}), False)
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face, other = ModelFace(runtime, rules=Rules(), ask=ask), ModelFace(runtime, rules=Rules(), ask=ask)
        results = [await each.call("mcp__shop__buy") for each in (face, face, other)]

    assert [result.is_error for result in results] == [False, False, True]
    assert len(asked) == 2


async def test_what_a_person_denies_for_good_is_off_the_list() -> None:
    """S236, S241: a remembered deny hides its tool at once, as any other does."""
    ask, _ = answers(Allow(updated_permissions={"deny": ["mcp__shop__buy"]}))
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=Rules(), ask=ask)
        await face.call("mcp__shop__buy")
        names = list((await face.listing()).views)

    assert names == ["mcp__shop__ask"]


async def test_what_has_to_be_asked_each_time_is_not_remembered(caplog: pytest.LogCaptureFixture) -> None:
    """S237: a tool that asks for a person does so on every call, whatever the person wanted remembered."""
    ask, asked = answers(*[Allow(updated_permissions={"allow": ["mcp__shop"]})] * 2)
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=Rules(), mode=Mode.BYPASS, ask=ask)
        for _ in range(2):
            await face.call("mcp__shop__ask")

    assert len(asked) == 2
    assert face.rules == Rules()
    assert "was not remembered" in caplog.text


@pytest.mark.parametrize("mode", ["dontAsk", "manual", "plan"])
async def test_modes_may_be_written_as_words(mode: str) -> None:
    """S235: the names of settings and command lines mean the modes; another name is an error at once."""
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        result = await ModelFace(runtime, rules=Rules(), mode=mode).call("mcp__shop__buy")
        with pytest.raises(ValueError, match="yolo"):
            ModelFace(runtime, mode="yolo")

    assert {"dontAsk": "nobody is to be asked", "manual": "nobody to ask", "plan": "planning"}[mode] in text_of(result)


async def test_rules_that_came_while_the_person_thought_count(tmp_path: Path) -> None:
    """S234: a call that settings forbid by the time of the answer is refused, whatever the person said."""
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()

    def load() -> LoadedConfig:
        return load_config(environ={}, cwd=tmp_path, home=tmp_path, stop_at=tmp_path)

    server = shop()
    async with open_runtime(load()) as runtime:
        await runtime.add_server(spec("shop", server))
        await runtime.wait_ready()

        async def ask(request: PermissionRequest, decision: Decision) -> bool:
            settings.write_text(json.dumps({"permissions": {"deny": ["mcp__shop__buy"]}}))
            await runtime.apply(load())
            return True

        result = await ModelFace(runtime, ask=ask).call("mcp__shop__buy")

    assert "denied by the rule mcp__shop__buy" in text_of(result)
    assert server.seen("tools/call") == []


# ── rules of now ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_rules_of_settings_count_as_they_are_now(tmp_path: Path) -> None:
    """S230: after a reload a face goes by the new rules: what is listed, and what may be called; answers are kept."""
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()

    def load(**lists: object) -> LoadedConfig:
        settings.write_text(json.dumps({"permissions": lists}))
        return load_config(environ={}, cwd=tmp_path, home=tmp_path, stop_at=tmp_path)

    ask, _ = answers(Allow(updated_permissions={"allow": ["mcp__shop__buy"]}))
    async with open_runtime(load(deny=["mcp__shop__ask"])) as runtime:
        await runtime.add_server(spec("shop", shop()))
        await runtime.wait_ready()
        face = ModelFace(runtime, ask=ask)
        await face.call("mcp__shop__buy")
        seen = []
        for lists in ({"deny": ["mcp__shop__ask"]}, {"deny": ["mcp__shop__buy"]}, {}, {"deny": {"mcp__shop": 1}}):
            before = await face.listing()
            await runtime.apply(load(**lists))
            after = await face.listing()
            seen.append((list(after.views), after.shelves[0] is before.shelves[0]))
            if "mcp__shop__buy" in after.views:
                assert not (await face.call("mcp__shop__buy")).is_error
            else:
                with pytest.raises(UnknownTool):
                    await face.call("mcp__shop__buy")

    both = ["mcp__shop__buy", "mcp__shop__ask"]
    assert seen == [([both[0]], True), ([both[1]], False), (both, False), ([], False)]
