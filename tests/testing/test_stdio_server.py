"""The synthetic stdio server: a real process, driven through its pipes, and its pure answers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
import trio

from mcp_actors.testing import stdio_server
from mcp_actors.testing.stdio_server import Held, StdioServer, synthetic_tools
from mcp_actors.testing.synthetic import synthetic_command

META = "io.modelcontextprotocol/"
MODERN = {"_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}


def request(method, params=None, request_id=1):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def line(message) -> bytes:
    return json.dumps(message).encode()


def answer(server, message):
    [answered] = server.answer(line(message))
    return answered.get("result", answered.get("error"))


async def run(messages, **options):
    """Start it, write all messages, close its input; the decoded lines it wrote, by id."""
    command, args = synthetic_command(**options)
    text = b"".join(line(message) + b"\n" for message in messages)
    with trio.fail_after(10):
        done = await trio.run_process([command, *args], stdin=text, capture_stdout=True)
    return [json.loads(written) for written in done.stdout.splitlines()]


async def test_process_answers_both_eras_and_ends_with_its_input():
    """One process answers modern and legacy requests and exits with 0 at end-of-file (fault 4)."""
    answers = await run(
        [
            request("server/discover", MODERN, 1),
            request("initialize", {"protocolVersion": "2025-06-18"}, 2),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request("tools/list", None, 3),
            request("tools/call", {"name": "echo", "arguments": {"text": "hé\n"}}, "four"),
        ],
        tools=3,
    )

    assert [message["id"] for message in answers] == [1, 2, 3, "four"]
    results = [message["result"] for message in answers]
    assert results[0]["supportedVersions"][0] == "2026-07-28"
    assert results[1]["protocolVersion"] == "2025-06-18"
    assert [tool["name"] for tool in results[2]["tools"]] == ["echo", "add", "blob"]
    assert results[3]["content"][0]["text"] == "hé\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_process_ends_in_order_at_a_signal(number):
    """SIGINT and SIGTERM end it with status 0, though its input is open (S138)."""
    command, args = synthetic_command()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(_started, [command, *args])
            await process.stdin.send_all(line(request("ping")) + b"\n")
            assert b'"result"' in await process.stdout.receive_some()

            process.send_signal(number)

            assert await process.wait() == 0
            nursery.cancel_scope.cancel()


async def _started(command, task_status):
    await trio.run_process(
        command, stdin=subprocess.PIPE, capture_stdout=False, stdout=subprocess.PIPE, task_status=task_status
    )


async def test_process_imports_next_to_nothing():
    """Neither `json` nor any package of ours is loaded: this is what makes it fast."""
    _, args = synthetic_command()
    starter = args[args.index("-c") + 1].replace("stdio_server.main()", "print(*sorted(sys.modules))")

    done = await trio.run_process([sys.executable, "-I", "-S", "-c", starter], capture_stdout=True)

    loaded = set(done.stdout.decode().split())
    assert loaded.isdisjoint({"json", "re", "typing", "signal", "argparse", "trio", "mcp_actors", "collections"})


async def test_process_refuses_unknown_options():
    """A typing error ends it with status 2 and says how to call it."""
    command, args = synthetic_command(tols=3)

    done = await trio.run_process([command, *args], check=False, capture_stderr=True)

    assert done.returncode == 2
    assert b"usage" in done.stderr


async def test_process_runs_as_a_module_too():
    """`python -m` serves the same, programs of the demo included."""
    done = await trio.run_process(
        [sys.executable, "-m", "mcp_actors.testing.stdio_server", "--program", "dice"],
        stdin=line(request("tools/list")) + b"\n",
        capture_stdout=True,
    )

    assert [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]] == ["roll"]


async def test_large_argument_and_result_pass():
    """A megabyte goes in and out in one line each (fault 11)."""
    text = "é" * 500_000

    [echoed, blob] = await run(
        [
            request("tools/call", {"name": "echo", "arguments": {"text": text}}),
            request("tools/call", {"name": "blob", "arguments": {"n": 3_000_000}}, 2),
        ]
    )

    assert text == echoed["result"]["content"][0]["text"]
    assert len(blob["result"]["content"][0]["text"]) == 3_000_000


async def test_slow_call_holds_up_nothing_and_reports_progress():
    """A held answer comes after a later quick one, with its progress on the way; a cancelled one never comes."""
    command, args = synthetic_command()
    calls = [
        request("tools/call", {"name": "sleep", "arguments": {"seconds": 100}}, "never"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}},
        request(
            "tools/call",
            {"name": "progress", "arguments": {"steps": 2, "seconds": 0.05}, "_meta": {"progressToken": 5}},
            "slow",
        ),
        request("tools/call", {"name": "pid", "arguments": {}}, "quick"),
    ]
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(_started, [command, *args])
            await process.stdin.send_all(b"".join(line(call) + b"\n" for call in calls))
            received = b""
            while b'"slow"' not in received:
                received += await process.stdout.receive_some()
            await process.stdin.aclose()

    messages = [json.loads(written) for written in received.splitlines()]
    assert [message.get("id") for message in messages] == ["quick", None, None, "slow"]
    assert [message["params"]["progress"] for message in messages[1:3]] == [1, 2]


@pytest.mark.parametrize(
    ("era", "message", "code"),
    [
        ("legacy", request("server/discover", MODERN), -32601),
        ("modern", request("initialize", {"protocolVersion": "2025-11-25"}), -32022),
        ("modern", request("tools/list"), -32602),
        ("modern", request("ping", MODERN), -32601),
        ("both", request("server/discover"), -32602),
        ("both", request("tools/list", {"_meta": {**MODERN["_meta"], META + "protocolVersion": "2030"}}), -32022),
        ("both", request("tools/list", {"cursor": "x"}), -32602),
        ("both", request("tools/list", {"cursor": "99"}), -32602),
        ("both", request("tools/call", {"name": "none"}), -32602),
        ("both", request("resources/list"), -32601),
        ("both", request("initialize", {**MODERN, "protocolVersion": "2025-11-25"}), None),
        ("both", request("ping"), None),
    ],
)
def test_refusals_follow_the_era(era, message, code):
    """Each era refuses what it does not have, with the code of its text."""
    assert code == answer(StdioServer(synthetic_tools(3), era=era), message).get("code")


@pytest.mark.parametrize("raw", [b"x", b"{", b"NaN", b"\xff", b"[" * 100_000, b"{} {}"])
def test_line_that_is_no_json_is_a_parse_error(raw):
    """What cannot be read is answered without an id, and the server goes on."""
    server = StdioServer(synthetic_tools(1))

    [refused] = server.answer(raw)

    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert answer(server, request("ping")) == {}


@pytest.mark.parametrize("raw", [b"[]", b"1", b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"method":1}'])
def test_what_is_no_request_is_not_answered(raw):
    """Answers and rubbish get silence."""
    assert StdioServer(synthetic_tools(1)).answer(raw) == []


@pytest.mark.parametrize("count", [0, 1, 8, 9, 100])
@pytest.mark.parametrize("page", [0, 1, 7])
def test_list_has_as_many_tools_as_ordered(count, page):
    """`--tools` and `--page` say how many there are and how they are listed."""
    server = StdioServer(synthetic_tools(count), page=page)
    names, cursor = [], None

    while True:
        result = answer(server, request("tools/list", {"cursor": cursor} if cursor else None))
        names += [tool["name"] for tool in result["tools"]]
        cursor = result.get("nextCursor")
        if cursor is None:
            break

    assert list(synthetic_tools(count)) == names
    assert len(set(names)) == count


@pytest.mark.parametrize(
    ("name", "arguments", "text", "is_error"),
    [
        ("add", {"a": 1, "b": 2.5}, "3.5", False),
        ("blob", {"n": 3}, "xxx", False),
        ("fail", {"text": "so be it"}, "ValueError: so be it", True),
        ("echo", {}, "KeyError: 'text'", True),
        ("add", {"a": 1, "b": []}, "TypeError: unsupported operand type(s) for +: 'int' and 'list'", True),
        ("echo", [1], "TypeError: list indices must be integers or slices, not str", True),
    ],
)
def test_tools_do_what_they_say(name, arguments, text, is_error):
    """A tool's failure is a failed result, whatever it was given."""
    result = answer(StdioServer(synthetic_tools(10)), request("tools/call", {"name": name, "arguments": arguments}))

    assert (text, is_error) == (result["content"][0]["text"], result.get("isError", False))


def test_delay_holds_every_answer():
    """With a delay nothing is answered at once, and everything is held in the order it is due."""
    server = StdioServer({"later": ("", {}, lambda _: Held(5, "x"))}, delay=1)

    assert server.answer(line(request("tools/call", {"name": "later"}, 1))) == []
    assert server.answer(line(request("ping", None, 2))) == []

    assert [request_id for _, request_id, _ in server.held] == [2, 1]


def test_codec_falls_back_to_json(monkeypatch):
    """Where the accelerator has another shape, `json` does the work, with the same outcome."""
    monkeypatch.setitem(sys.modules, "_json", None)

    decode, encode = stdio_server._make_codec()

    assert decode(encode({"a": [1, "é", None]})) == {"a": [1, "é", None]}
    with pytest.raises(ValueError):
        decode("{")
