"""How data looks, as tables of values in and text out."""

from __future__ import annotations

import json

import pytest

from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
from mcp_actors.cli import render
from mcp_actors.tools.catalog import tools_from_items
from mcp_actors.tools.results import ToolResult

KEYS = [
    "name", "state", "reason", "phase", "transport", "scope", "era", "revision",
    "tools", "resources", "prompts", "pid", "error", "elapsed_ms", "warnings", "remedy",
]  # fmt: skip


FAILED = ServerState.FAILED


def status(name="time", state=ServerState.CONNECTED, phase=Phase.READY, reason="ready", **more):
    return ServerStatus(name, state, phase, reason, transport="stdio", scope="dynamic", **more)


def test_row_of_a_connected_server():
    """A row has the documented keys in order, and plain JSON values."""
    row = render.server_row(
        status(
            era="legacy",
            revision="2025-11-25",
            tools=2,
            pid=7,
            queue_seconds=9.0,
            connect_seconds=0.25,
            list_seconds=0.05,
        )
    )

    assert list(row) == KEYS
    assert json.loads(json.dumps(row)) == {
        "name": "time",
        "state": "connected",
        "reason": "ready",
        "phase": "ready",
        "transport": "stdio",
        "scope": "dynamic",
        "era": "legacy",
        "revision": "2025-11-25",
        "tools": 2,
        "resources": None,
        "prompts": None,
        "pid": 7,
        "error": None,
        "elapsed_ms": 300.0,
        "warnings": [],
        "remedy": None,
    }


def test_warnings_of_a_server_are_told_and_bounded():
    """S155: what was wrong with a server's lists is a line each, cleaned; of many the rest is counted."""
    few, many = status(warnings=("a\x1b", "b")), status(warnings=tuple(map(str, range(1000))))

    assert render.warning_lines(status()) == []
    assert render.warning_lines(few) == ["time: a\N{REPLACEMENT CHARACTER}", "time: b"]
    assert render.warning_lines(many) == [*(f"time: {number}" for number in range(5)), "time: 995 more warnings"]


def test_row_of_what_never_connected():
    """What is unknown is null, never absent and never zero."""
    row = render.server_row(status(state=ServerState.FAILED, phase=Phase.STOPPED, reason="exit", error="exit status 3"))

    assert list(row) == KEYS
    assert (row["elapsed_ms"], row["tools"], row["error"]) == (None, None, "exit status 3")


def test_row_of_an_invalid_entry():
    """An entry that cannot be used has a row of the same shape."""
    row = render.invalid_row("bad", "no command")

    assert list(row) == KEYS
    assert (row["name"], row["state"], row["reason"], row["error"]) == ("bad", "failed", "invalid-config", "no command")


def test_table():
    """The table aligns, names the error beneath a server that is not connected, and says what to do."""
    rows = [
        render.server_row(status(revision="2025-11-25", tools=12, connect_seconds=0.1)),
        render.server_row(status("b", ServerState.FAILED, Phase.STOPPED, "exit", error="exit status 3\n  | oh no")),
        render.server_row(status("c", ServerState.DISABLED, Phase.STOPPED, "user", remedy="enable it")),
    ]

    assert render.server_table(rows, has_colour=False).splitlines() == [
        "NAME  STATE      REASON  TRANSPORT  SCOPE    REVISION    TOOLS  RESOURCES  PROMPTS  TIME",
        "time  connected  ready   stdio      dynamic  2025-11-25  12     -          -        100 ms",
        "b     failed     exit    stdio      dynamic  -           -      -          -        -",
        "    exit status 3",
        "    | oh no",
        "c     disabled   user    stdio      dynamic  -           -      -          -        -",
        "    -> enable it",
    ]


def test_table_colours_states_only():
    """Colour goes around the state and keeps the alignment."""
    rows = [render.server_row(status("connected"))]

    line = render.server_table(rows, has_colour=True).splitlines()[1]

    assert line.startswith("connected  \x1b[32mconnected\x1b[0m  ready")


def hostile_tools():
    return tools_from_items(HOSTILE, [json.dumps({"name": HOSTILE, "description": HOSTILE}).encode()]).tools


HOSTILE = "a\x1b[2Jb\rc\x07\x9b31m\u202ed"


