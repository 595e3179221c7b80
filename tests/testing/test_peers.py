"""An independent judge: the client of the official SDK works with our servers, in both eras, over stdio and HTTP."""

from __future__ import annotations

import sys

import pytest
import trio

from mcp_actors.testing.http_server import HttpOptions, open_http_server
from mcp_actors.testing.synthetic import synthetic_command, synthetic_server

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    # The SDK's client leaves event-stream generators behind; that is its affair.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]

sdk = pytest.importorskip("mcp.client.client")
sdk_stdio = pytest.importorskip("mcp.client.stdio")

# Eras of the server -> (mode of the SDK's client, revision they agree on).
PAIRS = [
    ("both", "auto", "2026-07-28"),
    ("both", "legacy", "2025-11-25"),
    ("both", "2026-07-28", "2026-07-28"),
    ("legacy", "auto", "2025-11-25"),
    ("legacy", "legacy", "2025-11-25"),
    ("modern", "auto", "2026-07-28"),
    ("modern", "2026-07-28", "2026-07-28"),
]


async def judge(target, mode, revision, *, progress=((1, 2), (2, 2))):
    """Connect, list, call, fail and report, as any user of the SDK would."""
    reported = []

    async def on_progress(progress, total, message):
        reported.append((progress, total))

    with trio.fail_after(20):
        async with sdk.Client(target, mode=mode) as client:
            assert client.protocol_version == revision
            assert len((await client.list_tools()).tools) == 10
            echoed = await client.call_tool("echo", {"text": "hé"})
            assert echoed.content[0].text == "hé"
            assert (await client.call_tool("fail", {"text": "x"})).is_error
            await client.call_tool("progress", {"steps": 2, "seconds": 0.01}, progress_callback=on_progress)
            with pytest.raises(Exception, match="unknown tool"):
                await client.call_tool("none", {})
    assert progress is None or progress == tuple(reported)


@pytest.mark.parametrize(("era", "mode", "revision"), PAIRS)
async def test_sdk_client_works_with_the_stdio_server(era, mode, revision):
    """The synthetic process satisfies the SDK's client."""
    command, args = synthetic_command(era=era)

    await judge(sdk_stdio.StdioServerParameters(command=command, args=list(args)), mode, revision)


@pytest.mark.parametrize("answers", ["auto", "json", "sse"])
@pytest.mark.parametrize(("era", "mode", "revision"), PAIRS)
async def test_sdk_client_works_with_the_http_server(era, mode, revision, answers):
    """A scripted server over HTTP satisfies the SDK's client, which breaks no rule in its eyes."""
    server = synthetic_server(era=era)
    async with open_http_server(server, options=HttpOptions(answers=answers)) as url:
        # In JSON only, modern progress has no way to go and legacy progress races its answer on the GET stream.
        progress = {"progress": None} if answers == "json" else {}
        await judge(url, mode, revision, **progress)

    assert server.violations == []


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_sdk_client_works_with_a_scripted_process(tmp_path, mode, revision):
    """A scripted server as a process satisfies the SDK's client."""
    program = tmp_path / "program.py"
    program.write_text("from mcp_actors.testing import synthetic_server\nserver = synthetic_server()\n")
    args = ["-m", "mcp_actors.testing.wire_server", str(program)]

    await judge(sdk_stdio.StdioServerParameters(command=sys.executable, args=args), mode, revision)
