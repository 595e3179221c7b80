"""The command end to end: as a child process, against real servers that ship in the package."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from mcp_actors.testing.http_server import HttpAnswer, HttpOptions, open_http_server
from mcp_actors.testing.synthetic import synthetic_server
from tests.cli.command import PATIENCE, argv, config, environment, is_alive, run, server, shell, spawn

KEYS = [
    "name", "state", "reason", "phase", "transport", "scope", "era", "revision",
    "tools", "resources", "prompts", "pid", "error", "elapsed_ms", "warnings", "remedy",
]  # fmt: skip
pytestmark = pytest.mark.slow
GOOD = server(program="clock", era="legacy")
DICE = server(program="dice")
SYNTHETIC = server(tools=8)
EMPTY = server(tools=0)
BAD = {"command": "/nonexistent/program"}
DEAD = shell("echo the last words >&2; exit 3")
ODD = {"command": 5}


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["list", *config(clock=GOOD)], 0, "1 server: 1 connected"),
        (["list", *config()], 0, "no servers"),
        (["list", *config(clock=GOOD, bad=BAD)], 1, "2 servers"),
        (["list", *config(clock=GOOD, odd=ODD)], 1, "odd"),
        (["list", "clock", *config(clock=GOOD, bad=BAD)], 0, "1 server: 1 connected"),
        (["list", "bad", *config(clock=GOOD, bad=BAD)], 1, "1 server: 1 failed"),
        (["list", "clokc", *config(clock=GOOD)], 1, "did you mean clock?"),
        (["list", *config(s=EMPTY)], 0, "s: it declares tools and lists none"),
        (["tools", *config(s=EMPTY)], 0, "s: it declares tools and lists none"),
        (["prompts", *config(s=EMPTY)], 0, "s: it declares tools and lists none"),
        (["tools", *config(clock=GOOD)], 0, ""),
        (["tools", *config(clock=GOOD, bad=BAD)], 1, "/nonexistent/program"),
        (["tools", "clock", *config(clock=GOOD, bad=BAD)], 0, ""),
        (["tools", "clokc", *config(clock=GOOD)], 1, "did you mean clock?"),
        (["get", "clock", *config(clock=GOOD)], 0, ""),
        (["get", "bad", *config(bad=BAD)], 1, ""),
        (["get", "odd", *config(clock=GOOD, odd=ODD)], 3, "odd"),
        (["get", "other", *config(clock=GOOD, dice=DICE)], 1, "configured: clock, dice"),
        (["call", "clock.now", *config(clock=GOOD)], 0, ""),
        (["call", "mcp__clock__now", *config(clock=GOOD)], 0, ""),
        (["call", "clock.nwo", *config(clock=GOOD)], 1, "clock offers: now, uptime"),
        (["call", "clok.now", *config(clock=GOOD)], 1, "did you mean clock?"),
        (["call", "clock", *config(clock=GOOD)], 2, "clock.TOOL"),
        (["call", "now", *config(clock=GOOD)], 1, "write SERVER.TOOL"),
        (["call", "clock.now", "oops", *config(clock=GOOD)], 2, "'oops'"),
        (["call", "s.fail", "text=no luck", *config(s=SYNTHETIC)], 1, "the tool reports an error"),
        (["call", "s.die", "status=7", *config(s=SYNTHETIC)], 1, "status 7"),
        (["call", "s.sleep", "seconds=60", "--timeout", "0.1", *config(s=SYNTHETIC)], 5, "timed out"),
        (["call", "dead.x", *config(dead=DEAD)], 1, "the last words"),
        (["call", "odd.x", *config(clock=GOOD, odd=ODD)], 3, "odd"),
        (["list", "--strict-config", "--config", "/nonexistent/file.json"], 3, "/nonexistent/file.json"),
        (["list", "--strict-config", "--config", "{"], 3, "--config 1"),
        (["list", *config(clock=GOOD), "--config", '{"servers": {}}'], 3, "--config 2"),
        (["run", "--strict-config", "--config", "[]"], 3, ""),
        (["list", "--frobnicate"], 2, "--frobnicate"),
        (["nothing"], 2, "nothing"),
        ([], 2, "name a verb"),
        (["--help"], 0, ""),
        (["--version"], 0, ""),
    ],
    ids=lambda value: " ".join(word for word in value if "{" not in word)[:60] if isinstance(value, list) else None,
)
def test_exit_code(words, code, said):
    """Each outcome has its documented exit code, and standard error says what happened without a traceback."""
    done = run(*words)

    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_storm_leaves_nobody():
    """It exits with 0 when all connected and none of its process's children is left: it has a process of its own."""
    done = spawn("storm", "--transport", "memory", "--servers", "3")

    assert done.returncode == 0, done.stdout + done.stderr


