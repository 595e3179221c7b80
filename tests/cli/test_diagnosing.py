"""The verbs that explain: `doctor` and `why`; with them `diagnosis`, `configured` and `destinations`."""

from __future__ import annotations

import json

import pytest

from mcp_actors.cli.configured import refuse_when_managed
from mcp_actors.cli.destinations import destination_of, diff_text
from mcp_actors.cli.diagnosis import explain_server, explain_text, find_all
from mcp_actors.config.loaded import LoadedConfig
from mcp_actors.config.remedies import SWITCHED_OFF
from mcp_actors.config.specs import Scope, ServerSpec, StdioTarget
from mcp_actors.errors import ServerNotAllowed
from mcp_actors.files.loading import load_config
from mcp_actors.files.places import Places
from mcp_actors.files.writing import Change
from tests.cli.command import environment, run, server

HOME = {
    "mcpServers": {
        "good": {"command": "sh"},
        "lost": {"command": "no-such-program"},
        "unset": {"type": "http", "url": "https://u:canary-1@h/${ABSENT}", "headers": {"X": "canary-2"}},
        "off": {"command": "sh", "disabled": True},
        "blocked": {"command": "sh", "args": ["blocked"]},
        "empty": {"type": "http", "url": ""},
        "bad": {"command": 5},
        "both": {"command": "sh", "args": ["user"]},
        "a__b": {"command": "sh"},
    }
}
PROJECT = {
    "mcpServers": {
        "waiting": {"command": "sh"},
        "refused": {"command": "sh"},
        "both": {"command": "sh", "args": ["project"]},
    }
}
SETTINGS = {
    "disabledMcpjsonServers": ["refused"],
    "deniedMcpServers": [{"serverCommand": ["sh", "blocked"]}],
    "enabledMcpjsonServers": ["both"],
}


@pytest.fixture
def mess(home, project):
    """A configuration in which everything is wrong that can be."""
    (home / ".claude").mkdir()
    (home / ".claude.json").write_text(json.dumps(HOME))
    (home / ".claude" / "settings.json").write_text(json.dumps(SETTINGS))
    (project / ".mcp.json").write_text(json.dumps(PROJECT))
    return project


def doctor(project, *words, **options):
    done = run("doctor", "--json", *words, cwd=project, **options)
    return done, json.loads(done.stdout)


def test_doctor_says_everything(mess):
    """Every definition of every file has its line, each that does not run its reason and what to do."""
    done, report = doctor(mess)

    found = {(row["server"], row["code"], row["level"]) for row in report["findings"]}
    assert found >= {
        ("good", "runs", "ok"),
        ("lost", "command-not-found", "error"),
        ("unset", "unset-variable", "warning"),
        ("off", "user", "note"),
        ("blocked", "policy", "warning"),
        ("empty", "not-configured", "note"),
        ("bad", "invalid-config", "error"),
        ("both", "runs", "ok"),
        ("both", "shadowed", "warning"),
        ("a__b", "double-underscore", "warning"),
        ("waiting", "pending-approval", "warning"),
        ("refused", "rejected", "note"),
    }
    assert {row["server"] for row in report["findings"]} >= {*HOME["mcpServers"], *PROJECT["mcpServers"]}
    assert all(row["remedy"] for row in report["findings"] if row["code"] in SWITCHED_OFF)
    assert done.returncode == 1
    assert "canary" not in done.stdout + done.stderr
    assert "ABSENT" in done.stdout


def test_doctor_for_a_person(mess):
    """The same as lines, with what to do beneath and a count at the end."""
    done = run("doctor", cwd=mess)

    lines = done.stdout.splitlines()
    assert any(line.startswith("error    lost: command 'no-such-program' not found") for line in lines)
    assert any(line.startswith("         -> look at it and allow it: mcp-actors approve waiting") for line in lines)
    assert lines[-1].startswith("2 errors, ")
    assert lines[-1].endswith("nothing was started: mcp-actors list connects them")
    assert "canary" not in done.stdout


