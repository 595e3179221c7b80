"""The verbs about skills, end to end, against a scripted server as a child."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.command import config, run

pytestmark = pytest.mark.slow

PROGRAM = """
import hashlib
from mcp_actors.testing.scripted import ScriptedServer

server = ScriptedServer("docs", fixed_capabilities={
    "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}})

def entry(root, name, described, served, resources=None):
    uri = f"skill://{root}{name}/SKILL.md"
    head = f"---\\nname: {name}\\ndescription: {described}\\n---\\n"
    files = {uri: head + "Do \\x1b[31mit.", f"skill://{root}{name}/data.bin": b"\\xff\\x00"}
    listed = []
    for file, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        listed.append({"uri": file, "digest": "sha256:" + hashlib.sha256(raw).hexdigest(), "size": len(raw)})
        server.add_resource(file, content)
    if served != described:
        server.add_resource(uri, files[uri].replace(described, served))
    frontmatter = {"name": name, "description": described}
    return {"uri": uri, "frontmatter": frontmatter, "resources": resources or listed}

skills = [
    entry("", "pdf", "Fill forms", "Fill forms"),
    entry("", "evil", "Harmless", "Harmful!"),
    entry("", "live", "Now", "Now", "dynamic"),
    entry("a/", "same", "One", "One"),
    entry("b/", "same", "Two", "Two"),
]
rest = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
server.answer_with("skills/list", {"skills": skills, **rest})
server.answer_with("skills/get", {"skill": skills[0], **rest})
"""


@pytest.fixture
def docs(tmp_path):
    """The words that configure the server."""
    program = tmp_path / "docs.py"
    program.write_text(PROGRAM, encoding="utf-8")
    return config(docs={"command": sys.executable, "args": ["-m", "mcp_actors.testing.wire_server", str(program)]})


CASES = [
    (["skills"], 0, "docs  skill://pdf/SKILL.md     2 files, 55 bytes  Fill forms", ""),
    (["skills", "docs"], 0, "docs  skill://live/SKILL.md    not verifiable     Now", ""),
    (["skill", "docs", "pdf"], 0, "---\nname: pdf\ndescription: Fill forms\n---\nDo it.", ""),
    (["skill", "docs", "pdf", "--output", "raw"], 0, "Do \x1b[31mit.", ""),
    (["skill", "docs", "skill://pdf/SKILL.md"], 0, "Do it.", ""),
    (["skill", "docs", "live"], 0, "Do it.", "nothing of it can be verified"),
    (["skill", "docs", "evil"], 1, "", "its digest is another one"),
    (["skill", "docs", "pdf", "none.md"], 1, "", "'none.md' is no file of the skill 'pdf'"),
    (["skill", "docs", "same"], 1, "", "2 skills of this name; give a URI: skill://a/same/SKILL.md"),
    (["skill", "docs", "other"], 1, "", "it lists: evil, live, pdf, same"),
]


@pytest.mark.parametrize(("words", "code", "out", "err"), CASES, ids=[" ".join(case[0])[:50] for case in CASES])
def test_verb(docs, words, code, out, err) -> None:
    """SEP-2640: listed with their size, shown when they are what the entry says, refused otherwise with the reason."""
    done = run(*words, *docs)

    assert done.returncode == code, done.stderr
    assert out in done.stdout
    assert err in done.stderr
    assert bool(done.stderr) == bool(err)


def test_a_file_of_a_skill_is_bytes(docs) -> None:
    """A file that is no text is told of, and written as it is with ``--output raw``."""
    shown, raw = run("skill", "docs", "pdf", "data.bin", *docs), run("skills", "--json", *docs)

    assert shown.returncode == 0, shown.stderr
    assert "skill://pdf/data.bin" in shown.stdout
    rows = json.loads(raw.stdout)["skills"]
    assert [row["frontmatter"]["name"] for row in rows] == ["pdf", "evil", "live", "same", "same"]


def test_servers_without_skills_list_none() -> None:
    """A server that is down is told of; one without the extension has none."""
    done = run("skills", *config(bad={"command": "/nonexistent/x"}))

    assert (done.returncode, done.stdout) == (1, "no skills\n")
    assert "/nonexistent/x" in done.stderr