async def test_exit_code_login_needed():
    """A server that asks for a login ends a call with 4."""
    refuse = HttpOptions(intercept=lambda _: HttpAnswer(401, headers=(("www-authenticate", "Bearer"),)))
    async with open_http_server(synthetic_server(), options=refuse) as url:
        words = argv("call", "web.echo", *config(web={"type": "http", "url": url}))
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False, env=environment())

    assert done.returncode == 4, done.stderr
    assert b"web: needs-auth" in done.stderr


async def test_a_server_that_cannot_serve_just_now_is_waited_for():
    """A first connect that is turned away with 503 and a pause is tried again, also by a verb that leaves (S119)."""
    answers = [HttpAnswer(503, headers=(("retry-after", "0"),)), HttpAnswer(502)]

    def turn_away(_: object) -> HttpAnswer | None:
        return answers.pop(0) if answers else None

    async with open_http_server(synthetic_server(), options=HttpOptions(intercept=turn_away)) as url:
        words = argv("list", *config(web={"type": "http", "url": url, "restart": {"backoffFirst": 10}}))
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False, env=environment())

    assert done.returncode == 0, done.stderr
    assert answers == []


async def test_a_call_says_that_the_tools_could_not_be_listed():
    """A tool that is not found may stand in the list that the server did not give, which is told (S155)."""
    refuse = HttpOptions(intercept=lambda asked: HttpAnswer(400) if b'"tools/list"' in asked.body else None)
    offers = synthetic_server()
    offers.fixed_capabilities = {"tools": {}}  # no change to wait for
    async with open_http_server(offers, options=refuse) as url:
        words = argv("call", "web.echo", *config(web={"type": "http", "url": url}))
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False, env=environment())

    assert done.returncode == 1, done.stderr
    assert b"web: tools/list failed" in done.stderr


@pytest.mark.parametrize("status", [400, 401, 403, 500])
async def test_a_server_that_repeats_our_credentials_is_not_quoted(status, tmp_path):
    """Its words are told without what we sent to be known by: in no output, no log (fault 102, S354, S414)."""

    def repeat(asked) -> HttpAnswer:
        said = f"no: {asked.headers['authorization']}, {asked.headers['x-key']}"
        return HttpAnswer(status, said.encode(), "text/plain", (("retry-after", "60"),))

    log = tmp_path / "log"
    async with open_http_server(synthetic_server(), options=HttpOptions(intercept=repeat)) as url:
        web = {"type": "http", "url": url, "headers": {"Authorization": "Bearer tok-s3cret", "X-Key": "key-s3cret"}}
        words = argv("call", "web.echo", "--debug-file", str(log), *config(web=web))
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False, env=environment())

    assert b"no: ***, ***" in done.stderr
    assert b"s3cret" not in done.stdout + done.stderr + log.read_bytes()


