"""The skills of a running server: listed without reading, loaded and read with every file verified.

The clock is the real one: the check runs in a thread.
"""

from __future__ import annotations

import hashlib

import pytest
from scripted_fleet import echo_server, spec

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError, RpcError
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

MAIN = "---\nname: pdf\ndescription: Fill forms\n---\nDo it.\n"
URI, FORMS = "skill://pdf/SKILL.md", "skill://pdf/FORMS.md"


def library(revisions: tuple[str, ...] = MODERN_REVISIONS) -> ScriptedServer:
    server = echo_server(
        revisions=revisions,
        fixed_capabilities={"tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}},
    )
    server.add_resource(URI, MAIN)
    server.add_resource(FORMS, "forms")
    return server


def entry(uri: str = URI) -> dict[str, object]:
    files = {URI: MAIN, FORMS: "forms"}
    listed = [
        {"uri": file, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text)}
        for file, text in files.items()
    ]
    return {"uri": uri, "frontmatter": {"name": "pdf", "description": "Fill forms"}, "resources": listed}


def answer(**members: object) -> dict[str, object]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **members}


@pytest.mark.parametrize("revisions", [MODERN_REVISIONS, LEGACY_REVISIONS], ids=["modern", "legacy"])
async def test_a_skill_is_listed_loaded_and_read(revisions: tuple[str, ...]) -> None:
    """SEP-2640: all pages, broken entries left out; a file is read when it is needed and not before, in both eras."""
    server = library(revisions)
    server.answer_with("skills/list", answer(skills=[{"uri": "skill://x"}], nextCursor="more"), times=1)
    server.answer_with("skills/list", answer(skills=[entry()]))

    async with open_runtime([spec("docs", server)]) as runtime:
        docs = runtime.server("docs")
        [skill] = await docs.skills()
        before = len(server.seen("resources/read"))
        loaded = await docs.load_skill(skill)
        loading = [message["params"]["uri"] for message in server.seen("resources/read")]
        content = await loaded.read("FORMS.md")

    assert (before, loading) == (0, [URI])
    assert (loaded.text, content) == (MAIN, b"forms")
    assert "Do it" not in repr(loaded)


async def test_an_unlisted_skill_is_got_by_its_uri() -> None:
    """SEP-2640, "Getting a Skill": its entry comes by URI; another entry, none, or a refusal is an error."""
    server = library()
    server.answer_with("skills/get", answer(skill=entry()), times=2)
    server.answer_with("skills/get", answer(), times=1)
    server.refuse("skills/get", -32602)

    async with open_runtime([spec("docs", server)]) as runtime:
        docs = runtime.server("docs")
        skill = await docs.skill(URI)
        with pytest.raises(RemoteProtocolError, match="another skill"):
            await docs.skill("skill://other/SKILL.md")
        with pytest.raises(RemoteProtocolError, match="no 'skill'"):
            await docs.skill(URI)
        with pytest.raises(RpcError):
            await docs.skill(URI)

    assert skill.name == "pdf"


async def test_a_file_that_changed_is_refused() -> None:
    """SEP-2640, "Verification on Read": neither SKILL.md nor a file beside it is used when it is another one."""
    server = library()
    server.answer_with("skills/list", answer(skills=[entry()]))

    async with open_runtime([spec("docs", server)]) as runtime:
        docs = runtime.server("docs")
        [skill] = await docs.skills()
        loaded = await docs.load_skill(skill)
        server.add_resource(FORMS, "FORMS")
        server.add_resource(URI, MAIN.replace("Do", "Not"))
        with pytest.raises(RemoteProtocolError, match="digest"):
            await loaded.read(FORMS)
        with pytest.raises(RemoteProtocolError, match="bytes"):
            await docs.load_skill(skill)
        asked = len(server.seen("resources/read"))
        with pytest.raises(RemoteProtocolError, match="no file of the skill"):
            await loaded.read("secret.md")

    assert len(server.seen("resources/read")) == asked


async def test_a_server_without_skills_is_not_asked() -> None:
    """Fault 69: what was not declared is not asked for."""
    server = echo_server()

    async with open_runtime([spec("one", server)]) as runtime:
        one = runtime.server("one")
        assert await one.skills() == ()
        with pytest.raises(LocalProtocolError, match="skills"):
            await one.skill(URI)

    assert server.seen("skills/list") == server.seen("skills/get") == []
