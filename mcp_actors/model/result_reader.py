"""Owns the reading of results for a model: the check against the schema, the plan, and the files that it saves.

What this is not: how content is planned (`tools.blocks`), where files go (`outputs`), or the call (`face`).

Rule 1: whether structured content fits its schema is told, and counts against no server (fault 84); raising is opt-in.
Rule 2: what takes time (schemas, pictures, files) runs in a thread.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.blocks import plan_result
from mcp_actors.tools.validation import Fit, check_output
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.model.outputs import Outputs
    from mcp_actors.tools.plans import Limits, ModelResult, ResultPlan, SaveFile, Shrink
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.validation import Check
    from mcp_actors.tools.view import ToolView

__all__ = ["Called", "ResultReader"]

# From here on a result is checked and planned in a thread, where it holds up nobody.
THREAD_BYTES: Final = 100_000


@frozen(eq=False)
class Called:
    """One call that was made: what the server said, whether it fits, and what a model gets of it."""

    raw: ToolResult
    check: Check | None
    result: ModelResult


@frozen
class ResultReader:
    """How one face reads results."""

    limits: Limits
    # Where files go; None: they are not saved.
    outputs: Outputs | None
    shrink: Shrink | None
    # Raise when structured content does not fit its schema.
    is_strict: bool

    async def read(self, raw: ToolResult, view: ToolView, *, is_replaced: bool = False) -> Called:
        """Check a result and give what a model gets of it. See `ModelFace.read_result`."""
        limits = evolve(self.limits, max_result_chars=view.max_result_chars)
        check, plan = await self._judged(raw, None if is_replaced else view.output_schema, limits)
        if self.is_strict and check is not None and check.fit is Fit.INVALID:
            reason = f"structured content of {view.name} does not fit its schema: {check.reason}"
            raise RemoteProtocolError(server=view.server, reason=reason)
        return Called(raw, check, plan.finish(await self.save(plan.files)))

    async def take(self, raw: ToolResult) -> ModelResult:
        """What a model gets of content that no tool gave. Cancellation: safe; a file under way is written."""
        _, plan = await self._judged(raw, None, self.limits)
        return plan.finish(await self.save(plan.files))

    async def save(self, files: Sequence[SaveFile]) -> list[str | None]:
        """Write files; the path of each, None where it was not saved. Cancellation: as `take`."""
        return [None] * len(files) if self.outputs is None else await self.outputs.save(files)

    async def _judged(
        self, raw: ToolResult, schema: JsonObject | None, limits: Limits
    ) -> tuple[Check | None, ResultPlan]:
        judge = partial(_judge, raw, schema, limits, self.shrink)
        # A picture may have to be decoded, whatever its size.
        is_slow = len(raw.raw) > THREAD_BYTES or b'"image' in raw.raw
        return await trio.to_thread.run_sync(judge) if is_slow else judge()


def _judge(
    raw: ToolResult, schema: JsonObject | None, limits: Limits, shrink: Shrink | None
) -> tuple[Check | None, ResultPlan]:
    check = check_output(schema, raw.structured_content, is_error=raw.is_error, has_value=raw.has_structured_content)
    return check, plan_result(raw, limits=limits, check=check, shrink=shrink)
