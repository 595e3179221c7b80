"""Owns the pending questions of all servers: hooks, then policy, then a person, one dialog at a time.

What this is not: the session that a question came from; `asking` stands between the two. Nor a judge: what may be asked
and sent is decided by `elicitation`.

Rules.

1. Every question is answered exactly once. Withdrawn, too many, or shut down: cancel (S295).
2. A person sees one dialog at a time, the oldest question first, over all servers (S287). Hooks hold up no dialog.
3. The loop waits for nobody: each question is a task of its own, beginning with the hooks (law 7).
4. What a person, a hook or another door answers is judged before it is sent (S292).
"""

from __future__ import annotations

import contextlib
import logging
from itertools import count
from typing import TYPE_CHECKING

import trio

from mcp_actors.actors.mailbox import Mailbox
from mcp_actors.elicitation.hooks import HookContext, Hooks
from mcp_actors.elicitation.policy import AskPerson, Mode, Policy, Settled, decide, judge_answer
from mcp_actors.elicitation.queue import Pages, Queue
from mcp_actors.elicitation.requests import CANCELLED, Action, Answer, InputRequest, Outcome, Stage
from mcp_actors.errors import ActorGone
from mcp_actors.questions.conversation import converse
from mcp_actors.questions.messages import (
    AnswerQuestion,
    AskQuestion,
    CompleteUrl,
    DialogOpened,
    ElicitorMessage,
    Phase,
    QuestionAnswered,
    QuestionQueued,
    QuestionWarned,
    UrlCompleted,
    WithdrawQuestion,
    WithdrawQuestions,
)
from mcp_actors.questions.open_question import OpenQuestion
from mcp_actors.questions.question_hooks import QuestionHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_actors.actors.mailbox import Envelope
    from mcp_actors.elicitation.hooks import Handler
    from mcp_actors.questions.hook_runners import RunHook
    from mcp_actors.questions.messages import ElicitorEvent, PendingQuestion
    from mcp_actors.questions.prompters import QuestionPrompter

__all__ = ["Elicitor"]

logger = logging.getLogger("mcp_actors.elicitor")

# The loop never waits, so this only has to hold what one turn of the scheduler brings.
MAILBOX_SIZE = 1024
GONE = {"": "this question is not open any more"}


