"""One tool call over one connection: what goes to the server, and what is refused before anything goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.errors import LocalProtocolError
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from mcp_actors.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from mcp_actors.testing.live_client import Call

ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}
STRICT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("wants_progress", [False, True])
async def test_a_call_says_what_the_caller_said(era: str, wants_progress: bool, autojump_clock: object) -> None:
    """S162, S183, S197: raw name and the arguments as they are, whatever the schema says; a token where wanted."""
    server = ScriptedServer(revisions=ERAS[era])
    server.add_tool("Odd name!", lambda call: "ok", input_schema=STRICT)
    arguments = {"n": "no number", "more": [1, {"x": None}]}

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        await runtime.call_tool(
            "mcp__one__Odd_name_", arguments, progress=(lambda progress: None) if wants_progress else None
        )
        [seen] = server.seen("tools/call")

    assert (seen["params"]["name"], seen["params"]["arguments"]) == ("Odd name!", arguments)
    assert ("progressToken" in seen["params"].get("_meta", {})) is wants_progress


TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=b",
    "baggage": "c=d",
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("wants_progress", [False, True])
async def test_a_call_takes_meta_of_its_caller_along(era: str, wants_progress: bool, autojump_clock: object) -> None:
    """F16, S095: beside what is ours, which it does not replace; the caller's own mapping stays as it was."""
    server = ScriptedServer(revisions=ERAS[era])
    server.add_tool("t", lambda call: "ok")
    meta = {**TRACE, "example.com/job": 7}

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        await runtime.call_tool("one.t", meta=meta, progress=(lambda progress: None) if wants_progress else None)
        [seen] = server.seen("tools/call")
        await runtime.call_tool("one.t")
        plain = server.seen("tools/call")[1]["params"].get("_meta", {})

    sent = seen["params"]["_meta"]
    assert meta.items() <= sent.items()
    assert ("progressToken" in sent) is wants_progress
    assert meta == {**TRACE, "example.com/job": 7}
    assert not meta.keys() & plain.keys()
    assert server.violations == []


async def test_each_round_of_a_call_is_in_its_trace(autojump_clock: object) -> None:
    """F16, B07: what is asked again because the server wants another round carries the same."""
    server = ScriptedServer(revisions=MODERN_REVISIONS)
    again = {"resultType": "input_required", "requestState": "s"}
    server.add_tool("t", lambda call: "ok" if "requestState" in call.params else again)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        await runtime.call_tool("one.t", meta=TRACE)
        traces = [seen["params"]["_meta"]["traceparent"] for seen in server.seen("tools/call")]

    assert traces == [TRACE["traceparent"]] * 2


@pytest.mark.deadline(20_000)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("timeout", "is_asked"), [(None, True), (9000.0, True), (1800.0, False)], ids=["default", "long", "short"]
)
async def test_progress_that_nobody_hears_keeps_a_long_call_alive(
    era: str, timeout: float | None, is_asked: bool, autojump_clock: object
) -> None:
    """S201: where the idle clock may run out, the server is asked for progress, callback or none."""
    server = ScriptedServer(revisions=ERAS[era])

    @server.tool
    async def build(call: Call) -> str:
        for step in range(6 if is_asked else 1):
            await trio.sleep(1200)
            await call.progress(step + 1)
        return "built"

    built = ServerSpec("one", StdioTarget("build-server"))
    async with open_runtime([built], transports=lambda _: MemoryTransport(server.serve)) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.build", timeout=timeout)
        [seen] = server.seen("tools/call")

    assert result.text == "built"
    assert ("progressToken" in seen["params"].get("_meta", {})) is is_asked


async def test_too_large_a_call_is_refused_and_costs_nothing_else(autojump_clock: object) -> None:
    """S210: more than 32 MiB of arguments are the caller's mistake: nothing is sent, and the connection is usable."""
    server = echo_server()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        for _ in range(4):
            with pytest.raises(LocalProtocolError, match="33554432 are the most"):
                await runtime.call_tool("one.echo", {"text": "x" * (32 * 1024 * 1024)})
        result = await runtime.call_tool("one.echo", {"text": "small"})
        status = runtime.status()["one"]

    assert result.text == "small"
    assert len(server.seen("tools/call")) == 1
    assert (status.is_connected, status.restarts) == (True, 0)