def test_doctor_of_nothing(project, home):
    """Without any file there is nothing to complain about."""
    done, report = doctor(project)

    assert (done.returncode, report["files"], report["findings"]) == (0, [], [])
    assert report["state"] == str(home / "state")
    assert report["extras"].keys() >= {"rich", "keyring"}
    assert report["managed"] is False


@pytest.mark.parametrize(
    ("text", "said"), [("{", ".mcp.json:1:"), ('{"servers": {}}', "use import"), ("[]", "must be an object")]
)
def test_doctor_of_a_broken_file(text, said, project):
    """A file that cannot be used is an error with its place, and the exit code says so."""
    (project / ".mcp.json").write_text(text)

    done = run("doctor", cwd=project)

    assert done.returncode == 3
    assert said in done.stdout


def test_doctor_sees_an_unreadable_file(project):
    """A folder in the place of a file is told."""
    (project / ".mcp.json").mkdir()

    done, report = doctor(project)

    assert (done.returncode, report["findings"][0]["code"]) == (3, "unreadable")


def test_doctor_of_given_texts(project):
    """What --config names is looked at too, and --strict-config leaves the rest out."""
    done, report = doctor(project, "--strict-config", "--config", '{"mcpServers": {"a": {"command": "sh"}}}')

    assert [row["server"] for row in report["findings"]] == ["a"]
    assert done.returncode == 0


def test_doctor_guards_what_is_remembered(home, project):
    """A memory that others may change is told, with the command that closes it."""
    (home / "state").mkdir(mode=0o755)
    (home / "state").chmod(0o755)

    _, report = doctor(project)

    assert report["findings"][0]["remedy"] == f"chmod 700 {home / 'state'}"


def test_doctor_reads_the_environment(project):
    """A setting that is no number is told."""
    _, report = doctor(project, env=environment(MCP_TIMEOUT="soon"))

    assert [row["code"] for row in report["findings"]] == ["environment"]


# ── why ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("good", {"runs": True, "reason": "enabled", "scope": "user", "policy": "allowed", "remedy": None}),
        ("lost", {"runs": True, "reason": "command-not-found"}),
        ("off", {"runs": False, "reason": "user", "remedy": "switch it on: mcp-actors enable off"}),
        ("blocked", {"runs": False, "reason": "policy"}),
        ("waiting", {"runs": False, "reason": "pending-approval", "approval": "pending-approval"}),
        ("refused", {"runs": False, "reason": "rejected", "approval": "rejected"}),
        ("both", {"runs": True, "scope": "project", "approval": "approved"}),
        ("bad", {"runs": False, "reason": "invalid-config", "entry": None}),
        ("empty", {"runs": False, "reason": "not-configured"}),
    ],
)
def test_why(name, expected, mess):
    """Scope, policy, approval, program and reason of one server, without starting it."""
    done = run("why", name, "--json", cwd=mess)
    shown = json.loads(done.stdout)

    assert done.returncode == 0
    assert expected.items() <= shown.items()
    text = run("why", name, cwd=mess)
    assert text.stdout.startswith(f"{name}: ")


def test_why_claims_no_more_than_it_knows(mess):
    """It starts nothing, so of a server that may run it says how to see whether it connects."""
    may, off = run("why", "good", cwd=mess).stdout, run("why", "off", cwd=mess).stdout

    assert may.startswith("good: nothing stands against it\n")
    assert may.endswith("  -> to see whether it connects: the same with --connect\n")
    assert "--connect" not in off


def test_why_names_rule_and_what_lost(mess):
    """The rule that blocks stands with its file, and so does the definition that is not used."""
    blocked = json.loads(run("why", "blocked", "--json", cwd=mess).stdout)
    both = json.loads(run("why", "both", "--json", cwd=mess).stdout)

    assert "deny serverCommand" in blocked["detail"]
    assert "settings.json" in blocked["policy"]
    assert [("user" in text, ".claude.json" in text) for text in both["not_used"]] == [(True, True)]