class Elicitor:
    """The actor that gets questions answered. `run` is its task; `ask` is called by many."""

    def __init__(
        self,
        prompter: QuestionPrompter | None,
        *,
        report: Callable[[ElicitorEvent], None],
        run_hook: RunHook,
        policy: Policy | None = None,
        hooks: Hooks | None = None,
        context: HookContext | None = None,
    ) -> None:
        """Make the actor.

        Args:
            prompter: asks a person; None: there is none, and what no hook or policy answers is declined (S293).
            report: takes each event; called in tasks of this actor, must not block. What it raises is logged.
            run_hook: runs one hook.
            policy: who answers; by default the person.
            hooks: what looks at questions and answers.
            context: what hooks are told of us.
        """
        self.mailbox: Mailbox[ElicitorMessage] = Mailbox("elicitor", size=MAILBOX_SIZE)
        self.policy = policy or Policy()
        self.answered = 0
        self._prompter = prompter
        self._take_event = report
        self._hooks = QuestionHooks(run_hook, self._warn, hooks or Hooks(), context or HookContext())
        self._queue = Queue(self.policy.max_per_server, self.policy.max_open)
        # Maps number -> open question, oldest first.
        self._entries: dict[int, OpenQuestion] = {}
        self._numbers = count(1)
        self._pages = Pages()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take questions and get them answered. Runs until cancelled; what is open then is answered with cancel."""
        with self.mailbox:
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    self._receive(await self.mailbox.receive(), nursery)

    async def ask(self, request: InputRequest) -> Outcome:
        """Get one question answered.

        Args:
            request: what is asked.

        Returns:
            The answer; or an error for the server, when the host's own prompter failed (fault 76).

        Cancellation:
            Safe. The question is withdrawn, its dialog closed; telling so is shielded and waits for nobody.

        Source:
            S286-S289, S295.
        """
        question = AskQuestion(request)
        is_answered = False
        try:
            outcome = await self.mailbox.ref.ask(question)
            is_answered = True
        except ActorGone:
            is_answered = True
            return CANCELLED
        finally:
            if not is_answered:
                with trio.CancelScope(shield=True), contextlib.suppress(ActorGone):
                    await self.mailbox.ref.tell(WithdrawQuestion(question))
        return outcome

    @property
    def pending(self) -> tuple[PendingQuestion, ...]:
        """The open questions, oldest first. Reading has no side effects."""
        return tuple(entry.show() for entry in self._entries.values())

    def __repr__(self) -> str:
        opened = sum(entry.phase is Phase.OPEN for entry in self._entries.values())
        return f"<Elicitor | dialogs: {opened} | questions: {len(self._entries)} open, {self.answered} answered>"

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive(self, envelope: Envelope[ElicitorMessage], nursery: trio.Nursery) -> None:
        message = envelope.message
        if isinstance(message, AskQuestion):
            self._admit(message, envelope, nursery)
            return
        with envelope:
            match message:
                case WithdrawQuestion(question):
                    self._withdraw(entry for entry in self._entries.values() if entry.question is question)
                case WithdrawQuestions(server):
                    self._withdraw(entry for entry in self._entries.values() if entry.request.server == server)
                case CompleteUrl(server, elicitation_id):
                    self._complete(server, elicitation_id)
                case AnswerQuestion(number, answer):
                    envelope.resolve(self._take_answer(self._entries.get(number), answer))

    def _admit(self, question: AskQuestion, envelope: Envelope[ElicitorMessage], nursery: trio.Nursery) -> None:
        request, number = question.request, next(self._numbers)
        entry = OpenQuestion(number, question, envelope, trio.current_time(), request)
        if not self._queue.arrive(number, request.server):
            self._warn(request.server, "asks too much at once; the question was cancelled")
            entry.settle(CANCELLED, "full")
        elif request.stage is Stage.COMPLETION:
            if self._pages.is_done(request.server, request.elicitation_id):
                entry.settle(Answer(Action.ACCEPT), "notice")
        elif request.elicitation_id is not None:
            self._pages.begin(request.server, request.elicitation_id)
        self._entries[number] = entry
        handlers = self._hooks.on_question(request.server) if request.stage is Stage.FIRST else ()
        if not handlers and entry.outcome is None:
            # Here and not in its task: tasks start in any order, questions queue in theirs.
            self._decide(entry)
        nursery.start_soon(self._serve, entry, handlers)

    def _complete(self, server: str, elicitation_id: str) -> None:
        """Take a notice; one for an id that is unknown or done is no matter (F10)."""
        if not self._pages.complete(server, elicitation_id):
            return
        self._report(UrlCompleted(server, elicitation_id))
        for entry in self._entries.values():
            shown = entry.request
            if shown.stage is Stage.COMPLETION and (shown.server, shown.elicitation_id) == (server, elicitation_id):
                entry.give(Answer(Action.ACCEPT), "notice")

    def _withdraw(self, entries: Iterator[OpenQuestion]) -> None:
        for entry in entries:
            entry.withdraw()

    def _take_answer(self, entry: OpenQuestion | None, answer: Answer) -> Mapping[str, str]:
        if entry is None or not entry.takes_answers:
            return GONE
        judged = judge_answer(entry.request, answer)
        if not isinstance(judged, Answer):
            return judged
        entry.give(judged, "person")
        return {}

    # ── one question ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _decide(self, entry: OpenQuestion) -> None:
        """Ask the policy; let the question wait for a person if that is what it says."""
        request = entry.request
        match decide(self.policy, request, has_prompter=self._prompter is not None):
            case Settled(answer, reason):
                entry.settle(answer, "policy")
                logger.debug("[MCP:%s] = %s: %s", request.server, answer.action, reason)
                if answer.action is not Action.ACCEPT:
                    self._warn(request.server, f"its question was answered with {answer.action}: {reason}")
                return
            case AskPerson(shown, notes):
                entry.request = shown
                for note in notes:
                    self._warn(request.server, note)
        entry.phase = Phase.WAITING
        if self._asks_person:
            self._queue.line_up(entry.number)
            self._report(QuestionQueued(entry.show()))
            self._give_turn()

    @property
    def _asks_person(self) -> bool:
        return self._prompter is not None and self.policy.mode is Mode.ASK

    def _give_turn(self) -> None:
        number = self._queue.next_turn()
        if number is not None:
            self._entries[number].turn.set()

    async def _serve(self, entry: OpenQuestion, handlers: tuple[Handler, ...]) -> None:
        with entry.envelope:
            try:
                with entry.scope:
                    await self._get_answer(entry, handlers)
            finally:
                self._leave(entry)

    def _leave(self, entry: OpenQuestion) -> None:
        """Answer what is owed and let the next one come. No await: it runs while being cancelled, too."""
        entry.settle(CANCELLED, "shutdown")
        entry.envelope.resolve(entry.outcome)
        self.answered += 1
        del self._entries[entry.number]
        self._close_dialog(entry)
        self._queue.leave(entry.number)
        action = entry.outcome.action if isinstance(entry.outcome, Answer) else None
        self._report(QuestionAnswered(entry.number, entry.request.server, action, entry.by))

    def _close_dialog(self, entry: OpenQuestion) -> None:
        """End the part in which a person is asked: the next dialog may open."""
        self._queue.close_dialog(entry.number)
        self._give_turn()

    async def _get_answer(self, entry: OpenQuestion, handlers: tuple[Handler, ...]) -> None:
        if handlers:
            await self._ask_hooks(entry, handlers)
        if entry.outcome is not None:
            return
        answer: Outcome | None = None
        with entry.dialog:
            answer = await self._ask_person(entry)
        if entry.given is not None:
            answer = entry.given
        else:
            entry.by = "person" if isinstance(answer, Answer) else "failed"
        self._close_dialog(entry)
        if isinstance(answer, Answer) and entry.request.stage is Stage.FIRST:
            answer = await self._revise(entry, answer)
        entry.settle(answer or CANCELLED, entry.by)

    async def _ask_person(self, entry: OpenQuestion) -> Outcome:
        """Wait for the turn and ask until the answer fits; without a person, wait for the server's notice alone."""
        if entry.request.stage is Stage.COMPLETION:
            with trio.move_on_after(self.policy.completion_timeout):
                if not self._asks_person:
                    await trio.sleep_forever()
                return await self._converse(entry)
            self._warn(entry.request.server, "nobody said that the page is done")
            return CANCELLED
        return await self._converse(entry)

    async def _converse(self, entry: OpenQuestion) -> Outcome:
        await entry.turn.wait()
        entry.phase = Phase.OPEN
        self._report(DialogOpened(entry.show()))
        assert self._prompter is not None
        outcome = await converse(self._prompter, entry, self.policy.max_attempts)
        if outcome is None:
            self._warn(entry.request.server, "no answer fits the form; the question was cancelled")
        return outcome or CANCELLED

    async def _ask_hooks(self, entry: OpenQuestion, handlers: tuple[Handler, ...]) -> None:
        answered = await self._hooks.answer(entry.request, handlers)
        if isinstance(answered, Answer):
            entry.settle(answered, "hook")
        else:
            entry.request = answered
            self._decide(entry)

    async def _revise(self, entry: OpenQuestion, answer: Answer) -> Answer:
        handlers = self._hooks.on_answer(entry.request.server)
        if not handlers:
            return answer
        entry.phase = Phase.HOOKS
        return await self._hooks.revise(entry.request, answer, handlers)

    def _report(self, event: ElicitorEvent) -> None:
        try:
            self._take_event(event)
        except Exception:
            # The host's own code, as in `conversation`.
            logger.exception("! whoever is told of questions failed at %s", type(event).__name__)

    def _warn(self, server: str, text: str) -> None:
        logger.warning("[MCP:%s] %s", server, text)
        self._report(QuestionWarned(server, text))
