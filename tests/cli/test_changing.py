"""The verbs that change a configuration file: `add`, `add-json`, `remove`."""

from __future__ import annotations

import json
import stat

import pytest

from tests.cli.command import run, server

SCOPES = ["user", "local", "project"]


def file_of(scope, home, project):
    return project / ".mcp.json" if scope == "project" else home / ".claude.json"


def servers_of(scope, home, project):
    document = json.loads(file_of(scope, home, project).read_text())
    return (document["projects"][str(project)] if scope == "local" else document)["mcpServers"]


@pytest.mark.parametrize("scope", SCOPES)
def test_add_writes_the_scopes_file_and_remove_takes_it_back(scope, home, project):
    """Each scope has its place (S009, S010, S012); the server counts at once; what else stands there stays."""
    file_of(scope, home, project).write_text('{\n  // mine\n  "x": [1]\n}\n')

    added = run("add", "-s", scope, "docs", "--", "npx", "-y", "docs", cwd=project)
    shown = run("why", "docs", "--json", cwd=project)
    removed = run("remove", "-s", scope, "docs", cwd=project)

    assert (added.returncode, removed.returncode) == (0, 0), added.stderr + removed.stderr
    assert (json.loads(shown.stdout)["scope"], json.loads(shown.stdout)["entry"]["command"]) == (scope, "npx")
    text = file_of(scope, home, project).read_text()
    assert "// mine" in text
    assert '"x": [1]' in text
    assert "docs" not in text


def test_files_that_are_made(home, project):
    """`~/.claude.json` is made for the user alone, `.mcp.json` for all who share the project."""
    for scope in SCOPES:
        assert run("add", "-s", scope, f"of-{scope}", "x", cwd=project).returncode == 0

    assert stat.S_IMODE((home / ".claude.json").stat().st_mode) == 0o600
    assert {name for scope in SCOPES for name in servers_of(scope, home, project)} == {f"of-{name}" for name in SCOPES}


def test_a_subfolder_is_the_same_project(home, project):
    """A server is written for the repository, and a nearer name of the project that the file knows is kept."""
    (project / "sub").mkdir()

    assert run("add", "-s", "local", "a", "x", cwd=project / "sub").returncode == 0
    assert run("add", "-s", "project", "b", "x", cwd=project / "sub").returncode == 0

    assert list(servers_of("local", home, project)) == ["a"]
    assert list(servers_of("project", home, project)) == ["b"]


def test_local_is_the_default_scope(home, project):
    """Without -s a server is private to this user and project; remove finds it where it stands (S040)."""
    assert run("add", "docs", "x", cwd=project).returncode == 0
    assert run("add", "-s", "project", "shared", "x", cwd=project).returncode == 0

    assert list(servers_of("local", home, project)) == ["docs"]
    assert run("remove", "docs", cwd=project).returncode == 0
    assert run("remove", "shared", cwd=project).returncode == 0
    assert list(servers_of("local", home, project)) == []
    assert list(servers_of("project", home, project)) == []


def test_remove_says_where_a_name_is(home, project):
    """Whoever leaves out the scope is told where the server stands."""
    run("add", "-s", "local", "docs", "x", cwd=project)
    run("add", "-s", "project", "docs", "x", cwd=project)

    done = run("remove", "docs", cwd=project)

    assert done.returncode == 2
    assert "say which with -s: local, project" in done.stderr


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("add -s user docs y", 1, "there are: docs"),
        ("add-json -s user docs {}", 3, "neither command nor url"),
        ('add-json -s user docs {"command":"y"}', 1, "there are: docs"),
        ("add -s user ide y", 3, "reserved"),
        ("add -s user a.b y", 3, "letters, digits"),
        ("add -s user a -t http ftp://h", 3, "http:// or https://"),
        ('add-json -s user a {"command":5}', 3, "must be a text"),
        ('add-json -s user a {"command":"x","env":{"A":[]},"args":3}', 3, "args"),
        ("add-json -s user a [1]", 2, "no object"),
        ("add-json -s user a {", 3, "<command line>:1:2"),
        ('add-json -s user a {"mcpServers":{}}', 2, "import"),
        ("add -s user a -- ", 2, "name a command"),
        ("add -s cloud a b", 2, "cloud"),
        ("add -s user a npx -y b", 2, "-- COMMAND"),
        ("remove -s user other", 1, "there are: docs"),
        ("remove -s project docs", 1, "there are no servers"),
    ],
)
def test_refusals(line, code, said, home, project):
    """What cannot be is refused with its reason, and the file stays as it is."""
    run("add", "-s", "user", "docs", "x", cwd=project)
    before = (home / ".claude.json").read_bytes()

    done = run(*line.split(), cwd=project)

    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert (home / ".claude.json").read_bytes() == before


