"""The verbs by which a person chooses: `approve`, `enable`, `disable`, `reset-project-choices`."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import threading

import pytest

from tests.cli.command import PATIENCE, argv, environment, run, shell

CHOICES = "choices.json"


def put(project, **servers):
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def why(name, project):
    return json.loads(run("why", name, "--json", cwd=project).stdout)


@pytest.fixture
def touch(project, tmp_path):
    """A project whose one server leaves a trace when it is started; gives the trace's path."""
    put(project, touch=shell(f"touch {tmp_path}/ran"))
    return tmp_path / "ran"


class Terminal:
    """A command line whose three streams are a terminal; what it prints is read all the time."""

    def __init__(self, *words, cwd):
        self.master, slave = pty.openpty()
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        self.process = subprocess.Popen(argv(*words), cwd=cwd, env=environment(TERM="xterm"), **streams)
        os.close(slave)
        self.shown = bytearray()
        self.grown = threading.Condition()
        self.reader = threading.Thread(target=self.drain)
        self.reader.start()

    def drain(self):
        try:
            while data := os.read(self.master, 65536):
                with self.grown:
                    self.shown += data
                    self.grown.notify_all()
        except OSError:  # how a terminal ends
            pass
        with self.grown:
            self.grown.notify_all()

    def wait_for(self, text):
        with self.grown:
            assert self.grown.wait_for(lambda: text in self.shown or not self.reader.is_alive(), PATIENCE), self.shown
        assert text in self.shown, self.shown

    def say(self, text):
        os.write(self.master, text)

    def end(self):
        """Wait for the end; give the exit code and what was shown."""
        try:
            code = self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join(PATIENCE)
            os.close(self.master)
        return code, bytes(self.shown)


# ── nothing runs unasked ─────────────────────────────────────────────────────────────────────────────────────────────

LOOKING = [
    "list", "list --json", "tools", "tools touch", "get touch", "call touch.x",
    "doctor", "doctor --json", "why touch", "why touch --connect",
]  # fmt: skip
CHANGING = [
    "approve", "approve touch", "enable touch", "disable touch", "reset-project-choices",
    "add -s project other x", "add -s user touch x --dry-run", "remove -s project touch --dry-run",
    "add-json -s local j {}", "import cursor -s project",
]  # fmt: skip


@pytest.mark.parametrize("line", [*LOOKING, *CHANGING])
def test_no_verb_starts_what_nobody_approved(line, project, touch):
    """A folder's command is started by no verb, headless, before somebody approved it (fault 109)."""
    done = run(*line.split(), cwd=project)

    assert "Traceback" not in done.stderr
    assert not touch.exists()


@pytest.mark.slow
def test_no_verb_starts_it_on_a_terminal(project, touch, tmp_path):
    """The same on a terminal, with whatever answer but yes."""
    opened = [Terminal(*line.split(), cwd=project) for line in LOOKING]
    asked = [(answer, Terminal("approve", cwd=project)) for answer in (b"\n", b"n\n", b"\x04", b"yesterday\n")]
    running = Terminal("run", cwd=project)
    for answer, terminal in asked:
        terminal.wait_for(b"[y/N]")
        terminal.say(answer)
    running.wait_for(b"running:")
    running.process.send_signal(signal.SIGTERM)

    ended = [terminal.end() for terminal in [*opened, running]]
    refused = [terminal.end() for _, terminal in asked]

    assert not any(b"Traceback" in shown for _, shown in [*ended, *refused])
    assert [code for code, _ in refused] == [1] * 4
    assert why("touch", project)["reason"] == "pending-approval"
    assert not touch.exists()


@pytest.mark.slow
def test_a_yes_on_a_terminal_is_kept(project, touch):
    """The exact command is shown, whole; after a yes the server is started, here and from now on (E14)."""
    terminal = Terminal("approve", "touch", cwd=project)
    terminal.wait_for(b"[y/N]")
    terminal.say(b"y\n")
    code, shown = terminal.end()

    assert code == 0
    assert f'command: "/bin/sh" "-c" "touch {touch}"'.encode() in shown.replace(b"\r\n", b"")
    run("list", cwd=project)
    assert touch.exists()


