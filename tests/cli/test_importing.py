"""The verb `import`: what other programs have, copied."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcp_actors.cli.importing import FORMAT_NAMES, place_entries
from mcp_actors.config.formats import FORMATS
from mcp_actors.files.loading import load_config
from tests.cli.command import run
from tests.config.test_formats import CASES

# Takes a value out of a file, which has no form in our files.
NOT_COPIED = {"opencode": {"remote"}}


def put(name, home, project):
    """Write the realistic file of a format where its program keeps it; give its path."""
    chosen = FORMATS[name]
    path = project / chosen.project_paths[0] if chosen.project_paths else home / chosen.user_paths[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CASES[name][0])
    (project / ".env").write_text("FROM_FILE=1\nBOTH=file\n")
    (project / "secret.txt").write_text("x")
    return path


def targets(project, home, **options):
    loaded = load_config(environ=dict(os.environ), cwd=project, home=home, **options)
    return {spec.name: (spec.target, spec.is_enabled, spec.connect_timeout, spec.call_timeout) for spec in loaded.specs}


@pytest.mark.parametrize("name", [name for name in FORMAT_NAMES if name != "claude-code"])
def test_what_is_imported_runs_as_it_did(name, home, project, monkeypatch):
    """Each program's file becomes entries that mean the same here, and a second import changes nothing."""
    for variable, value in {"API_KEY": "key", "REGION": "eu", "MCP_INPUT_GITHUB_TOKEN": "asked"}.items():
        monkeypatch.setenv(variable, value)
    path = put(name, home, project)
    left = NOT_COPIED.get(name, set())

    words = ["import", name, "-s", "user", *(["--path", str(path)] if path.is_relative_to(project) else [])]
    first = run(*words, cwd=project)
    written = (home / ".claude.json").read_bytes()
    second = run(*words, cwd=project)

    assert first.returncode == second.returncode == (1 if left else 0), first.stderr
    assert (home / ".claude.json").read_bytes() == written
    assert b"asked" not in written
    original = targets(project, home, configs=[path], strict=True)
    assert targets(project, home) == {key: value for key, value in original.items() if key not in left}
    assert all(f"{server}: not imported: " in first.stderr for server in left)


def test_a_file_of_our_own_format(home, project):
    """A file of Claude Code is copied by its path."""
    (project / "other.json").write_text(CASES["claude-code"][0])

    assert run("import", "claude-code", "--path", "other.json", "-s", "project", cwd=project).returncode == 0
    assert list(json.loads((project / ".mcp.json").read_text())["mcpServers"]) == ["fs", "api"]
    waiting = run("why", "fs", "--json", cwd=project)
    assert json.loads(waiting.stdout)["reason"] == "pending-approval"


@pytest.mark.parametrize("name", [name for name in FORMAT_NAMES if FORMATS[name].project_paths])
def test_what_a_repository_brings_is_not_taken_over_unseen(name, home, project):
    """Found in the project, it goes into nobody's own files; with -s project it waits for approval (fault 109)."""
    path = put(name, home, project)
    names = list(targets(project, home, configs=[path], strict=True))

    for words in ([], ["-s", "user"], ["-s", "local"]):
        done = run("import", name, *words, cwd=project)
        assert done.returncode == 1
        assert all(f"{server}: not imported: {path} belongs to the project" in done.stderr for server in names)
    assert not (home / ".claude.json").exists() or "mcpServers" not in (home / ".claude.json").read_text()
    run("import", name, "-s", "project", cwd=project)
    copied = [server for server in names if server not in NOT_COPIED.get(name, ())]
    shown = [json.loads(run("why", server, "--json", cwd=project).stdout) for server in copied]
    assert [server["name"] for server in shown if server["runs"]] == []


@pytest.mark.parametrize(("below", "count"), [("{home}/xdg", 1), ("", 0), ("xdg", 0)], ids=["set", "empty", "relative"])
def test_a_configuration_directory_that_is_elsewhere(below, count, home, project, monkeypatch):
    """Programs that keep their file in ``~/.config`` keep it where ``XDG_CONFIG_HOME`` says, if that is a full path."""
    monkeypatch.setenv("XDG_CONFIG_HOME", below.format(home=home))
    file = home / "xdg" / "Claude" / "claude_desktop_config.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"d": {"command": "node"}}}')

    done = run("import", "claude-desktop", "-s", "user", cwd=project)

    assert done.returncode == (0 if count else 1), done.stderr
    assert ("  d\n" in done.stderr) is bool(count)