def test_a_child_that_repeats_its_credentials_is_not_quoted(tmp_path):
    """What a server writes for people is told without the credentials of its entry (S352, S354)."""
    entry = {**shell('echo "bad $API_TOKEN for $PLACE"; echo "bad $API_TOKEN" >&2; exit 1')}
    entry["env"] = {"API_TOKEN": "tok-s3cret", "PLACE": "/home/place"}
    log = tmp_path / "log"

    done = run("list", "--debug-file", str(log), *config(one=entry))

    assert "bad ***" in done.stdout
    assert "bad *** for /home/place" in done.stdout
    assert "s3cret" not in done.stdout + done.stderr + log.read_text()


def test_exit_code_handshake_timed_out():
    """A server that never answers its handshake ends a call with 5."""
    done = run("call", "mute.x", *config(mute=shell("exec sleep 60")), env=environment(MCP_TIMEOUT="200"))

    assert done.returncode == 5, done.stderr
    assert "mute: failed (timeout)" in done.stderr


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_list_json():
    """S130, S337: `list --json` waits for every try, has the documented keys, all servers in order, leaves no child."""
    done = run("list", "--json", *config(clock=GOOD, bad=BAD, dice=DICE, dead=DEAD, odd=ODD))

    rows = json.loads(done.stdout)["servers"]
    assert [row["name"] for row in rows] == ["clock", "bad", "dice", "dead", "odd"]
    assert all(list(row) == KEYS for row in rows)
    by_name = {row["name"]: row for row in rows}
    clock, dice = by_name["clock"], by_name["dice"]
    assert (clock["state"], clock["era"], clock["revision"], clock["tools"]) == ("connected", "legacy", "2025-11-25", 2)
    assert (dice["state"], dice["era"], dice["revision"], dice["tools"]) == ("connected", "modern", "2026-07-28", 1)
    assert clock["elapsed_ms"] > 0
    assert by_name["bad"]["state"] == by_name["dead"]["state"] == by_name["odd"]["state"] == "failed"
    assert "/nonexistent/program" in by_name["bad"]["error"]
    assert "the last words" in by_name["dead"]["error"]
    assert by_name["odd"]["reason"] == "invalid-config"
    assert not any(is_alive(row["pid"]) for row in rows if row["pid"])


def test_list_disabled_is_fine():
    """A server that is switched off is listed and costs nothing."""
    done = run("list", "--json", *config(clock=GOOD, off={**BAD, "disabled": True}))

    assert done.returncode == 0, done.stderr
    assert [row["state"] for row in json.loads(done.stdout)["servers"]] == ["connected", "disabled"]


def test_nobody_to_sign_in_to():
    """A configuration of programs alone gives no row, and says so instead of nothing."""
    done = run("auth", "status", *config(clock=GOOD))

    assert (done.returncode, done.stdout) == (0, "")
    assert "no server that is reached over a network" in done.stderr


def test_tools_json():
    """`tools --json` is pure JSON, servers in order, schemas as sent."""
    done = run("tools", "--json", *config(dice=DICE, clock=GOOD))

    tools = json.loads(done.stdout)["tools"]
    assert [tool["name"] for tool in tools] == ["mcp__dice__roll", "mcp__clock__now", "mcp__clock__uptime"]
    assert (tools[0]["server"], tools[0]["tool"]) == ("dice", "roll")
    assert tools[0]["inputSchema"]["properties"]["sides"] == {"type": "integer"}
    assert done.stderr == ""


