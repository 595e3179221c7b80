"""Owns the hooks around a model's calls: what they are told, what they say, and what follows from all of them.

What this is not: how a hook is run (`questions.hook_runners`), or the permission, on which an allow has no last word.

Rule 1: a hook that fails, takes too long or says nonsense decides nothing; it is a warning in the log.
Rule 2: the most careful verdict wins: deny, ask, allow. "defer" leaves the call to a later hour, so it asks.
Rule 3: of several new inputs or outputs the first configured counts; new output takes the old one's place as a whole,
structured content too, so that what was masked is nowhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import evolve, field

from mcp_actors.elicitation.hook_outcomes import MAX_TEXT_CHARS, read_written, specific_output
from mcp_actors.elicitation.hooks import HookContext, HookEvent
from mcp_actors.files.places import working_directory
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.questions.hook_runners import HookRunner, call_connected, run_hooks
from mcp_actors.tools.permission_rules import Verdict
from mcp_actors.tools.results import ToolResult
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.elicitation.hook_outcomes import HookEnd
    from mcp_actors.elicitation.hooks import Hooks
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.questions.hook_runners import Connected, RunHook
    from mcp_actors.tools.permissions import Mode

__all__ = ["After", "Before", "Said", "ToolHooks", "hooks_beside", "read_said"]

logger = logging.getLogger("mcp_actors.model")

_VERDICTS: Final[Mapping[Json, Verdict]] = {
    "allow": Verdict.ALLOW,
    "approve": Verdict.ALLOW,
    "ask": Verdict.ASK,
    "defer": Verdict.ASK,
    "deny": Verdict.DENY,
    "block": Verdict.DENY,
}
_CARE: Final = {Verdict.DENY: 2, Verdict.ASK: 1, Verdict.ALLOW: 0}
# Event -> keys that hold new input or output, the first that is there counts (S314, S315).
_REPLACES: Final[Mapping[HookEvent, tuple[str, ...]]] = {
    HookEvent.PRE_TOOL_USE: ("updatedInput",),
    HookEvent.POST_TOOL_USE: ("updatedToolOutput", "updatedMCPToolOutput"),
}


@frozen
class Said:
    """What one hook says of a call."""

    verdict: Verdict | None = None
    # Why, for the model.
    reason: str = ""
    # New input or output; None: as it was.
    replacement: Json = field(default=None, repr=False)
    # What the model is to know besides.
    context: str = field(default="", repr=False)
    warning: str | None = None


def read_said(event: HookEvent, end: HookEnd) -> Said:
    """Read how a hook around a call ended.

    Source:
        S308, S309, S312, S314, S315, S317.
    """
    written = read_written(end)
    if written.refusal is not None:
        return Said(Verdict.DENY, written.refusal)
    if written.output is None:
        return Said(warning=written.warning)
    said = _read_output(event, written.output)
    says_nothing = said == Said(warning=said.warning)
    return evolve(said, warning=written.warning) if says_nothing and written.warning is not None else said


def _read_output(event: HookEvent, output: JsonObject) -> Said:
    specific = specific_output(event, output)
    if isinstance(specific, str):
        return Said(warning=specific)
    word, reason = output.get("decision"), output.get("reason")
    if output.get("continue") is False:
        word, reason = "block", output.get("stopReason")
    if "permissionDecision" in specific:
        word, reason = specific["permissionDecision"], specific.get("permissionDecisionReason")
    verdict = _VERDICTS.get(word) if isinstance(word, str) else None
    if word is not None and verdict is None:
        return Said(warning=f"a hook wrote the decision {str(word)[:40]!r}")
    replacement = next((specific[key] for key in _REPLACES[event] if specific.get(key) is not None), None)
    if event is HookEvent.PRE_TOOL_USE and replacement is not None and not isinstance(replacement, Mapping):
        return Said(verdict, _text(reason), warning="a hook wrote updatedInput that is no object")
    return Said(verdict, _text(reason), replacement, _text(specific.get("additionalContext")))


def _text(value: Json) -> str:
    return value[:MAX_TEXT_CHARS] if isinstance(value, str) else ""


def _decided(said: Sequence[Said]) -> tuple[Verdict | None, str]:
    """The most careful verdict and its reason, the first of equals."""
    deciding = [(one.verdict, one.reason) for one in said if one.verdict is not None]
    return max(deciding, key=lambda pair: _CARE[pair[0]], default=(None, ""))


@frozen
class Before:
    """What is to become of a call."""

    arguments: JsonObject = field(repr=False)
    verdict: Verdict | None = None
    reason: str = ""
    # For the model, beside the result.
    remarks: tuple[str, ...] = ()


@frozen
class After:
    """What is to become of a result."""

    raw: ToolResult
    # The result is a hook's word, which promised no schema.
    is_replaced: bool = False
    remarks: tuple[str, ...] = ()


class ToolHooks:
    """The hooks around the calls of one face. Holds no state of a call."""

    def __init__(self, hooks: Hooks, run_hook: RunHook, context: HookContext | None = None) -> None:
        """Make them. What `hooks` could not read goes to the log."""
        self._hooks = hooks
        self._run_hook = run_hook
        self._context = context or HookContext()
        for warning in hooks.warnings:
            logger.warning("%s", warning)

    async def before(self, name: str, arguments: JsonObject) -> Before:
        """Ask them about a call.

        Args:
            name: full name of the tool.
            arguments: as the model wrote them.

        Cancellation:
            Ends the hooks.

        Source:
            S310, S314.
        """
        said = await self._run(HookEvent.PRE_TOOL_USE, name, {"tool_input": arguments})
        verdict, reason = _decided(said)
        changed = next((one.replacement for one in said if isinstance(one.replacement, Mapping)), arguments)
        return Before(changed, verdict, reason, tuple(one.context for one in said if one.context))

    async def after(self, name: str, arguments: JsonObject, raw: ToolResult) -> After:
        """Show them a result that is no failure. A deny comes too late to stop the call; the model is told its reason.

        Raises:
            RemoteProtocolError: the result is malformed.

        Cancellation:
            Ends the hooks.

        Source:
            S310, S315.
        """
        if not self._hooks.select(HookEvent.POST_TOOL_USE, name) or raw.is_error:
            return After(raw)
        said = await self._run(HookEvent.POST_TOOL_USE, name, {"tool_input": arguments, "tool_response": raw.json})
        remarks = [one.reason for one in said if one.verdict is Verdict.DENY and one.reason]
        remarks += [one.context for one in said if one.context]
        output = next((one.replacement for one in said if one.replacement is not None), None)
        if output is None:
            return After(raw, remarks=tuple(remarks))
        return After(_result_of(output, raw), is_replaced=True, remarks=tuple(remarks))

    async def _run(self, event: HookEvent, name: str, more: JsonObject) -> list[Said]:
        handlers = self._hooks.select(event, name)
        if not handlers:
            return []
        told = {**self._context.told(event), "tool_name": name, **more}
        said = [read_said(event, end) for end in await run_hooks(handlers, told, self._run_hook)]
        for one in said:
            if one.warning is not None:
                logger.warning("%s of %s: %s", event, name, one.warning)
        return said


def _result_of(output: Json, raw: ToolResult) -> ToolResult:
    """Make a result of what a hook wrote: a whole one, content blocks, a text, or any value as its JSON."""
    match output:
        case {"content": list()}:
            result = output
        case [*blocks] if blocks and all(isinstance(block, Mapping) and "type" in block for block in blocks):
            result = {"content": blocks}
        case str():
            result = {"content": [{"type": "text", "text": output}]}
        case _:
            result = {"content": [{"type": "text", "text": encode(output).decode()}]}
    return ToolResult(encode(result), raw.server, raw.tool)


def hooks_beside(runtime: Connected, hooks: Hooks, mode: Mode) -> ToolHooks:
    """The hooks of a face over this runtime: they run as this program, in its directory and environment."""
    project = str(working_directory(os.environ))
    runner = HookRunner(dict(os.environ), project, partial(call_connected, runtime))
    return ToolHooks(hooks, runner, HookContext(cwd=project, permission_mode=mode))