@pytest.mark.parametrize(
    ("of_user", "words", "copied"),
    [
        ({}, ["cursor"], ["a"]),
        ({"a": {"command": "x"}}, ["cursor"], None),
        ({"a": {"command": "other"}}, ["cursor"], ["a"]),
        ({"a": {"command": "other"}, "a_1": {"command": "x"}}, ["cursor"], None),
        ({"a": {"command": "x"}, "b": {"command": "y"}}, ["claude-code"], None),
    ],
    ids=["new", "same", "another definition", "same after a clash", "read in place"],
)
def test_what_the_user_has_everywhere_gets_no_local_copy(of_user, words, copied, home, project):
    """S040: a server that stands among the user's own is there already for every project, whatever it came from."""
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    (home / ".claude.json").write_text(json.dumps({"mcpServers": of_user}))

    done = run("import", *words, cwd=project)

    assert done.returncode == 0, done.stderr
    local = json.loads((home / ".claude.json").read_text()).get("projects", {}).get(str(project), {})
    assert (list(local["mcpServers"]) if local else None) == copied
    assert ("there already: " in done.stderr) is (copied is None)


def test_a_file_of_claude_code_without_servers_is_in_order(home, project):
    """``~/.claude.json`` holds much else."""
    (home / ".claude.json").write_text('{"numStartups": 7}')

    done = run("import", "claude-code", cwd=project)

    assert done.returncode == 0, done.stderr
    assert "imported 0 of 0 servers" in done.stderr


def test_a_file_that_is_read_in_place_says_so(home, project):
    """A project's ``.mcp.json`` need not be imported, it needs to be approved (S023, fault 109)."""
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')

    done = run("import", "claude-code", cwd=project)

    assert done.returncode == 1
    assert "is read where it is: mcp-actors approve lets its servers run" in done.stderr


def test_every_format_can_be_imported():
    """The table of formats and the choices of the verb are the same."""
    assert set(FORMAT_NAMES) == set(FORMATS)


@pytest.mark.parametrize(
    ("held", "wanted", "placed"),
    [
        ({}, [("a", 1), ("b", 2)], {"a": ("a", 1), "b": ("b", 2)}),
        ({"a": 1}, [("a", 1)], {}),
        ({"a": 0}, [("a", 1)], {"a_1": ("a", 1)}),
        ({"a": 0, "a_1": 1}, [("a", 1)], {}),
        ({"a": 0, "a_1": 5}, [("a", 1)], {"a_2": ("a", 1)}),
        ({}, [("a", 1), ("a", 2), ("a", 1)], {"a": ("a", 1), "a_1": ("a", 2)}),
    ],
)
def test_place_entries(held, wanted, placed):
    """What is there already stays, a clash gets a number, and doing it again gives nothing (S040)."""
    assert place_entries(held, wanted) == placed
    assert place_entries({**held, **{name: entry for name, (_, entry) in placed.items()}}, wanted) == {}


def test_what_is_not_copied_is_named(home, project):
    """Bad names, bad entries and blocked servers stay behind, each with its reason; the others come."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"deniedMcpServers": [{"serverName": "no"}]}')
    servers = {"good": {"command": "x"}, "a b": {"command": "x"}, "bad": {"command": 5}, "no": {"command": "x"}}
    (project / "f.json").write_text(json.dumps({"mcpServers": {**servers, "ide": {"command": "x"}}}))

    done = run("import", "claude-desktop", "--path", "f.json", "-s", "user", cwd=project)

    assert done.returncode == 1
    assert list(json.loads((home / ".claude.json").read_text())["mcpServers"]) == ["good"]
    assert "a b: not imported: the name 'a b' is not usable" in done.stderr
    assert "bad: " in done.stderr
    assert "no: not imported: explicitly blocked" in done.stderr
    assert "reserved" in done.stderr
    assert "imported 1 of 5 servers" in done.stderr


def test_a_dry_import_writes_nothing(home, project):
    """The diff is printed, secrets starred."""
    (project / "f.json").write_text('{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "canary"}}}}')

    done = run("import", "cursor", "--path", "f.json", "-s", "user", "--dry-run", cwd=project)

    assert (done.returncode, '+        "API_KEY": "***"' in done.stdout.splitlines()) == (0, True)
    assert "canary" not in done.stdout + done.stderr
    assert not (home / ".claude.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["cursor"], 1, ".cursor/mcp.json"),
        (["cursor", "--path", "none.json"], 3, "none.json: cannot be read"),
        (["cursor", "--path", "broken.json"], 3, "broken.json:1:"),
        (["emacs"], 2, "emacs"),
    ],
)
def test_no_file(words, code, said, home, project):
    """A file that is missing or broken is named, and nothing is written."""
    (project / "broken.json").write_text("{")

    done = run("import", *words, "-s", "user", cwd=project)

    assert done.returncode == code
    assert said in done.stderr
    assert not Path(home / ".claude.json").exists()
