"""The option `--client-secret` of the verbs that write entries, with files as the store."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.cli.command import argv, environment, run

URL = "https://mcp.example.com/mcp"
ADD = ("add", "--client-id", "id", "--client-secret", "docs", URL)
OWN = {"clientId": "id", "clientSecret": "s"}
JSON = ("add-json", "--client-secret", "docs", json.dumps({"url": URL, "oauth": {"clientId": "id"}}))


@pytest.fixture(autouse=True)
def _files(monkeypatch):
    monkeypatch.setenv("MCP_ACTORS_CREDENTIALS_STORE", "file")


def kept(home):
    """What the store has: name of the file -> bytes."""
    place = home / "state" / "credentials"
    return {path.name: path.read_bytes() for path in place.iterdir()} if place.exists() else {}


@pytest.mark.parametrize("words", [ADD, JSON], ids=["add", "add-json"])
@pytest.mark.parametrize("scope", ["local", "project"])
def test_the_secret_is_kept_where_logins_are_and_goes_with_the_entry(words, scope, home, project):
    """`MCP_CLIENT_SECRET` is kept in a private file, not in the entry; `remove` forgets it (S261, S361)."""
    env = environment(MCP_CLIENT_SECRET="canary")

    added = run(*words, "-s", scope, env=env, cwd=project)

    assert (added.returncode, "kept in the store file" in added.stderr) == (0, True), added.stderr
    [(name, data)] = kept(home).items()
    assert (data, (home / "state" / "credentials" / name).stat().st_mode & 0o777) == (b"canary", 0o600)
    written = (project / ".mcp.json" if scope == "project" else home / ".claude.json").read_text()
    assert '"clientId"' in written
    assert "canary" not in written + added.stdout + added.stderr

    assert run("remove", "-s", scope, "docs", cwd=project).returncode == 0
    assert kept(home) == {}


def test_a_secret_without_the_option_is_not_taken(home, project):
    """A variable that is set for another purpose does nothing by itself."""
    done = run("add", "--client-id", "id", "docs", URL, env=environment(MCP_CLIENT_SECRET="canary"), cwd=project)

    assert (done.returncode, kept(home)) == (0, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "--client-secret", "docs", URL), "--client-id"),
        (("add", "--client-secret", "docs", "--", "npx"), "no --client-secret"),
        (("add-json", "--client-secret", "docs", json.dumps({"command": "npx"})), "oauth.clientId"),
        (
            (
                "add-json",
                "--client-secret",
                "d",
                json.dumps({"url": URL, "oauth": {"clientId": "i", "clientSecret": "s"}}),
            ),
            "oauth.clientSecret",
        ),
        (ADD, "MCP_CLIENT_SECRET"),
    ],
)
def test_a_secret_that_fits_nothing_is_a_usage_error(words, said, home, project):
    """No client, a secret of its own, no terminal and no variable: nothing is written and nothing kept."""
    done = run(*words, cwd=project)

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (home / ".claude.json").exists()
    assert kept(home) == {}


def test_a_taken_name_is_refused_before_anybody_types_a_secret(home, project):
    """The secret of the entry that is there stays; a dry run asks for none."""
    assert run("add", "docs", "x", cwd=project).returncode == 0

    taken = run(*ADD, env=environment(MCP_CLIENT_SECRET="canary"), cwd=project)
    dry = run("add", "--dry-run", "--client-id", "id", "--client-secret", "more", URL, cwd=project)

    assert (taken.returncode, dry.returncode, kept(home)) == (1, 0, {}), dry.stderr


def test_a_store_that_cannot_be_used_keeps_no_entry_from_going(home, project):
    """The entry is removed all the same, and it is told that its secret was not looked for."""
    assert run("add", "--client-id", "id", "docs", URL, cwd=project).returncode == 0

    done = run("remove", "docs", env=environment(MCP_ACTORS_CREDENTIALS_STORE="vault"), cwd=project)

    assert (done.returncode, "could not be looked for" in done.stderr) == (0, True), done.stderr
    assert "docs" not in (home / ".claude.json").read_text()


@pytest.mark.slow
def test_the_secret_is_typed_at_a_terminal_and_not_shown(home, project):
    """What is typed is not echoed (S261)."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        argv(*ADD), stdin=slave, stdout=slave, stderr=slave, env=environment(), cwd=project, start_new_session=True
    )
    os.close(slave)
    shown = b""
    try:
        while chunk := read(master):
            is_asked = b"client secret: " in shown
            shown += chunk
            if not is_asked and b"client secret: " in shown:
                os.write(master, b"canary\n")
    finally:
        os.close(master)

    assert (process.wait(), list(kept(home).values())) == (0, [b"canary"]), shown
    assert b"canary" not in shown


def read(master):
    """What the terminal shows next; empty when its last process is gone."""
    try:
        return os.read(master, 4096)
    except OSError:
        return b""
