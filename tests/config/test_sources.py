"""Tests of `config.sources`."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from mcp_actors.config.formats import FORMATS
from mcp_actors.config.source_texts import parse_source, read_source
from mcp_actors.config.sources import SourceText, Surroundings, read_document
from mcp_actors.config.specs import RemoteTarget, Scope, StdioTarget

AROUND = Surroundings({"TOKEN": "canary"}, "/work", "/home/u")


def source(text: str | bytes, **changes: object) -> SourceText:
    data = text if isinstance(text, bytes) else text.encode()
    return evolve(SourceText(data, "/work/.mcp.json", Scope.PROJECT), **changes)


THREE = """{
  // three servers, one of them wrong
  "mcpServers": {
    "one": {"command": "x"},
    "two": {"command": 5},
    "three": {"type": "http", "url": "https://h/mcp"},
  }
}"""


def test_one_bad_entry_takes_no_other_with_it() -> None:
    """Two of three entries run; the third is told with file, line, column, key and reason (fault 21)."""
    reading = read_source(source(THREE), AROUND)

    assert [spec.name for spec in reading.specs] == ["one", "three"]
    [problem] = reading.problems
    assert (problem.server, problem.file, problem.line, problem.column) == ("two", "/work/.mcp.json", 5, 13)
    assert str(problem) == "two: /work/.mcp.json:5:13: mcpServers.two.command: must be a text, not a number"


@pytest.mark.parametrize("number", ["1e400", "-1e999", "NaN", "Infinity", "7" * 5000])
@pytest.mark.parametrize(
    "where", ['"timeout": {}', '"args": ["a", {}]', '"env": {{"X": {}}}', '"unknown": [{{"y": {}}}]']
)
def test_a_number_that_nobody_can_keep_costs_its_entry_only(where, number) -> None:
    """The others run, what stands outside the servers costs nothing, and the problem names the place (fault 21)."""
    bad = where.format(number)
    text = '{"x": ' + number + ', "mcpServers": {"one": {"command": "x"}, "two": {"command": "x", ' + bad + "}}}"

    reading = read_source(source(text), AROUND)

    assert [spec.name for spec in reading.specs] == ["one"]
    [problem] = reading.problems
    assert (problem.server, problem.line) == ("two", 1)
    assert problem.key.startswith("mcpServers.two." + where[1:4])
    assert number not in str(problem)


@pytest.mark.parametrize("number", ["1e400", "inf", "nan"])
def test_an_odd_number_of_toml_costs_its_entry_only(number) -> None:
    """TOML writes infinity down; JSON and we have no use for it."""
    text = f"[mcp_servers.one]\ncommand = 'x'\n[mcp_servers.two]\ncommand = 'x'\nother = {number}\n"

    reading = read_source(source(text, format=FORMATS["codex"]), AROUND)

    assert [spec.name for spec in reading.specs] == ["one"]
    assert [problem.server for problem in reading.problems] == ["two"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"servers": {"a": {"command": "x"}}}', "servers"),
        ('{"mcp": {"servers": {}}}', "mcp.servers"),
        ('{"mcp_servers": {}}', "mcp_servers"),
        ('{"context_servers": {}}', "context_servers"),
        ('{"a": {"command": "x"}}', None),
        ('{"mcpservers": {}}', None),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": "x"}', "mcpServers"),
        ("[]", None),
        ("null", None),
        ('"x"', None),
        ("", None),
        ("{", None),
        (b"\xff", None),
    ],
)
def test_a_file_without_our_table_is_an_error(text: str, key: str | None) -> None:
    """A foreign table, a missing one, one of the wrong kind, or a broken file is never an empty list (S001)."""
    reading = read_source(source(text), AROUND)

    assert reading.specs == ()
    [problem] = reading.problems
    assert (problem.server, problem.key) == (None, key)


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"mcpServers": null, "x": 1}'])
def test_an_empty_table_is_in_order(text: str) -> None:
    """No servers are none; null says the same, unless other things stand beside it."""
    reading = read_source(source(text), AROUND)

    assert reading.specs == ()
    assert (reading.problems == ()) == ("{}" in text)


def test_an_empty_object_is_noted() -> None:
    """A file of `{}` defines nothing and says so."""
    reading = read_source(source("{}"), AROUND)

    assert (reading.problems, [note.code for note in reading.notes]) == ((), ["no-servers"])


def test_a_file_of_many_settings_may_have_no_servers() -> None:
    """`~/.claude.json` without servers is silent (S009)."""
    reading = read_source(source('{"numStartups": 3}', must_have_servers=False), AROUND)

    assert (reading.specs, reading.problems, reading.notes) == ((), (), ())


def test_duplicate_names_are_told() -> None:
    """The last of two entries of one name is used, with a warning."""
    reading = read_source(source('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'), AROUND)

    assert [spec.target for spec in reading.specs] == [StdioTarget("y")]
    assert [note.code for note in reading.notes] == ["duplicate-key"]


def test_local_servers_stand_under_their_project() -> None:
    """The same document gives the local servers of one directory (S012)."""
    text = json.dumps({"projects": {"/w.x": {"mcpServers": {"l": {"command": "x"}, "b": {"command": 1}}}}})
    local = source(text, scope=Scope.LOCAL)

    reading = read_document(parse_source(local), local, AROUND, root=("projects", "/w.x", "mcpServers"))

    assert [(spec.name, spec.scope) for spec in reading.specs] == [("l", Scope.LOCAL)]
    assert reading.problems[0].key == "projects./w.x.mcpServers.b.command"


def test_project_directory_is_a_name_of_ours() -> None:
    """``${CLAUDE_PROJECT_DIR}`` is the directory of the file (S031), without the environment."""
    text = '{"mcpServers": {"a": {"command": "${CLAUDE_PROJECT_DIR}/run", "args": ["${CLAUDE_PROJECT_DIR:-.}"]}}}'

    reading = read_source(source(text, directory="/work/sub"), AROUND)

    assert [spec.target for spec in reading.specs] == [StdioTarget("/work/sub/run", ("/work/sub",))]


FILES = {
    "/work/.env": b"# c\nexport A=1\nB='two ${TOKEN}'\nC=\"x\\ny\"\nD=v # note\nbroken\nE=\n",
    "/work/bin": b"\xff",
}


def around_with_files() -> Surroundings:
    def read(path: str, directory: str) -> bytes:
        try:
            return FILES[path if path.startswith("/") else f"{directory}/{path}"]
        except KeyError:
            raise FileNotFoundError(path) from None

    return evolve(AROUND, read_file=read)


def test_env_file_fills_the_environment_below_env() -> None:
    """Values of an envFile are taken literally, `env` wins, and the raw entry holds none of them."""
    text = '{"mcpServers": {"a": {"command": "x", "envFile": "${NOPE:-.env}", "env": {"A": "own"}}}}'

    reading = read_source(source(text, directory="/work"), around_with_files())

    [spec] = reading.specs
    assert spec.target == StdioTarget(
        "x", environment={"A": "own", "B": "two ${TOKEN}", "C": "x\ny", "D": "v", "E": ""}
    )
    assert spec.raw == {"command": "x", "envFile": "${NOPE:-.env}", "env": {"A": "own"}}


@pytest.mark.parametrize("path", ["missing", "/work/bin"])
def test_env_file_that_cannot_be_read_is_told(path: str) -> None:
    """The entry does not run without the variables that it asks for."""
    text = json.dumps({"mcpServers": {"a": {"command": "x", "envFile": path}, "b": {"command": "y"}}})

    reading = read_source(source(text, directory="/work"), around_with_files())

    assert [spec.name for spec in reading.specs] == ["b"]
    assert [problem.key for problem in reading.problems] == ["mcpServers.a.envFile"]


def test_excluded_names_are_switched_off() -> None:
    """Gemini's list beside the servers disables them (nothing is dropped)."""
    text = json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {"httpUrl": "http://h"}}, "mcp": {"excluded": ["a"]}})

    reading = read_source(source(text, format=FORMATS["gemini"]), AROUND)

    assert [(spec.name, spec.is_enabled) for spec in reading.specs] == [("a", False), ("b", True)]
    assert reading.specs[1].target == RemoteTarget("http://h")


def test_repr_of_a_source_hides_the_text() -> None:
    """Neither source nor surroundings show what they hold."""
    shown = repr(source('{"mcpServers": {"a": {"env": {"T": "canary"}}}}')) + repr(AROUND)

    assert "canary" not in shown