@pytest.mark.parametrize(
    "drawn",
    [
        render.clean(HOSTILE),
        render.clean_line(HOSTILE),
        render.server_table(
            [render.server_row(status(HOSTILE, ServerState.FAILED, error=HOSTILE, remedy=HOSTILE))], has_colour=False
        ),
        render.tool_table(
            tools_from_items(HOSTILE, [json.dumps({"name": HOSTILE, "description": HOSTILE}).encode()]).tools
        ),
    ],
)
def test_tables_obey_no_server(drawn):
    """No control character of a server reaches a terminal (invariant 9)."""
    assert not set(drawn) & set("\x1b\r\x07\x9b\u202e")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "no servers: write one down with mcp-actors add, or take another program's with mcp-actors import"),
        (["connected"], "1 server: 1 connected"),
        (["connected", "failed", "connected"], "3 servers: 2 connected, 1 failed"),
    ],
)
def test_summary(states, expected):
    """The summary counts servers by state."""
    assert render.summary_line([{"state": state} for state in states]) == expected


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0004, "0 ms"), (0.25, "250 ms"), (1.0, "1.0 s"), (90.04, "90.0 s")]
)
def test_seconds(seconds, text):
    """Times are brief."""
    assert render.seconds_text(seconds) == text


def test_tool_row_keeps_the_server_s_words():
    """Names, schema and annotations are the server's own, unknown keys, order and long integers included."""
    schema = {"type": "object", "x-vendor": {"z": 1, "a": 123456789012345678901234567890}, "properties": {}}
    item = {
        "name": "tool.é",
        "description": "d\n\x1b",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "x": 1},
    }
    (tool,) = tools_from_items("my server", [json.dumps(item).encode()]).tools

    row = json.loads(render.json_text(render.tool_row(tool)))

    assert list(row) == ["name", "server", "tool", "description", "inputSchema", "annotations"]
    assert row["name"] == "mcp__my_server__tool__"
    assert (row["server"], row["tool"], row["description"]) == ("my server", "tool.é", "d\n\x1b")
    assert list(row["inputSchema"]) == list(schema)
    assert row["inputSchema"] == schema
    assert row["annotations"] == item["annotations"]


def test_tool_table():
    """A tool's line begins with what to write after `call`; descriptions are one line."""
    items = [{"name": "now", "description": "The time.\nMore."}, {"name": "long_name"}]
    tools = tools_from_items("t", [json.dumps(item).encode() for item in items]).tools

    assert render.tool_table(tools).splitlines() == ["t.now        The time. More.", "t.long_name"]
    assert render.tool_table([]) == "no tools"


def test_tool_table_with_words():
    """Below a tool that takes arguments stands what to write after its name."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "\x1b": {"type": "array"}}, "required": ["a"]}
    items = [{"name": "now"}, {"name": "add", "inputSchema": schema}]
    tools = tools_from_items("t", [json.dumps(item).encode() for item in items]).tools

    told = render.tool_table(tools, has_words=True).splitlines()

    assert told == ["t.now", "t.add", "    a=integer [\N{REPLACEMENT CHARACTER}:=array]"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "hi"}]}, "hi"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}]}, "a\nb\n"),
        ({"content": []}, ""),
        ({}, ""),
        ({"structuredContent": {"a": 1}}, '{\n  "a": 1\n}'),
        ({"structuredContent": None}, "null"),
        ({"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}}, "t"),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}, "[image image/png, 3 bytes]"),
        ({"content": [{"type": "resource_link", "uri": "file:///x"}]}, "[resource_link file:///x]"),
        ({"content": [{"type": "resource", "resource": {"uri": "u", "text": "body"}}]}, "body"),
        ({"content": [{"type": "resource", "resource": {"uri": "u", "blob": "AAAA"}}]}, "[resource u]"),
        ({"content": [{"type": "new-kind"}]}, "[new-kind]"),
        ({"content": [{}]}, "[None]"),
    ],
)
def test_result_text(result, text):
    """Texts are shown as they are, other blocks are named, structured content stands in where there is nothing else."""
    assert render.result_text(ToolResult(json.dumps(result).encode())) == text


def test_server_text():
    """What `get` shows is one fact a line, cleaned."""
    shown = {
        "name": "s",
        "scope": "project",
        "source": "/x/.mcp.json",
        "entry": {"command": "run\x1b"},
        "status": render.server_row(
            status("s", ServerState.FAILED, Phase.STOPPED, "exit", error="exit status 1\n  | bye", warnings=("odd",))
        ),
        "remedy": "mend it",
        "tools": [],
        "instructions": "be kind\nand \x1bbrief",
    }

    assert render.server_text(shown).splitlines() == [
        "s: failed (exit)",
        "  from /x/.mcp.json (project)",
        '  entry {"command": "run\\u001b"}',
        "  transport stdio",
        "  exit status 1",
        "    | bye",
        "  -> mend it",
        "  warning: odd",
        "  instructions for models:",
        "    be kind",
        "    and \N{REPLACEMENT CHARACTER}brief",
    ]
