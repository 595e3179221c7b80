"""What a running fleet looks like to a model: calls, permissions, our own tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.errors import UnknownTool
from mcp_actors.files.loading import load_config
from mcp_actors.model.face import ModelFace
from mcp_actors.model.outputs import Outputs
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.permission_rules import Rules, read_rules
from mcp_actors.tools.permissions import Mode
from tests.model.shop import shop, text_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deadline(10)

OPEN = Mode.BYPASS


# ── permission ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "rules", "mode", "person", "said"),
    [
        ("price", {"allow": ["mcp__shop__price"]}, Mode.DEFAULT, None, "9"),
        ("price", {}, Mode.DEFAULT, None, "there is nobody to ask"),
        ("price", {}, Mode.DEFAULT, True, "9"),
        ("price", {}, Mode.DEFAULT, False, "the person said no"),
        ("price", {}, Mode.DONT_ASK, True, "nobody is to be asked"),
        ("buy", {"deny": ["mcp__shop__buy(item:gun)"]}, OPEN, None, "denied by the rule"),
        ("buy", {}, Mode.PLAN, True, "only planning"),
        ("ask", {"allow": ["mcp__shop"]}, OPEN, None, "there is nobody to ask"),
    ],
)
async def test_every_call_is_checked(tool: str, rules, mode: Mode, person: bool | None, said: str) -> None:
    """S228-S237: deny, ask, mode, allow, person; a refusal is a result, and the server hears nothing."""
    server = shop()

    async def ask(request, decision) -> bool:
        return bool(person)

    async with open_runtime([spec("shop", server)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=read_rules(rules), mode=mode, ask=None if person is None else ask)
        result = await face.call(f"mcp__shop__{tool}", {"item": "gun"})

    is_made = said == "9"
    assert said in text_of(result)
    assert result.is_error is not is_made
    assert len(server.seen("tools/call")) == is_made


async def test_what_is_hidden_cannot_be_called() -> None:
    """S236: a denied tool is unknown, and is not among the names that are near."""
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=read_rules({"deny": ["mcp__shop__buy"]}), mode=OPEN)
        with pytest.raises(UnknownTool) as unknown:
            await face.call("mcp__shop__buy")

    assert "mcp__shop__buy" not in unknown.value.nearest


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_rules_of_settings_files_count_where_the_program_names_none(tmp_path: Path, is_trusted: bool) -> None:
    """S230, S240: a fleet read from files brings their rules; what a strange repository allows is not allowed."""
    project, home = tmp_path / "project", tmp_path / "home"
    for directory, lists in ((project, {"allow": ["mcp__shop"]}), (home, {"deny": ["mcp__shop__big"]})):
        (directory / ".claude").mkdir(parents=True)
        (directory / ".claude" / "settings.json").write_text(json.dumps({"permissions": lists}))
    trust = {"projects": {str(project): {"hasTrustDialogAccepted": is_trusted}}}
    (home / ".claude.json").write_text(json.dumps(trust))
    server = shop()
    async with open_runtime(load_config(environ={}, cwd=project, home=home, stop_at=tmp_path)) as runtime:
        await runtime.add_server(spec("shop", server))
        await runtime.wait_ready()
        face, bare = ModelFace(runtime), ModelFace(runtime, rules=Rules())
        names, all_names = [[view.name for view in await each.listing()] for each in (face, bare)]
        result = await face.call("mcp__shop__buy", {"item": "tea"})

    assert set(all_names) - set(names) == {"mcp__shop__big"}
    assert len(server.seen("tools/call")) == is_trusted
    assert text_of(result) == "bought" if is_trusted else "there is nobody to ask" in text_of(result)


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deadline(100)
async def test_a_call_that_waits_for_its_tool_has_no_more_time(autojump_clock: object) -> None:
    """S118, S199: the time that a server takes to come up is part of what the call was given."""
    server = echo_server()

    async def late(link: object) -> None:
        await trio.sleep(3)
        await server.serve(link)  # type: ignore[arg-type]

    async with open_runtime([spec("one", late)]) as runtime:
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError, match="the wall clock ran out"):
            await ModelFace(runtime, mode=OPEN).call("mcp__one__slow", {"seconds": 60}, timeout=5)

    assert trio.current_time() - began == pytest.approx(5)


async def test_arguments_reach_the_wire_as_the_server_named_them() -> None:
    """S192: a model writes the cleaned name; the server reads its own."""
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        result = await ModelFace(runtime, mode=OPEN).call("mcp__shop__dirty", {"name": "Ann"})

    assert json.loads(text_of(result).replace("name", "na\u200bme")) == {"na\u200bme": "Ann"}


# ── our own tools ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_resources_are_listed_and_read_by_two_tools_of_the_host(tmp_path) -> None:
    """S166, S320, S321, S326, S327: one pair for the fleet, listed among the others, free; blobs become files."""
    server = ScriptedServer("lib")
    server.add_resource("note://a", "text")
    server.add_resource("note://b", b"\x00\x01", mimeType="application/pdf")

    async with open_runtime([spec("lib", server), spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, outputs=Outputs(tmp_path / "out"))
        names = [tool.name for tool in face.host_tools]
        offered = await face.tools("anthropic")
        listed = json.loads(text_of(await face.call("ListMcpResourcesTool")))
        read = json.loads(text_of(await face.call("ReadMcpResourceTool", {"server": "lib", "uri": "note://b"})))
        missing = await face.call("ReadMcpResourceTool", {"server": "lib", "uri": "note://none"})
        unknown = await face.call("ReadMcpResourceTool", {"server": "shop", "uri": "x"})

    assert names == ["ListMcpResourcesTool", "ReadMcpResourceTool"]
    assert [tool["name"] for tool in offered][-2:] == names
    assert [row["uri"] for row in listed["resources"]] == ["note://a", "note://b"]
    assert read["contents"][0]["blobSavedTo"].startswith(str(tmp_path))
    assert (missing.is_error, unknown.is_error) == (True, True)
    assert "lib" in text_of(unknown)


async def test_a_tool_of_the_host_can_be_denied() -> None:
    """S236, S242: a denied one is neither offered nor known; the other stays."""
    server = ScriptedServer("lib")
    server.add_resource("note://a", "text")

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, rules=read_rules({"deny": ["ReadMcpResourceTool"]}))
        offered = await face.tools("gemini")
        with pytest.raises(UnknownTool):
            await face.call("ReadMcpResourceTool", {"server": "lib", "uri": "note://a"})

    assert [tool["name"] for tool in offered[0]["functionDeclarations"]] == ["ListMcpResourcesTool"]


# ── servers that are not there ───────────────────────────────────────────────────────────────────────────────────────


async def test_why_a_server_offers_nothing_can_be_told_to_a_model() -> None:
    """S331, S418: in our words; the list of resources tells it too, and those of the others are there."""
    lib = ScriptedServer("lib")
    lib.add_resource("note://a", "text")
    broken = ScriptedServer("broken")
    broken.refuse("server/discover", -32603, "tenant\u202e gone")
    broken.refuse("initialize", -32603, "tenant\u202e gone")

    async with open_runtime([spec("lib", lib), spec("broken", broken)]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime)
        missed = dict(face.unavailable)
        listed = json.loads(text_of(await face.call("ListMcpResourcesTool")))

    assert list(missed) == ["broken"]
    assert missed["broken"].startswith("failed (")
    assert "tenant gone" not in missed["broken"], "a stranger's words are not for a model"
    assert listed["errors"] == missed
    assert [row["uri"] for row in listed["resources"]] == ["note://a"]