# ── approve ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_terminal_nobody_is_asked(project, touch):
    """Headless, approve shows the command and refuses; with --yes it approves what it shows."""
    refused = run("approve", cwd=project)
    agreed = run("approve", "touch", "--yes", cwd=project)

    assert (refused.returncode, agreed.returncode) == (1, 0)
    for done in (refused, agreed):
        assert f'command: "/bin/sh" "-c" "touch {touch}"' in done.stderr
    assert why("touch", project)["reason"] == "enabled"
    assert not touch.exists()


def test_nothing_of_the_command_is_cut_or_filled_in(project):
    """A long command, a variable and a mark that turns text around are all shown as they are written."""
    put(project, long={"command": "sh", "args": ["-c", "x" * 5000, "${HOME}", "\u202egod"], "env": {"A": "b\x1b[2J"}})

    done = run("approve", "--yes", cwd=project)

    assert f'"{"x" * 5000}" "${{HOME}}" "\\u202egod"' in done.stderr
    assert 'env: {"A": "b\\u001b[2J"}' in done.stderr


@pytest.mark.parametrize(
    "changed",
    [
        {"command": "/bin/bash", "args": ["x"]},
        {"command": "/bin/sh", "args": ["x", "y"]},
        {"command": "/bin/sh", "args": ["x"], "env": {"LD_PRELOAD": "z"}},
        {"command": "/bin/sh", "args": ["x"], "cwd": "/"},
    ],
)
def test_a_changed_command_asks_again(project, changed):
    """An approval is for one definition; the old one counts again when it comes back."""
    put(project, s={"command": "/bin/sh", "args": ["x"]})
    run("approve", "--yes", cwd=project)

    put(project, s=changed)
    assert why("s", project)["reason"] == "pending-approval"

    put(project, s={"command": "/bin/sh", "args": ["x"]})
    assert why("s", project)["reason"] == "enabled"


def test_another_folder_asks_for_itself(project, tmp_path):
    """The same text in another repository is another program."""
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    for place in (project, other):
        put(place, s={"command": "./run.sh"})
    run("approve", "--yes", cwd=project)

    assert (why("s", project)["reason"], why("s", other)["reason"]) == ("command-not-found", "pending-approval")


