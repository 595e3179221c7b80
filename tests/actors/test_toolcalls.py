"""One tool call over one connection: what goes to the server, and what is refused before anything goes."""

from __future__ import annotations

import pytest
from scripted_fleet import echo_server, spec

from mcp_actors.errors import LocalProtocolError
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

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