@pytest.mark.parametrize("verb", [["add", "-s", "user", "a", "x"], ["remove", "-s", "user", "a"]])
def test_a_broken_file_stays_as_it_is(verb, home, project):
    """A file that does not parse is refused with line and column, unchanged to the byte (fault 23)."""
    (home / ".claude.json").write_bytes(b'{\n  "mcpServers": {,}\n}')

    done = run(*verb, cwd=project)

    assert done.returncode == 3
    assert ".claude.json:2:" in done.stderr
    assert (home / ".claude.json").read_bytes() == b'{\n  "mcpServers": {,}\n}'
    assert [path.name for path in home.iterdir() if path.name != "state"] == [".claude.json"]


def test_a_dry_run_shows_the_change_and_no_secret(home, project):
    """The diff is what would be done; secrets, also those of lines nearby, are starred; nothing is written (S030)."""
    near = {"mcpServers": {"old": {"command": "x", "env": {"API_KEY": "canary-1"}}}, "primaryApiKey": "canary-2"}
    (home / ".claude.json").write_text(json.dumps(near, indent=2))

    words = ["web", "https://u:canary-3@h/mcp", "-H", "Authorization: Bearer canary-4", "--dry-run"]
    done = run("add", "-s", "user", *words, cwd=project)

    assert done.returncode == 0
    assert '+    "web": {' in done.stdout.splitlines()
    assert '+        "Authorization": "Bearer ***"' in done.stdout.splitlines()
    assert "canary" not in done.stdout + done.stderr
    assert json.loads((home / ".claude.json").read_text()) == near


POLICIES = [
    ({"deniedMcpServers": [{"serverName": "docs"}]}, "explicitly blocked"),
    ({"allowedMcpServers": []}, "not allowed"),
    ({"allowedMcpServers": [{"serverCommand": ["other"]}]}, "not allowed"),
]


@pytest.mark.parametrize(("settings", "said"), POLICIES)
@pytest.mark.parametrize(
    "verb", [["add", "-s", "user", "docs", "x"], ["add-json", "-s", "user", "docs", '{"command":"x"}']]
)
def test_policy_is_asked_first(verb, settings, said, home, project):
    """A server that may not run is not written either; the reason names rule and file (S060, S061)."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))

    done = run(*verb, cwd=project)

    assert done.returncode == 3
    assert said in done.stderr
    assert not (home / ".claude.json").exists()


def test_whoever_adds_to_the_project_has_approved(home, project):
    """The command was typed by the person who is asked; a secret in a shared file is warned of."""
    clock = server(program="clock")
    added = run(
        *["add", "-s", "project", "clock", "-e", "API_KEY=canary-4711", "--", clock["command"], *clock["args"]],
        cwd=project,
    )
    listed = run("list", "--json", cwd=project)

    assert "shared" in added.stderr
    assert "canary" not in added.stderr
    assert [row["state"] for row in json.loads(listed.stdout)["servers"]] == ["connected"], listed.stderr


def test_an_entry_from_a_file(tmp_path, home, project):
    """`add-json` takes the entry from a file too, unknown keys included."""
    (tmp_path / "e.json").write_text('{"command": "x", "x-mine": {"a": [1]}}')

    assert run("add-json", "-s", "user", "a", f"@{tmp_path}/e.json", cwd=project).returncode == 0
    assert servers_of("user", home, project) == {"a": {"command": "x", "x-mine": {"a": [1]}}}