def test_a_repository_cannot_approve_itself(project, touch):
    """Nothing that a folder carries is a yes: settings, a state directory, an environment file."""
    settings = {"enableAllProjectMcpServers": True, "enabledMcpjsonServers": ["touch"]}
    settings["env"] = {"MCP_ACTORS_APPROVE_PROJECT": "1", "MCP_ACTORS_STATE_DIR": str(project)}
    (project / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        (project / ".claude" / name).write_text(json.dumps(settings))
    (project / ".env").write_text("MCP_ACTORS_APPROVE_PROJECT=1\n")
    run("approve", "--yes", cwd=project, env=environment(MCP_ACTORS_STATE_DIR=str(project / "state")))

    done = run("list", "--json", cwd=project, env=environment(MCP_ACTORS_STATE_DIR="state"))

    assert json.loads(done.stdout)["servers"][0]["reason"] == "pending-approval"
    assert not touch.exists()


def test_a_no_outweighs(home, project, touch):
    """A rejected server is not approved, nor is a blocked one."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"disabledMcpjsonServers": ["touch"]}')
    rejected = run("approve", "touch", "--yes", cwd=project)
    (home / ".claude" / "settings.json").write_text('{"deniedMcpServers": [{"serverName": "touch"}]}')
    blocked = run("approve", "touch", "--yes", cwd=project)

    assert (rejected.returncode, blocked.returncode) == (1, 3)
    assert "disabledMcpjsonServers" in rejected.stderr
    assert "explicitly blocked" in blocked.stderr
    assert not (home / "state" / CHOICES).exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["mine"], 0, "needs no approval"),
        (["nobody"], 1, "configured: touch, mine"),
        (["touch"], 0, "approved already"),
        ([], 0, "no server waits"),
    ],
)
def test_nothing_to_approve(words, code, said, home, project, touch):
    """Other scopes need no approval, and asking twice is no mistake."""
    run("approve", "--yes", cwd=project)
    run("add", "-s", "user", "mine", "x", cwd=project)

    done = run("approve", *words, cwd=project)

    assert done.returncode == code
    assert said in done.stderr


def test_what_is_remembered_is_private(home, project, touch):
    """The file is for this user alone, and so is its folder; it names the definition and holds nothing of it."""
    run("approve", "--yes", cwd=project)

    file = home / "state" / CHOICES
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert "/bin/sh" not in file.read_text()


# ── enable, disable, reset ───────────────────────────────────────────────────────────────────────────────────────────


def test_switches_are_for_one_project(home, project, tmp_path):
    """A server that is off here is on elsewhere; no configuration file is written (S037)."""
    (tmp_path / "other" / ".git").mkdir(parents=True)
    run("add", "-s", "user", "mine", "sh", cwd=project)
    before = (home / ".claude.json").read_bytes()

    assert run("disable", "mine", cwd=project).returncode == 0
    assert why("mine", project)["reason"] == "user"
    assert why("mine", tmp_path / "other")["reason"] == "enabled"
    assert run("enable", "mine", cwd=project).returncode == 0
    assert why("mine", project)["reason"] == "enabled"
    assert (home / ".claude.json").read_bytes() == before


@pytest.mark.parametrize("how", ["entry", "claude"])
def test_enable_has_the_last_word_over_switches(how, home, project):
    """A server that its entry, or Claude Code's own list, switches off can be switched on here."""
    entry = {"command": "sh", **({"disabled": True} if how == "entry" else {})}
    projects = {str(project): {"disabledMcpServers": ["s"]}} if how == "claude" else {}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"s": entry}, "projects": projects}))
    assert why("s", project)["reason"] == "user"

    assert run("enable", "s", cwd=project).returncode == 0
    assert why("s", project)["reason"] == "enabled"
    run("disable", "s", cwd=project)
    assert why("s", project)["reason"] == "user"


def test_enable_is_no_approval(project, touch):
    """What waits for approval still waits, and the verb says so."""
    done = run("enable", "touch", cwd=project)

    assert done.returncode == 1
    assert "pending-approval" in done.stderr
    run("list", cwd=project)
    assert not touch.exists()


@pytest.mark.parametrize("verb", ["enable", "disable", "why"])
def test_unknown_names_list_what_exists(verb, project, touch):
    """A mistyped name is answered with the nearest and with all."""
    done = run(verb, "tuoch", cwd=project)

    assert done.returncode == 1
    assert "did you mean touch?" in done.stderr
    assert "configured: touch" in done.stderr


def test_reset_forgets_this_project_alone(home, project, tmp_path):
    """Approvals and switches of this project are gone; another one's stay."""
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    run("add", "-s", "user", "mine", "sh", cwd=project)
    for place in (project, other):
        put(place, s={"command": "sh"})
        run("approve", "--yes", cwd=place)
        run("disable", "mine", cwd=place)

    assert run("reset-project-choices", cwd=project).returncode == 0

    assert (why("s", project)["reason"], why("mine", project)["reason"]) == ("pending-approval", "enabled")
    assert (why("s", other)["reason"], why("mine", other)["reason"]) == ("enabled", "user")


def test_a_broken_memory_approves_nothing_and_is_not_overwritten(home, project, touch):
    """A file of ours that does not parse is told; nothing is taken for approved, nothing is lost."""
    run("approve", "--yes", cwd=project)
    (home / "state" / CHOICES).write_text('{"approved": ')

    listed = run("list", cwd=project)
    approved = run("approve", "--yes", cwd=project)

    assert (listed.returncode, approved.returncode) == (3, 3)
    assert f"{CHOICES}:1:" in listed.stderr
    assert (home / "state" / CHOICES).read_text() == '{"approved": '
    assert not touch.exists()