def test_why_hides_secrets(mess):
    """The entry is shown as written, with stars."""
    done = run("why", "unset", cwd=mess)

    assert "https://***@h/${ABSENT}" in done.stdout
    assert "canary" not in done.stdout + done.stderr


def test_why_connects_when_asked(project):
    """With --connect the one server is started, and its status is told; what may not run is not started."""
    servers = {"clock": server(program="clock", era="legacy"), "off": {"command": "false", "disabled": True}}
    words = ["--strict-config", "--config", json.dumps({"mcpServers": servers})]

    up = run("why", "clock", "--connect", "--json", *words, cwd=project)
    off = run("why", "off", "--connect", "--json", *words, cwd=project)

    assert (up.returncode, json.loads(up.stdout)["status"]["state"]) == (0, "connected")
    assert (off.returncode, "status" in json.loads(off.stdout)) == (0, False)


def test_why_tells_what_is_wrong_with_the_lists_of_a_server_that_is_up():
    """S155, F01: each warning of its status is a line; what a server wrote breaks none."""
    spec = ServerSpec("lib", StdioTarget("lib"))
    loaded = LoadedConfig(specs=(spec,))
    shown = explain_server("lib", loaded, {}, "/")
    shown["status"] = {
        "state": "connected",
        "reason": "ready",
        "error": None,
        "remedy": None,
        "warnings": ["tools/list: changes are not told: refused\nhere", "tools/list: it loops"],
    }

    lines = explain_text(shown).splitlines()

    assert lines[-2:] == [
        "  warning: tools/list: changes are not told: refused here",
        "  warning: tools/list: it loops",
    ]


def test_find_all_is_in_order(mess, home):
    """Problems come first, then servers, then what lost, then notes: each definition once as a state."""
    loaded = load_config(environ=environment(), cwd=mess, home=home)

    findings = list(find_all(loaded, environment(), str(mess)))

    states = [each for each in findings if each.code in {*SWITCHED_OFF, "runs", "command-not-found"}]
    assert [each.server for each in states] == [spec.name for spec in loaded.specs]
    assert findings[0].code == "invalid-config"


# ── where things are written ─────────────────────────────────────────────────────────────────────────────────────────


def test_nobody_changes_what_an_administrator_manages(home, project, tmp_path):
    """While a managed file exists, even a broken one, every change is refused (S025, S026, S061)."""
    places = Places.of(environment(), cwd=project, managed_dir=tmp_path / "managed")
    refuse_when_managed(places)
    (tmp_path / "managed").mkdir()
    (tmp_path / "managed" / "managed-mcp.json").write_text("{")

    with pytest.raises(ServerNotAllowed, match="exclusive control"):
        refuse_when_managed(places)


def test_destinations(home, project):
    """Each scope has its file and its place inside it; the name that a file has for the project is kept."""
    places = Places.of(environment(), cwd=project / "sub")

    assert destination_of("user", places).file == destination_of("local", places).file == home / ".claude.json"
    assert destination_of("project", places).file == project / ".mcp.json"
    local = destination_of("local", places)
    assert (local.scope, local.root(None)) == (Scope.LOCAL, ("projects", str(project), "mcpServers"))
    known = {"projects": {str(project / "sub"): {}}}
    assert local.root(known) == ("projects", str(project / "sub"), "mcpServers")


def test_diff_of_a_new_file(tmp_path):
    """A file that is made is compared with none; no change is no text."""
    assert diff_text(Change(tmp_path / "f", None, "{}")).splitlines()[:2] == ["--- /dev/null", f"+++ {tmp_path / 'f'}"]
    assert diff_text(Change(tmp_path / "f", "{}", "{}")) == ""