def test_get_json_hides_secrets(tmp_path):
    """`get --json` shows the entry as written, references unexpanded, secrets starred (S030)."""
    entry = {**GOOD, "env": {"API_KEY": "canary-4711", "OTHER_TOKEN": "${OTHER}"}}

    done = run("get", "clock", "--json", *config(clock=entry), env=environment(OTHER="canary-4712"))

    shown = json.loads(done.stdout)
    assert shown["entry"]["env"] == {"API_KEY": "***", "OTHER_TOKEN": "${OTHER}"}
    assert shown["status"]["state"] == "connected"
    assert shown["tools"] == ["now", "uptime"]
    assert "canary" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["s.echo", "text=hi"], "hi\n"),
        (["s.echo", "text=3"], "3\n"),
        (["s.add", "a=1", "b=2.5"], "3.5\n"),
        (["s.add", "--args", '{"a": 1, "b": 1}', "b:=41"], "42\n"),
        (["--timeout", "10", "s.echo", "--output", "text", "text=a=b"], "a=b\n"),
        (["s.echo", 'text:="@x"'], "@x\n"),
        (["s.echo", "text=@note.txt"], "from a file\n"),
        (["s.echo", "text=@-"], "from a pipe\n"),
        (["dotted.name.echo", "text=hi"], "hi\n"),
        (["mcp__dotted_name__echo", "text=hi"], "hi\n"),
    ],
)
def test_call_text(words, out, tmp_path):
    """A call prints what the tool says and nothing else, wherever its options and names stand."""
    (tmp_path / "note.txt").write_text("from a file", encoding="utf-8")

    done = run(
        *["call", *words],
        *config(s=SYNTHETIC, **{"dotted.name": SYNTHETIC, "dotted": BAD}),
        cwd=tmp_path,
        stdin="from a pipe",
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, out, "")


def test_call_json_is_what_the_server_sent():
    """`--output json` prints the result object, whole and alone."""
    done = run("call", "s.echo", "text=hé\n", "--output", "json", *config(s=SYNTHETIC))

    assert json.loads(done.stdout)["content"] == [{"type": "text", "text": "hé\n"}]
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_call_starts_no_other_server(tmp_path):
    """Only the server that is needed is started."""
    done = run("call", "clock.now", *config(clock=GOOD, other=shell(f"touch {tmp_path}/started")))

    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_storm_json():
    """`storm --json` connects what it was told, counts its processes, and leaves none."""
    done = spawn("storm", "--transport", "stdio", "--servers", "4", "--repeat", "2", "--local-limit", "2", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (report["transport"], report["servers"], report["repeat"], report["local_limit"]) == ("stdio", 4, 2, 2)
    assert (report["succeeded"], report["failed"], report["tools"]) == (8, 0, 80)
    assert (report["processes_spawned"], report["processes_left"]) == (8, 0)
    assert len(report["wall_s"]) == len(report["cpu_s"]) == 2
    assert all(report[f"{name}_ms"]["p99"] >= report[f"{name}_ms"]["p50"] for name in ("queue", "connect", "list"))


def test_storm_http():
    """Over HTTP all servers live in one process, which ends with the storm."""
    done = spawn("storm", "--transport", "http", "--servers", "5", "--json")

    report = json.loads(done.stdout)
    assert (done.returncode, report["succeeded"], report["processes_left"]) == (0, 5, 0)


def test_demo_tells_its_story():
    """The demo connects five servers, calls each, sees a killed one come back, and leaves nothing."""
    done = spawn("demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(
        "5 servers, 5 connected, 5 calls, 1 killed, 1 restarted, 0 processes left; connect "
    )
    assert done.stderr == ""


# ── approval ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", ["list", "tools", "get touch", "call touch.x", "tools touch"])
@pytest.mark.parametrize("consent", [None, "flag", "variable"])
def test_a_folder_runs_nothing_unasked(verb, consent, tmp_path):
    """The command of a project file runs only after the person agreed, by flag or variable (fault 109)."""
    entry = shell(f"touch {tmp_path}/ran")
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"touch": entry}}), encoding="utf-8")
    more = {"MCP_ACTORS_APPROVE_PROJECT": "1"} if consent == "variable" else {}

    done = run(
        *[*verb.split(), *(["--approve-project"] if consent == "flag" else [])],
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path), **more),
    )

    assert (tmp_path / "ran").exists() == (consent is not None)
    if consent is None:
        assert "--approve-project" in done.stdout + done.stderr


