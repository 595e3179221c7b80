"""Owns `ModelFace`: what a running fleet looks like to a model, from the list of tools to the result of a call.

What this is not: a model's interface, or the agent's loop; nor the owner of the listing (`offer`) or of how results are
read (`result_reader`). Nothing of a server's reaches the wire changed: views are cleaned, arguments are put back.

Rule: every call of a model passes one check: deny, ask, mode, allow, person (S228, S234). A refusal is a result that
the model reads, not an exception: it may go another way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import evolve

from mcp_actors.errors import UnknownTool
from mcp_actors.model.limits import limits_of_environment
from mcp_actors.model.offer import Offer, Offering
from mcp_actors.model.own_tools import OwnTools, Resourceful, told
from mcp_actors.model.permission import Deny, Permission
from mcp_actors.model.pictures import shrink_picture
from mcp_actors.model.result_reader import Called, ResultReader
from mcp_actors.model.tool_hooks import Before, hooks_beside
from mcp_actors.model.unavailable import unavailable
from mcp_actors.tools.formats import FORMATS
from mcp_actors.tools.listing import Listing, clean_instructions
from mcp_actors.tools.permissions import Mode, PermissionRequest
from mcp_actors.tools.plans import ModelText
from mcp_actors.tools.search import DEFAULT_LIMIT
from mcp_actors.tools.view import ToolView, restore_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.elicitation.hooks import Hooks
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.model.outputs import Outputs
    from mcp_actors.model.permission import AskPermission
    from mcp_actors.model.pins import PinBook
    from mcp_actors.tools.permission_rules import Rules, Verdict
    from mcp_actors.tools.pinning import ToolChange
    from mcp_actors.tools.plans import Limits, ModelResult, Shrink
    from mcp_actors.tools.resource_tools import HostTool
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.search import ToolMatch

__all__ = ["Called", "Fleet", "ModelFace"]


# A model knows such a tool from an earlier list: "no such tool" would be wrong.
HELD_BACK: Final = "{name} is held back: it is not what was approved. A person has to look at it and approve it."


class Fleet(Offering, Resourceful, Protocol):
    """What a face needs of the runtime; see `Runtime` for each."""

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ToolResult: ...


class ModelFace:
    """What a model is offered of a running fleet. Valid for as long as the runtime is."""

    def __init__(
        self,
        runtime: Fleet,
        *,
        rules: Rules | None = None,
        mode: Mode | str = Mode.DEFAULT,
        ask: AskPermission | None = None,
        limits: Limits | None = None,
        outputs: Outputs | None = None,
        pins: PinBook | None = None,
        report: Callable[[str, tuple[ToolChange, ...]], None] | None = None,
        shrink: Shrink | None = shrink_picture,
        is_strict: bool = False,
        hooks: Hooks | None = None,
    ) -> None:
        """Make a face.

        Args:
            runtime: what runs.
            rules: permission rules; deny rules also hide (S236). None: ``permissions`` of the settings files that the
                fleet was read from, as they are now; ``Rules()`` for none at all.
            mode: how calls are treated that no rule speaks of, such as ``"plan"`` or ``"dontAsk"`` (S235).
            ask: asks a person about a call, with the `PermissionRequest` and the `Decision` that says why; gives true,
                false, `Allow` or `Deny` (S241). None: what would be asked is refused.
            limits: how much of a result a model gets; None: the defaults, and what ``MAX_MCP_OUTPUT_TOKENS`` says.
            outputs: where files go that a model is told of; None: they are not saved, and the text says so.
            pins: what was approved; None: definitions may change freely.
            report: told of the changes of a server when they are found.
            shrink: makes pictures smaller, in a thread; by default Pillow, where it is installed.
            is_strict: raise when structured content does not fit its schema.
            hooks: what looks at calls before and after (`read_hooks` with `TOOL_EVENTS`); they run as this program.
        """
        self._runtime = runtime
        self._permission = Permission(runtime.configured, rules, mode, ask)
        self._offer = Offer(runtime, self._permission, pins, report)
        limits = limits_of_environment() if limits is None else limits
        self._reader = ResultReader(limits, outputs, shrink, is_strict)
        self._own = OwnTools(runtime, self._reader.save)
        self._hooks = None if hooks is None else hooks_beside(runtime, hooks, self._permission.mode)

    @property
    def pins(self) -> PinBook | None:
        """What was approved; None: definitions may change freely."""
        return self._offer.pins

    @property
    def rules(self) -> Rules:
        """The permission rules that count now: those of settings files as they were read last, and remembered ones."""
        return self._permission.rules

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

    async def listing(self) -> Listing:
        """What a model may call now: views of the tools, what is hidden and why, warnings.

        One server's change costs work for that server alone; nothing has changed: nothing is done. Other rules, after
        a reload, are another list.

        Cancellation:
            Safe.

        Source:
            S156, S165, fault 104.
        """
        return await self._offer.listing()

    @property
    def changes(self) -> Mapping[str, tuple[ToolChange, ...]]:
        """Server -> what changed since it was approved, as found by the last listing."""
        return {} if self.pins is None else dict(self.pins.changes)

    async def approve(self, server: str) -> None:
        """Take a server's tools as they are now; what was held back is listed again.

        Raises:
            UnknownServer: it is not connected.

        Cancellation:
            Safe. It is done or not.
        """
        await self._offer.approve(server)

    @property
    def host_tools(self) -> tuple[HostTool, ...]:
        """The tools of our own that are offered beside: to list and read resources (S326), unless denied (S242)."""
        return tuple(tool for tool in self._own.offered if self.rules.hiding(tool.names) is None)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Server that should run and does not -> why, and what to do: what to tell a model that misses its tools."""
        return unavailable(self._runtime.snapshot.servers)

    @property
    def instructions(self) -> Mapping[str, str]:
        """Server -> what it wants a model to know of it, cleaned and capped; those that say nothing are left out."""
        infos = {name: connection.info for name, connection in self._runtime.snapshot.connections.items()}
        cleaned = {name: clean_instructions(info.instructions) for name, info in infos.items() if info is not None}
        return {name: text for name, text in cleaned.items() if text}

    async def tools(self, form: str) -> JsonObject | list[JsonObject]:
        """Hand the listing, and after it `host_tools`, to a model's interface. Cancellation: safe.

        Args:
            form: one of `formats.FORMATS`: anthropic, openai, openai-responses, gemini.

        Raises:
            ValueError: there is no such form.

        Source:
            S166: servers' tools and our own stand in one list of one shape.
        """
        if form not in FORMATS:
            raise ValueError(f"no form is named {form!r}; there are: {', '.join(FORMATS)}")
        return FORMATS[form]([*await self.listing(), *self.host_tools])

    async def search(self, query: str, limit: int = DEFAULT_LIMIT) -> tuple[ToolMatch, ...]:
        """Find tools by words, best first. Cancellation: safe (S170)."""
        return await self._offer.search(query, limit)

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        hook: Verdict | None = None,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ModelResult:
        """Make a call for a model: permission, the call, the check of its result, what a model gets of it.

        Args:
            name: callable name, as listed; or a tool of `host_tools`.
            arguments: as the model wrote them.
            hook: what the program's own hooks said of the call before (S314); an allow skips neither deny nor ask.
                Where it is given, ``PreToolUse`` hooks are not run.
            timeout, progress: as for `Runtime.call_tool`.

        Returns:
            What the model gets; a refusal, too, is an `is_error` result.

        Raises:
            UnknownTool: nothing of that name is offered; hidden tools are not. One that is held back is a refusal.
            ServerNotReady: its server is down and did not come up; the error says why and what to do.
            RemoteProtocolError: the result is malformed, or (with `is_strict`) does not fit its schema.
            (and what `Runtime.call_tool` raises.)

        Cancellation:
            Safe, as `Runtime.call_tool`. A file that is being written is written.

        Source:
            S212-S242, faults 84 and 85.
        """
        tool: HostTool | ToolView | None = next((tool for tool in self.host_tools if tool.name == name), None)
        if tool is None:
            began = trio.current_time()
            try:
                with trio.move_on_after(math.inf if timeout is None else timeout):
                    tool = await self._offer.view(name)
            except UnknownTool:
                if self.pins is None or name not in self.pins.suspended:
                    raise
                return told(HELD_BACK.format(name=name), is_error=True)
            if tool is None:
                raise trio.TooSlowError(f"the queue clock ran out after {timeout:g} s: {name} is not offered yet")
            timeout = None if timeout is None else timeout - (trio.current_time() - began)
        before = Before(arguments or {}, hook)
        if hook is None and self._hooks is not None:
            before = await self._hooks.before(name, before.arguments)
        request = PermissionRequest(
            name,
            before.arguments,
            is_read_only=tool.is_read_only,
            requires_user_interaction=isinstance(tool, ToolView) and tool.requires_user_interaction,
            hook=before.verdict,
            hook_reason=before.reason,
            tool=tool.names,
        )
        settled = await self._permission.settle(request)
        if isinstance(settled, Deny):
            text = f"Permission to use {name} was denied: {settled.message.rstrip('.')}."
            return evolve(told(text, is_error=True), is_interrupt=settled.is_interrupt)
        passed = before.arguments if settled.updated_input is None else settled.updated_input
        if isinstance(tool, ToolView):
            result = (await self.call_view(tool, passed, timeout=timeout, progress=progress)).result
        else:
            result = await self._own.call(tool, passed)
        return _with_remarks(result, before.remarks)

    async def call_view(
        self,
        view: ToolView,
        arguments: JsonObject,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Called:
        """`call` without the permission: for a host that has asked already. Cancellation: as `call`."""
        restored = restore_arguments(view.tool, arguments)
        raw = await self._runtime.call_tool(view.name, restored, timeout=timeout, progress=progress)
        if self._hooks is None:
            return await self.read_result(raw, view)
        after = await self._hooks.after(view.name, arguments, raw)
        called = await self.read_result(after.raw, view, is_replaced=after.is_replaced)
        return evolve(called, result=_with_remarks(called.result, after.remarks))

    async def read_result(self, raw: ToolResult, view: ToolView, *, is_replaced: bool = False) -> Called:
        """Check a result and give what a model gets of it. Raises as `call`. Cancellation: as `call`.

        Args:
            raw: the result.
            view: the tool that gave it.
            is_replaced: it is not the tool's own, so that the tool's schema is not for it.
        """
        return await self._reader.read(raw, view, is_replaced=is_replaced)

    async def take(self, raw: ToolResult) -> ModelResult:
        """What a model gets of content that no tool gave: of a resource, of a prompt. Cancellation: as `call`."""
        return await self._reader.take(raw)


def _with_remarks(result: ModelResult, remarks: Sequence[str]) -> ModelResult:
    """A result with what hooks want a model to know besides."""
    return evolve(result, blocks=(*result.blocks, *map(ModelText, remarks))) if remarks else result
