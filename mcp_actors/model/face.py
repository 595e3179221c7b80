"""Owns `ModelFace`: what a running fleet looks like to a model, from the list of tools to the result of a call.

What this is not: a model's interface, or the agent's loop. Nothing of a server's reaches the wire changed: views are
cleaned, arguments are put back.

Rules.

1. Every call of a model passes one check: deny, ask, mode, allow, person (S228, S234). A refusal is a result that the
   model reads, not an exception: it may go another way.
2. Whether structured content fits its schema is told, and counts against no server (fault 84); raising is opt-in.
3. What takes time (schemas, pictures, files, the first index) runs in a thread.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import evolve, frozen

from mcp_actors.errors import RemoteProtocolError, UnknownServer, UnknownTool
from mcp_actors.model.absent import absent
from mcp_actors.model.limits import limits_of_environment
from mcp_actors.model.own_tools import OwnTools, Resourceful, told
from mcp_actors.model.permission import Deny, Permission
from mcp_actors.model.pictures import shrink_picture
from mcp_actors.model.tool_hooks import Before, hooks_beside
from mcp_actors.tools.blocks import plan_result
from mcp_actors.tools.filters import hide_by
from mcp_actors.tools.formats import FORMATS
from mcp_actors.tools.listing import Listing, clean_instructions, list_for_model
from mcp_actors.tools.permissions import Mode, Question
from mcp_actors.tools.plans import ModelText
from mcp_actors.tools.search import DEFAULT_LIMIT, SearchIndex
from mcp_actors.tools.validation import Fit, check_output
from mcp_actors.tools.view import ToolView, restore_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_actors.actors.registry import Snapshot
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.elicitation.hooks import Hooks
    from mcp_actors.fleet.configured import Configured
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.model.outputs import Outputs
    from mcp_actors.model.permission import AskPermission
    from mcp_actors.model.pins import PinBook
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.filters import Hide
    from mcp_actors.tools.permission_rules import Rules, Verdict
    from mcp_actors.tools.pinning import Change
    from mcp_actors.tools.plans import Limits, ModelResult, ResultPlan, SaveFile, Shrink
    from mcp_actors.tools.resource_tools import HostTool
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.search import Match
    from mcp_actors.tools.validation import Check

__all__ = ["Called", "Fleet", "ModelFace"]

logger = logging.getLogger("mcp_actors.model")

# From here on a result is checked and planned in a thread, where it holds up nobody.
THREAD_BYTES: Final = 100_000
# A catalogue from this size on is indexed in a thread.
THREAD_TOOLS: Final = 500


class Fleet(Resourceful, Protocol):
    """What a face needs of the runtime; see `Runtime` for each."""

    configured: Configured

    async def find_tool(self, name: str) -> Tool: ...

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ToolResult: ...


@frozen(eq=False)
class Called:
    """One call that was made: what the server said, whether it fits, and what a model gets of it."""

    raw: ToolResult
    check: Check | None
    result: ModelResult


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
        report: Callable[[str, tuple[Change, ...]], None] | None = None,
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
            ask: asks a person about a call, with the question and why it is asked; gives true, false, `Allow` or
                `Deny` (S241). None: what would be asked is refused.
            limits: how much of a result a model gets; None: the defaults, and what ``MAX_MCP_OUTPUT_TOKENS`` says.
            outputs: where files go that a model is told of; None: they are not saved, and the text says so.
            pins: what was approved; None: definitions may change freely.
            report: told of the changes of a server when they are found.
            shrink: makes pictures smaller, in a thread; by default Pillow, where it is installed.
            is_strict: raise when structured content does not fit its schema.
            hooks: what looks at calls before and after (`read_hooks` with `TOOL_EVENTS`); they run as this program.
        """
        self.pins = pins
        self._runtime = runtime
        self._permission = Permission(runtime.configured, rules, mode, ask)
        self._limits = limits_of_environment() if limits is None else limits
        self._outputs = outputs
        self._report = report
        self._shrink = shrink
        self._is_strict = is_strict
        # What was listed last, of which snapshot and by which rules; replaced together, under the lock.
        self._listing = Listing()
        self._listed: tuple[Snapshot, Rules] | tuple[None, None] = (None, None)
        # The filter of these rules.
        self._hide: Hide = hide_by(self.rules)
        self._hides_by: Rules | None = None
        self._index = SearchIndex()
        self._own = OwnTools(runtime, self._save)
        self._hooks = None if hooks is None else hooks_beside(runtime, hooks, self._permission.mode)
        self._lock = trio.Lock()

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
        if self._listed[0] is self._runtime.snapshot and self._listed[1] is self.rules:
            return self._listing
        async with self._lock:
            snapshot, rules = self._runtime.snapshot, self.rules
            await self._look_at_pins(snapshot)
            if self._hides_by is not rules:  # another filter makes every shelf anew
                self._hide = hide_by(rules, frozenset() if self.pins is None else self.pins.suspended)
                self._hides_by = rules
            self._listing = list_for_model(snapshot.catalog, self._hide, previous=self._listing, eager=snapshot.eager)
            self._listed = snapshot, rules
        return self._listing

    async def _look_at_pins(self, snapshot: Snapshot) -> None:
        if self.pins is None:
            return
        for server in snapshot.catalog.servers:
            tools, connection = snapshot.catalog.tools_of(server), snapshot.connections.get(server)
            if connection is None or not self.pins.is_news(server, tools):
                continue
            changes = await trio.to_thread.run_sync(self.pins.look, connection.spec, tools)
            for change in changes:
                logger.warning("[MCP:%s] a tool is not what was approved: %s", server, change.describe())
            if changes and self._report is not None:
                self._report(server, changes)

    @property
    def changes(self) -> Mapping[str, tuple[Change, ...]]:
        """Server -> what changed since it was approved, as found by the last listing."""
        return {} if self.pins is None else dict(self.pins.changes)

    async def approve(self, server: str) -> None:
        """Take a server's tools as they are now; what was held back is listed again.

        Raises:
            UnknownServer: it is not connected.

        Cancellation:
            Safe. It is done or not.
        """
        async with self._lock:
            snapshot = self._runtime.snapshot
            connection = snapshot.connections.get(server)
            if connection is None:
                raise UnknownServer(name=server)
            if self.pins is not None:
                tools = snapshot.catalog.tools_of(server)
                await trio.to_thread.run_sync(self.pins.approve, connection.spec, tools)
            self._hides_by, self._listed = None, (None, None)

    @property
    def host_tools(self) -> tuple[HostTool, ...]:
        """The tools of our own that are offered beside: to list and read resources (S326), unless denied (S242)."""
        return tuple(tool for tool in self._own.offered if self.rules.hiding(tool.name) is None)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Server that should run and does not -> why, and what to do: what to tell a model that misses its tools."""
        return absent(self._runtime.snapshot.servers)

    @property
    def instructions(self) -> Mapping[str, str]:
        """Server -> what it wants a model to know of it, cleaned and capped; those that say nothing are left out."""
        infos = {name: connection.info for name, connection in self._runtime.snapshot.connections.items()}
        cleaned = {name: clean_instructions(info.instructions) for name, info in infos.items() if info is not None}
        return {name: text for name, text in cleaned.items() if text}

    async def tools(self, form: str) -> JsonObject | list[JsonObject]:
        """Hand the listing, and after it `host_tools`, to a model's interface.

        Args:
            form: one of `formats.FORMATS`: anthropic, openai, openai-responses, gemini.

        Raises:
            ValueError: there is no such form.

        Cancellation:
            Safe.

        Source:
            S166: servers' tools and our own stand in one list of one shape.
        """
        if form not in FORMATS:
            raise ValueError(f"no form is named {form!r}; there are: {', '.join(FORMATS)}")
        return FORMATS[form]([*await self.listing(), *self.host_tools])

    async def search(self, query: str, limit: int = DEFAULT_LIMIT) -> tuple[Match, ...]:
        """Find tools by words, best first. Cancellation: safe (S170)."""
        listing = await self.listing()
        index = self._index = self._index.replace(listing)
        if len(listing) >= THREAD_TOOLS:
            return await trio.to_thread.run_sync(index.search, query, limit)
        return index.search(query, limit)

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
            UnknownTool: nothing of that name is offered; hidden tools are not.
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
            with trio.fail_after(math.inf if timeout is None else timeout):
                tool = await self._view(name)
        before = Before(arguments or {}, hook)
        if hook is None and self._hooks is not None:
            before = await self._hooks.before(name, before.arguments)
        question = Question(
            name,
            before.arguments,
            is_read_only=tool.is_read_only,
            requires_user_interaction=isinstance(tool, ToolView) and tool.requires_user_interaction,
            hook=before.verdict,
            hook_reason=before.reason,
        )
        settled = await self._permission.settle(question)
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
        limits = evolve(self._limits, max_result_chars=view.max_result_chars)
        check, plan = await self._judged(raw, None if is_replaced else view.output_schema, limits)
        if self._is_strict and check is not None and check.fit is Fit.INVALID:
            reason = f"structured content of {view.name} does not fit its schema: {check.reason}"
            raise RemoteProtocolError(server=view.server, reason=reason)
        return Called(raw, check, plan.finish(await self._save(plan.files)))

    async def take(self, raw: ToolResult) -> ModelResult:
        """What a model gets of content that no tool gave: of a resource, of a prompt. Cancellation: as `call`."""
        _, plan = await self._judged(raw, None, self._limits)
        return plan.finish(await self._save(plan.files))

    async def _judged(
        self, raw: ToolResult, schema: JsonObject | None, limits: Limits
    ) -> tuple[Check | None, ResultPlan]:
        judge = partial(_judge, raw, schema, limits, self._shrink)
        # A picture may have to be decoded, whatever its size.
        is_slow = len(raw.raw) > THREAD_BYTES or b'"image' in raw.raw
        return await trio.to_thread.run_sync(judge) if is_slow else judge()

    async def _view(self, name: str) -> ToolView:
        views = (await self.listing()).views
        if name not in views and self._is_down(name):
            # A model knows it from an earlier list: "no such tool" would be wrong (S118, S125, field 14).
            with suppress(UnknownTool):
                await self._runtime.find_tool(name)
            views = (await self.listing()).views
        if name not in views:
            nearest = self._runtime.snapshot.catalog.nearest(name)
            raise UnknownTool(name=name, nearest=tuple(near for near in nearest if near in views))
        return views[name]

    def _is_down(self, name: str) -> bool:
        connected = self._runtime.snapshot.connections
        return any(server not in connected for server in self._runtime.configured.servers_of(name))

    async def _save(self, files: Sequence[SaveFile]) -> list[str | None]:
        return [None] * len(files) if self._outputs is None else await self._outputs.save(files)


def _judge(
    raw: ToolResult, schema: JsonObject | None, limits: Limits, shrink: Shrink | None
) -> tuple[Check | None, ResultPlan]:
    check = check_output(schema, raw.structured_content, is_error=raw.is_error, has_value=raw.has_structured_content)
    return check, plan_result(raw, limits=limits, check=check, shrink=shrink)


def _with_remarks(result: ModelResult, remarks: Sequence[str]) -> ModelResult:
    """A result with what hooks want a model to know besides."""
    return evolve(result, blocks=(*result.blocks, *map(ModelText, remarks))) if remarks else result
