"""A scripted shop, as a model meets it."""

from __future__ import annotations

import json

from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.plans import ModelText

DIRTY = {"type": "object", "properties": {"na\u200bme": {"type": "string"}}}


def shop(**more: object) -> ScriptedServer:
    """`price` reads, `buy` writes, `dirty` has a hidden sign in a parameter, `big` says much, `odd` breaks its word."""
    server = ScriptedServer("shop", instructions="be\u202e kind")
    server.add_tool("price", lambda call: "9", description="what it costs", annotations={"readOnlyHint": True})
    server.add_tool("buy", lambda call: "bought", description="pay\u200b for it")
    server.add_tool("dirty", lambda call: json.dumps(call.arguments), input_schema=DIRTY)
    server.add_tool("big", lambda call: "x" * 5000)
    promise = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    broken = {"content": [{"type": "text", "text": "t"}], "structuredContent": {"n": "no"}}
    server.add_tool("odd", lambda call: broken, outputSchema=promise)
    server.add_tool("ask", lambda call: "ok", _meta={"anthropic/requiresUserInteraction": True})
    return server


def text_of(result) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, ModelText))
