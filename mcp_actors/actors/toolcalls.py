"""Owns one tool call over one connection, from arguments to result: mirrored values, rounds of questions, tasks.

What this is not: finding the connection (`runtime`), or what a result means to a model (`tools.results`).

Runs in the caller's own task. The thoughts are the protocol room's; this does what they say.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.errors import RpcError
from mcp_actors.protocol.mirrored import is_marked, mirrored_headers, wants_refresh

if TYPE_CHECKING:
    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.catalog import Tool

__all__ = ["call_tool"]


async def call_tool(
    connection: Connection,
    tool: Tool,
    arguments: JsonObject,
    *,
    timeout: float | None,
    on_progress: ProgressCallback | None,
) -> bytes:
    """Call a tool and wait for its final result.

    Returns:
        The result, an undecoded JSON object.

    Raises:
        As `Connection.request`.

    Cancellation:
        Safe, as `Connection.request`.

    Source:
        S183, S197, B03, B05.
    """
    params: JsonObject = {"name": tool.name, "arguments": arguments}
    ask = partial(connection.request, "tools/call", params, timeout=timeout, on_progress=on_progress)
    try:
        return await ask(headers=_mirrored(connection, tool, arguments))
    except RpcError as error:
        if not (connection.is_mirroring and wants_refresh(error, is_retry=False)):
            raise
    # The server knows another schema than we: learn it, and call once more with its headers.
    fresh = next((found for found in await connection.lists.refresh_tools() if found.name == tool.name), tool)
    return await ask(headers=_mirrored(connection, fresh, arguments))


def _mirrored(connection: Connection, tool: Tool, arguments: JsonObject) -> tuple[tuple[str, str], ...]:
    if not connection.is_mirroring or not is_marked(tool.definition_bytes):
        return ()
    return mirrored_headers(tool.input_schema, arguments)
