"""Running hooks: real programs, real POSTs, tools of the fleet."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trio

from mcp_actors.elicitation.hook_outcomes import MAX_OUTPUT_BYTES, Exited, Failed, Responded
from mcp_actors.elicitation.hooks import CommandHook, HttpHook, ToolHook
from mcp_actors.questions.hook_runners import HookRunner, run_hooks
from mcp_actors.tools.results import ToolResult

pytestmark = pytest.mark.deadline(20)
TOLD = {"mcp_server_name": "github", "message": "who?", "content": {"title": "t"}}


@pytest.fixture
def runner(tmp_path):
    return HookRunner({"PATH": os.environ["PATH"], "TOKEN": "t0k", "HIDDEN": "h"}, str(tmp_path))


async def end_of(runner, hook):
    [end] = await run_hooks([hook], TOLD, runner)
    return end


async def test_a_command_is_told_and_heard(runner):
    """A shell command reads JSON on standard input; what it writes and its status come back (S308, S311)."""
    end = await end_of(runner, CommandHook('cat; echo why >&2; exit 2; echo "$CLAUDE_PROJECT_DIR"'))

    assert (end.status, json.loads(end.stdout), end.stderr) == (2, TOLD, b"why\n")


async def test_a_command_knows_its_project(runner, tmp_path):
    """It starts in the project's directory and finds it in CLAUDE_PROJECT_DIR (S311)."""
    end = await end_of(runner, CommandHook('echo "$CLAUDE_PROJECT_DIR"; pwd -P'))

    assert end.stdout.decode().split() == [str(tmp_path), str(tmp_path.resolve())]


async def test_arguments_go_without_a_shell(runner):
    """The exec form passes its arguments as they are (S311)."""
    end = await end_of(runner, CommandHook("printf", ("%s|", "$HOME; echo x", "a b")))

    assert end == Exited(0, b"$HOME; echo x|a b|")


async def test_a_command_that_does_not_read_is_fine(runner):
    """A hook may end without reading what it is told, however long that is."""
    [end] = await run_hooks([CommandHook("exit 0")], {"message": "x" * 500_000}, runner)

    assert end == Exited(0)


async def test_a_command_that_cannot_be_started_fails(runner):
    """The failure is a value."""
    assert isinstance(await end_of(runner, CommandHook("/no/such/program", ())), Failed)


async def test_a_command_that_writes_too_much_fails(runner):
    """It is read to its end, kept only up to the bound."""
    end = await end_of(runner, CommandHook(f"head -c {MAX_OUTPUT_BYTES + 200_000} /dev/zero"))

    assert end == Failed("a hook wrote too much")


async def test_a_command_that_is_not_wanted_dies_with_all_it_started(runner, tmp_path):
    """Cancelling, which a timeout is too, ends the whole process group of the hook (S309, rule 2)."""
    pids = tmp_path / "pids"
    slow = CommandHook(f"sleep 60 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_of, runner, slow)
        while not pids.exists():
            await trio.lowlevel.checkpoint()
        assert all(is_alive(int(pid)) for pid in pids.read_text().split())
        nursery.cancel_scope.cancel()

    for pid in pids.read_text().split():
        while is_alive(int(pid)):
            await trio.lowlevel.checkpoint()


async def test_a_hook_in_time_beside_one_that_is_not(runner, autojump_clock):
    """Each hook has its own time; the ends come in the order given (S309, S310)."""

    async def run(handler, told):
        await trio.sleep({"slow": 60, "quick": 1}[handler.command])
        return Exited(0, handler.command.encode())

    ends = await run_hooks([CommandHook("slow", timeout=5), CommandHook("quick")], TOLD, run)

    assert ends == [Failed("a hook took longer than 5 s"), Exited(0, b"quick")]


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def test_what_a_command_leaves_behind_does_not_hold_us(runner):
    """A background child that keeps the pipes open is ended when the hook has ended."""
    assert await end_of(runner, CommandHook("sleep 60 & echo ok")) == Exited(0, b"ok\n")


async def serve_once(answer, seen, task_status):
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        task_status.started(listener.socket.getsockname()[1])
        stream = await listener.accept()
        async with stream:
            data = b""
            while not data.endswith(b"}"):
                data += await stream.receive_some()
            seen.append(data)
            await stream.send_all(answer)


@pytest.mark.parametrize(
    ("head", "body", "end"),
    [
        (b"200 OK", b'{"a": 1}', Responded(200, b'{"a": 1}')),
        (b"500 Oops", b"no", Responded(500, b"no")),
    ],
)
async def test_a_post_is_told_and_heard(runner, head, body, end):
    """An HTTP hook gets JSON and its headers, with only the variables it may name (S312)."""
    seen: list[bytes] = []
    answer = b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (head, len(body), body)
    async with trio.open_nursery() as nursery:
        port = await nursery.start(lambda task_status: serve_once(answer, seen, task_status))
        hook = HttpHook(f"http://127.0.0.1:{port}/hook", (("X-Token", "$TOKEN"), ("X-Hidden", "-$HIDDEN")), ("TOKEN",))

        assert await end_of(runner, hook) == end

    sent, _, told = seen[0].partition(b"\r\n\r\n")
    assert sent.startswith(b"POST /hook HTTP/1.1\r\n")
    lines = {line.lower() for line in sent.split(b"\r\n")}
    assert {b"x-token: t0k", b"x-hidden: -", b"content-type: application/json"} <= lines
    assert json.loads(told) == TOLD


async def test_a_post_that_nobody_takes_fails(runner):
    """A refused connection is a value, and names no secret of the URL."""
    end = await end_of(runner, HttpHook("http://127.0.0.1:1/hook?key=canary"))

    assert isinstance(end, Failed)
    assert "canary" not in end.reason


@pytest.mark.parametrize("is_error", [False, True])
async def test_a_tool_is_called_with_what_it_is_told(runner, is_error):
    """A tool's text is read like a program's output; its failure is a warning (S313)."""
    calls = []

    async def call_tool(server, tool, arguments):
        calls.append((server, tool, arguments))
        return ToolResult(json.dumps({"content": [{"type": "text", "text": "{}"}], "isError": is_error}).encode())

    hooked = HookRunner(runner.environ, runner.project, call_tool)

    end = await end_of(hooked, ToolHook("audit", "log", {"who": "${mcp_server_name}", "what": "${content}"}))

    assert calls == [("audit", "log", {"who": "github", "what": {"title": "t"}})]
    assert end == (Failed("a hook's tool reports failure: audit.log") if is_error else Exited(0, b"{}"))


async def test_a_tool_that_nobody_calls_fails(runner):
    """Without a fleet there are no tools."""
    assert isinstance(await end_of(runner, ToolHook("audit", "log")), Failed)
