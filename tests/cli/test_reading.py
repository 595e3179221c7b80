"""The verbs that read and ask, end to end, against a scripted server as a child, in both eras."""

from __future__ import annotations

import json
import sys

import pytest

from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.cli.command import config, run, shell

pytestmark = pytest.mark.slow

PROGRAM = """
import json
from mcp_actors.testing.scripted import ScriptedServer

server = ScriptedServer("lib", revisions={revisions!r}, instructions="Read\\u200b first.\\nThen work.")
server.add_resource("note://one", "first \\x1b[31mred", mimeType="text/plain")
server.add_resource("note://pdf", b"%PDF-", name="\\u202epaper", mimeType="application/pdf")
server.add_template("note://{{name}}", name="note")
server.add_prompt("greet", lambda call: "hello " + call.params["arguments"]["name"],
                  description="Greets", arguments=[{{"name": "name", "required": True}}, {{"name": "title"}}])
server.add_tool("dress", lambda call: {{"content": [], "structuredContent": {{"n": "x"}}}},
                outputSchema={{"type": "object", "properties": {{"n": {{"type": "integer"}}}}}})
FORM = {{"type": "object", "properties": {{"where": {{"type": "string", "default": "here"}}}}}}
PARAMS = {{"message": "where?", "requestedSchema": FORM}}
async def ask(call):
    if server.revisions[0] == "2026-07-28":
        if "inputResponses" not in call.params:
            question = {{"method": "elicitation/create", "params": PARAMS}}
            return {{"resultType": "input_required", "inputRequests": {{"q": question}}, "requestState": "s"}}
        return json.dumps(call.params["inputResponses"]["q"])
    return json.dumps(await call.ask("elicitation/create", PARAMS))
server.add_tool("ask", ask)
async def work(call):
    for step in range(3):
        await call.progress(step + 1, 3)
    return "worked"
server.add_tool("work", work)
async def touch(call):
    await server.notify("notifications/resources/updated", {{"uri": "note://one"}})
    return "touched"
server.add_tool("touch", touch)
"""


