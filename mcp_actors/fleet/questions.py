"""Owns the public `Questions`: a program says who answers what servers ask, and gets the `Host` that does it.

What this is not: any answer, or who gives it (`questions.asking`). `open_runtime(host=...)` stays the one way in.

Rules.

1. Who answers runs with the runtime: there before the first server can ask, gone after the last one has ended.
2. A server that is gone has no questions any more (S295).
3. A hook's tool never connects anything (S313).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

import trio

from mcp_actors.actors.host import WiredHost
from mcp_actors.elicitation.hooks import HookContext
from mcp_actors.elicitation.requests import Kind
from mcp_actors.errors import ActorGone, LocalProtocolError, MailboxFull, RpcError, ServerNotReady
from mcp_actors.files.places import working_directory
from mcp_actors.protocol.question_rules import Refused
from mcp_actors.questions.asking import Asking
from mcp_actors.questions.elicitor import Elicitor
from mcp_actors.questions.hook_runners import HookRunner, call_connected
from mcp_actors.questions.messages import AnswerQuestion, CompleteUrl, DialogOpened, QuestionQueued, WithdrawQuestions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from mcp_actors.actors.host import Host, RuntimeView, ServerRequest
    from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingLimits, SamplingRequest
    from mcp_actors.elicitation.hooks import Hooks
    from mcp_actors.elicitation.policy import Policy
    from mcp_actors.elicitation.requests import Answer
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.questions.messages import ElicitorEvent, PendingQuestion
    from mcp_actors.questions.prompters import QuestionPrompter
    from mcp_actors.tools.results import ToolResult

__all__ = ["Questions"]

logger = logging.getLogger("mcp_actors.asking")


class Questions:
    """What servers may ask of a program, and who answers. Give its `host` to one `open_runtime`."""

    def __init__(
        self,
        prompter: QuestionPrompter | None = None,
        *,
        policy: Policy | None = None,
        hooks: Hooks | None = None,
        context: HookContext | None = None,
        environ: Mapping[str, str] | None = None,
        project: Path | str | None = None,
        report: Callable[[ElicitorEvent], None] | None = None,
        sample: Callable[[SamplingRequest], Awaitable[SamplingAnswer | None]] | None = None,
        limits: SamplingLimits | None = None,
        roots: Iterable[Root] | None = None,
        wants_tasks: bool = False,
    ) -> None:
        """Say who answers what. What nobody answers is not declared to servers (S110, F08).

        Args:
            prompter: asks a person, see `CallableQuestionPrompter` for a function.
            policy: who answers forms; by default the person. Without prompter, policy and hooks nothing is elicited.
            hooks: what looks at questions and answers (`elicitation.hooks.read_hooks`).
            context: what hooks are told of us; None: where they run.
            environ: environment of hooks; None: this process's.
            project: where hooks run; None: the working directory.
            report: takes each event; must not block.
            sample: the host's model.
            limits: what a server gets of it.
            roots: what servers may use; `set_roots` changes them while servers run.
            wants_tasks: as `Host.wants_tasks`.

        Raises:
            ConfigError: one of the roots is none.
        """
        # While it runs.
        self._runtime: RuntimeView | None = None
        self.elicitor: Elicitor | None = None
        if prompter is not None or policy is not None or (hooks is not None and hooks.hooks):
            directory = str(working_directory(os.environ) if project is None else project)
            self.elicitor = Elicitor(
                prompter,
                report=report or _note,
                run_hook=HookRunner(
                    dict(os.environ) if environ is None else environ,
                    directory,
                    self._call_tool,
                ),
                policy=policy,
                hooks=hooks,
                context=context or HookContext(cwd=directory),
            )
        for warning in () if hooks is None else hooks.warnings:
            logger.warning("%s", warning)
        self.asking = Asking(self.elicitor, sample=sample, limits=limits, roots=roots)
        # Give it to `open_runtime`.
        self.host: Host = WiredHost(
            dict.fromkeys(self.asking.methods, self._answer),
            {name: part for name, part in self.asking.capabilities.items() if isinstance(part, Mapping)},
            wants_tasks,
            task=None if self.elicitor is None else self._run,
            while_running=self._while_running,
            page_done=None if self.elicitor is None else self._page_done,
            with_pages=self.asking.with_url_rounds if Kind.URL in self.asking.kinds else None,
        )
        # Tells questions apart.
        self._keys = count(1)

    @property
    def pending(self) -> tuple[PendingQuestion, ...]:
        """The open questions, oldest first. Reading has no side effects."""
        return () if self.elicitor is None else self.elicitor.pending

    def set_roots(self, roots: Iterable[Root]) -> None:
        """Expose these roots from now on, and tell the servers of it that were told that roots may change.

        Raises:
            ConfigError: one of the roots is none; nothing was changed.
            LocalProtocolError: roots were not declared: nobody can be told of any.

        Source:
            S132, F12.
        """
        if Kind.ROOTS not in self.asking.kinds:
            raise LocalProtocolError(reason="roots were not declared: give Questions roots, if only an empty list")
        if self.asking.set_roots(roots) and self._runtime is not None:
            self._runtime.roots_changed()

    async def answer(self, number: int, answer: Answer) -> Mapping[str, str]:
        """Answer an open question at another door than the dialog.

        Returns:
            What is wrong with the answer: raw field name -> problem, "" for the whole; empty when it was taken.

        Raises:
            ActorGone: the runtime does not run.

        Cancellation:
            Safe. The answer may still be taken.
        """
        if self.elicitor is None:
            raise ActorGone(actor="elicitor")
        return await self.elicitor.mailbox.ref.ask(AnswerQuestion(number, answer))

    # ── what the runtime calls ───────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, request: ServerRequest) -> JsonObject:
        outcome = await self.asking.answer(request.server, next(self._keys), request.method, request.params)
        if isinstance(outcome, Refused):
            raise RpcError(server=request.server, code=outcome.code, message=outcome.reason)
        return outcome

    @contextmanager
    def _while_running(self, runtime: RuntimeView) -> Iterator[None]:
        self._runtime = runtime
        try:
            yield
        finally:
            self._runtime = None

    async def _run(
        self, runtime: RuntimeView, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        assert self.elicitor is not None
        async with trio.open_nursery() as nursery:
            await nursery.start(self.elicitor.run)
            await nursery.start(_withdraw_of_the_gone, self.elicitor, runtime)
            task_status.started()

    def _page_done(self, server: str, elicitation_id: str) -> None:
        assert self.elicitor is not None
        # A notice that finds no room is as one that was never sent: the person can still say that it is done.
        with suppress(MailboxFull, ActorGone):
            self.elicitor.mailbox.ref.tell_nowait(CompleteUrl(server, elicitation_id))

    async def _call_tool(self, server: str, tool: str, arguments: JsonObject) -> ToolResult:
        if self._runtime is None:
            raise ServerNotReady(server=server, state="not connected", reason="the runtime does not run")
        return await call_connected(self._runtime, server, tool, arguments)


async def _withdraw_of_the_gone(
    elicitor: Elicitor, runtime: RuntimeView, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Empty the queue of what dead servers asked. Runs until cancelled."""
    with runtime.watch() as changes:
        task_status.started()
        async for change in changes:
            was_up = change.old is not None and change.old.is_connected
            if was_up and (change.new is None or not change.new.is_connected):
                with suppress(ActorGone):  # everything ends, the questions too
                    await elicitor.mailbox.ref.tell(WithdrawQuestions(change.name))


def _note(event: ElicitorEvent) -> None:
    server = event.question.request.server if isinstance(event, QuestionQueued | DialogOpened) else event.server
    logger.debug("[MCP:%s] = %s", server, type(event).__name__)
