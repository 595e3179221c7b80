"""Owns the permission prompt that is a tool: a server's tool is asked where else a person would be (S239).

What this is not: a person. What a person has to be asked about each time, no tool can allow (S237).

Rule 1: an answer that does not come, or is not understood, refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import McpActorsError, RemoteProtocolError
from mcp_actors.model.permission import Allow, Deny
from mcp_actors.protocol.jsonrpc import decode_object
from mcp_actors.tools.sanitise import cap_text, clean_text, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.jsontypes import Json
    from mcp_actors.model.face import Fleet
    from mcp_actors.model.permission import AskPermission
    from mcp_actors.tools.permissions import Decision, PermissionRequest
    from mcp_actors.tools.results import ToolResult

__all__ = ["permission_tool", "read_answer"]

logger = logging.getLogger("mcp_actors.model")

# Of what it says to the model.
MAX_MESSAGE_CHARS: Final = 2_048
# Rules that one answer may add.
MAX_RULES: Final = 100


def permission_tool(runtime: Fleet, name: str, *, timeout: float | None = None) -> AskPermission:
    """Make what `ModelFace` takes as ``ask`` out of a tool.

    The tool is called with ``{"tool_name", "input"}`` and answers, as text or structured content,
    ``{"behavior": "allow", "updatedInput", "updatedPermissions"}`` or ``{"behavior": "deny", "message", "interrupt"}``.
    A server that is being connected is waited for.

    Args:
        runtime: what runs.
        name: callable name of the tool, or "server.tool".
        timeout: seconds for each answer; None: as for any call.

    Source:
        S237, S239, S241.
    """

    async def ask(request: PermissionRequest, decision: Decision) -> Allow | Deny:
        tool = runtime.snapshot.catalog.resolve(name)
        if request.name == (name if tool is None else tool.callable_name):
            return Deny("it gives the permissions and is not for the model")
        if not decision.can_remember:
            return Deny(f"{decision.reason}, and {name} is no person")
        try:
            result = await runtime.call_tool(
                name, {"tool_name": request.name, "input": request.arguments}, timeout=timeout
            )
            return read_answer(result)
        except (McpActorsError, trio.TooSlowError) as error:
            reason = error.describe() if isinstance(error, McpActorsError) else str(error)
            logger.warning("%s gave no permission: %s", name, reason)
            return Deny(f"{name} could not be asked")

    return ask


def read_answer(result: ToolResult) -> Allow | Deny:
    """Read what the tool said.

    Raises:
        RemoteProtocolError: it is no answer.
    """
    if result.is_error:
        raise RemoteProtocolError(server=result.server, reason=f"it failed: {cap_text(clean_text(result.text), 200)}")
    said = result.structured_content
    if not (isinstance(said, Mapping) and "behavior" in said):
        said = decode_object(result.text.encode())
    if said.get("behavior") == "deny":
        message = said.get("message")
        text = cap_text(clean_text(message), MAX_MESSAGE_CHARS) if isinstance(message, str) else ""
        return Deny(text or Deny().message, is_interrupt=said.get("interrupt") is True)
    if said.get("behavior") != "allow":
        raise RemoteProtocolError(server=result.server, reason="its answer says neither allow nor deny")
    changed = said.get("updatedInput")
    if changed is not None and not isinstance(changed, Mapping):
        raise RemoteProtocolError(server=result.server, reason="updatedInput is no object")
    return Allow(changed, _rules_of(said.get("updatedPermissions")))


def _rules_of(updates: Json) -> dict[str, list[str]]:
    """The rules that are to be added; other kinds of updates mean nothing here."""
    rules: dict[str, list[str]] = {}
    for update in updates if is_list(updates) else ():
        match update:
            case {"type": "addRules", "behavior": "allow" | "ask" | "deny" as behavior, "rules": written}:
                rules.setdefault(str(behavior), []).extend(_texts(written))
    return {behavior: texts[:MAX_RULES] for behavior, texts in rules.items()}


def _texts(written: Json) -> Iterable[str]:
    for rule in written if is_list(written) else ():
        match rule:
            case {"toolName": str(tool), "ruleContent": str(content)}:
                yield f"{tool}({content})"
            case {"toolName": str(tool)}:
                yield tool