@pytest.fixture(params=["modern", "legacy"])
def lib(request, tmp_path):
    """The words that configure the server."""
    revisions = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}[request.param]
    program = tmp_path / "lib.py"
    program.write_text(PROGRAM.format(revisions=tuple(revisions)), encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-m", "mcp_actors.testing.wire_server", str(program)]}
    return config(lib=entry)


CASES = [
    (["resources"], 0, "lib  note://pdf  application/pdf  paper", ""),
    (["resources", "lib", "--templates"], 0, "note://{name}", ""),
    (["read", "lib", "note://one"], 0, "first red", ""),
    (["read", "@lib:note://one"], 0, "first red", ""),
    (["read", "lib", "note://one", "--output", "raw"], 0, "first \x1b[31mred", ""),
    (["read", "lib", "note://pdf", "--output", "raw"], 0, "%PDF-", ""),
    (["read", "lib", "note://one", "--watch", "--times", "1"], 0, "first red", ""),
    (["read", "lib", "note://none"], 1, "", "mcp-actors resources lib lists what there is"),
    (["read", "lib", "note:on"], 1, "", "did you mean note://one?"),
    (["prompts", "lib"], 0, "/mcp__lib__greet <name> [title]  Greets", ""),
    (["prompt", "lib.greet", "name=Ada"], 0, "user:\nhello Ada", ""),
    (["prompt", "/mcp__lib__greet", "Ada", "Dr"], 0, "hello Ada", ""),
    (["prompt", '/mcp__lib__greet "Ada Byron" Dr'], 0, "hello Ada Byron", ""),
    (["prompt", "lib.greet"], 2, "", "missing name; usage: /mcp__lib__greet <name> [title]"),
    (["prompt", "lib.greet", "name:=5"], 2, "", "arguments of a prompt are texts"),
    (["prompt", "lib.other"], 1, "", "it offers: greet"),
    (["call", "lib.ask"], 0, '{"action": "decline"}', "everything is declined"),
    (["call", "lib.ask", "--elicit", "accept-defaults"], 0, '"content": {"where": "here"}', ""),
    (["call", "lib.work", "--progress"], 0, "worked", "lib.work: 3/3"),
    (["call", "lib.work"], 0, "worked", ""),
    (["call", "lib.dress"], 0, '"n": "x"', "does not fit the schema it promised"),
    (["get", "lib"], 0, "  instructions for models:\n    Read first.\n    Then work.\n", ""),
    (["get", "lib", "--json"], 0, '"instructions": "Read first.\\nThen work."', ""),
    (["tools", "--search", "touch"], 0, "lib.touch", ""),
    (["tools", "--search", "nothing like it"], 0, "no tools", ""),
    (["tools", "--format", "gemini", "--search", "work"], 0, "mcp__lib__work", ""),
]


# What is wrong before any server is asked.
WRONG = [
    (["read", "lib"], 2, "SERVER URI"),
    (["read", "nobody", "note://one"], 1, "nobody"),
    (["prompt", "lib"], 2, "lib.PROMPT"),
    (["prompt", "/greet"], 2, "is no command"),
    (["call", "lib.ask", "--elicit", "ask"], 2, "--elicit ask needs a terminal"),
    (["call", "lib.ask", "--elicit", "/nonexistent"], 2, "/nonexistent"),
    (["call", "lib.ask", "--root", "/nonexistent"], 2, "is no directory"),
]


@pytest.mark.parametrize(("words", "code", "err"), WRONG, ids=[" ".join(case[0])[:50] for case in WRONG])
def test_what_cannot_be_meant_starts_no_server(words, code, err, tmp_path) -> None:
    """A command line that no server can answer is told at once (S169)."""
    trace = tmp_path / "started"

    done = run(*words, *config(lib=shell(f"touch {trace}")))

    assert (done.returncode, done.stdout) == (code, "")
    assert err in done.stderr
    assert not trace.exists()


@pytest.mark.parametrize(("words", "code", "out", "err"), CASES, ids=[" ".join(case[0])[:50] for case in CASES])
def test_verb(lib, words, code, out, err) -> None:
    """Each verb gives its data on standard output, all else on standard error, and the exit code it means (S169)."""
    done = run(*words, *lib)

    assert done.returncode == code, done.stderr
    assert out in done.stdout
    assert err in done.stderr
    assert bool(done.stderr) == bool(err)


@pytest.mark.parametrize(
    ("words", "key", "row"),
    [
        (["resources"], "resources", {"server": "lib", "uri": "note://pdf", "name": "\u202epaper"}),
        (["prompts"], "prompts", {"command": "/mcp__lib__greet", "server": "lib", "name": "greet"}),
    ],
)
def test_json_rows_are_as_the_server_wrote_them(lib, words, key, row) -> None:
    """Machines get raw names and every key (invariant 9)."""
    done = run(*words, "--json", *lib)

    rows = json.loads(done.stdout)[key]
    assert row.items() <= rows[-1].items()


def test_a_servers_down_is_told(tmp_path) -> None:
    """Listing over several servers goes on without the one that fails, and says so."""
    done = run("resources", *config(bad={"command": "/nonexistent/x"}))

    assert (done.returncode, done.stdout) == (1, "no resources\n")
    assert "/nonexistent/x" in done.stderr


@pytest.mark.parametrize("is_option", [False, True], ids=["file", "--settings"])
def test_rules_of_settings_hide_from_a_model(is_option, lib, home) -> None:
    """S230, S233, S236: a denied tool is not handed out; of a deny rule that cannot be read the whole tool is meant."""
    written = json.dumps({"permissions": {"deny": ["mcp__lib__touch", "mcp__lib__ask(x"]}})
    settings = home / ".claude" / "settings.json"
    if not is_option:
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(written, encoding="utf-8")

    done = run("tools", "--format", "anthropic", *lib, *(["--settings", written] if is_option else []))

    assert {tool["name"] for tool in json.loads(done.stdout)} == {"mcp__lib__dress", "mcp__lib__work"}
    assert "'mcp__lib__ask(x' means all calls of mcp__lib__ask" in done.stderr


@pytest.mark.parametrize("written", ["{", '{"permissions": {"deny": {"mcp__lib__touch": true}}}'])
def test_settings_that_cannot_be_read_hide_everything_from_a_model(written, lib, home) -> None:
    """S230: no tool is handed out, and standard error names the file and why; a person's own call is as before."""
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(written, encoding="utf-8")

    done, called = run("tools", "--format", "anthropic", *lib), run("tools", *lib)

    assert json.loads(done.stdout) == []
    assert str(settings) in done.stderr
    assert "every tool is denied" in done.stderr
    assert "touch" in called.stdout