def test_pending_approval_is_shown(tmp_path):
    """A server that waits for approval is listed as disabled, with the reason."""
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"clock": GOOD}}), encoding="utf-8")

    done = run("list", "--json", cwd=tmp_path, env=environment(HOME=str(tmp_path)))

    (row,) = json.loads(done.stdout)["servers"]
    assert (row["state"], row["reason"], row["scope"]) == ("disabled", "pending-approval", "project")


@pytest.mark.parametrize("words", [["list"], ["list", "clock"], ["get", "clock"], ["call", "clock.now"]])
def test_pending_approval_is_told_once(tmp_path, words):
    """Where the server's state is shown, how to allow it stands there and nowhere else."""
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"clock": GOOD}}), encoding="utf-8")

    done = run(*words, cwd=tmp_path, env=environment(HOME=str(tmp_path)))

    assert (done.stdout + done.stderr).count("mcp-actors approve clock") == 1


def test_a_broken_project_file_is_told(tmp_path):
    """A file that was found and cannot be read is a configuration error, and the servers of others still run."""
    (tmp_path / ".mcp.json").write_text("{", encoding="utf-8")
    home = json.dumps({"mcpServers": {"clock": GOOD}})
    (tmp_path / ".claude.json").write_text(home, encoding="utf-8")

    done = run("list", "--json", cwd=tmp_path, env=environment(HOME=str(tmp_path)))

    assert done.returncode == 3
    assert ".mcp.json" in done.stderr
    assert [row["state"] for row in json.loads(done.stdout)["servers"]] == ["connected"]


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("words", "more"), [(["--debug"], {}), ([], {"MCP_DEBUG": "1"})])
def test_debug_log(words, more):
    """The log goes to standard error, each line with its server in front; data stays pure (S349-S351)."""
    done = spawn("tools", "--json", *words, *config(clock=GOOD), env=environment(**more))

    assert json.loads(done.stdout)["tools"]
    lines = done.stderr.splitlines()
    assert any(line.startswith("[MCP:clock] ") for line in lines)
    assert all(line.startswith("[MCP:") for line in lines)


def test_quiet_without_debug():
    """Without it, and in a pipe, a command that succeeds says nothing on standard error."""
    assert spawn("tools", *config(clock=GOOD)).stderr == ""


def test_python_m_cli_is_the_same_command():
    """`python -m mcp_actors.cli` is the command too."""
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "mcp_actors.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    assert done.stdout.startswith("mcp-actors ")


def test_a_directory_that_is_gone_costs_only_what_starts_there(tmp_path):
    """A verb works where the directory it was started in is deleted; only programs that would start there fail."""
    gone = tmp_path / "gone"
    gone.mkdir()
    clock = server()
    words = shlex.join(argv("list", "--json", *config(here=clock, there={**clock, "cwd": str(tmp_path)})))

    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir {gone}; {words}"], cwd=gone, env=environment(), capture_output=True, check=False
    )

    states = {each["name"]: (each["state"], each["error"]) for each in json.loads(done.stdout)["servers"]}
    assert states["there"] == ("connected", None)
    assert states["here"][0] == "failed"
    assert "does not exist any more" in states["here"][1]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="Unix has such a device")
@pytest.mark.parametrize("words", [("text=@/dev/zero",), ("--args", "@/dev/zero")], ids=["word", "args"])
def test_a_file_without_an_end_is_no_argument(words):
    """What is larger than any request may be is a usage error, and is not read to its end."""
    done = run("call", *config(s=server()), "s.echo", *words)

    assert done.returncode == 2
    assert "larger than a request may be" in done.stderr


@pytest.mark.parametrize("count", ["0", "100001", "99999999999999999999999"])
def test_a_storm_has_a_size(count):
    """No machine has room for more servers: a usage error, before anything starts."""
    done = run("storm", "--servers", count)

    assert done.returncode == 2
    assert "number from 1 to 100000" in done.stderr
