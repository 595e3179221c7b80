"""Owns the answering of what servers ask: elicitation, sampling and roots, and the pages to visit that -32042 names.

What this is not: a session. A legacy request and an input request of a modern result look the same here: a method and
params in, a result or an error out.

Rule 1: only what somebody here answers is declared (S110). What is asked and not declared never comes here
(`actors.answering`).
Rule 2: the host's own code may fail; then the server gets an error, and nothing else suffers (fault 76).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve

from mcp_actors.actors.rounds import visit_and_repeat
from mcp_actors.elicitation.handlers import (
    REJECTED,
    Deprecations,
    SamplingLimits,
    read_roots,
    read_sampling,
    roots_result,
    sampling_result,
)
from mcp_actors.elicitation.requests import (
    Action,
    Answer,
    Kind,
    Stage,
    capabilities,
    read_elicitation,
    read_url_elicitations,
)
from mcp_actors.errors import ElicitationDeclined, RpcError
from mcp_actors.protocol.features import ELICITATION, ROOTS, SAMPLING
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR
from mcp_actors.protocol.question_rules import Refused
from mcp_actors.tools.sanitise import clean_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingRequest
    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import RequestId
    from mcp_actors.questions.elicitor import Elicitor

__all__ = ["Asking"]

logger = logging.getLogger("mcp_actors.asking")

METHODS: Final = {Kind.FORM: ELICITATION, Kind.URL: ELICITATION, Kind.SAMPLING: SAMPLING, Kind.ROOTS: ROOTS}


class Asking:
    """Answers what servers ask. Called by the connections, each question in a task of its own."""

    def __init__(
        self,
        elicitor: Elicitor | None = None,
        *,
        sample: Callable[[SamplingRequest], Awaitable[SamplingAnswer | None]] | None = None,
        limits: SamplingLimits | None = None,
        roots: Iterable[Root] | None = None,
    ) -> None:
        """Say who answers what.

        Args:
            elicitor: answers forms and URLs; None: elicitation is not declared.
            sample: the host's model; None from it rejects the request. None: sampling is not declared.
            limits: what a server gets of it.
            roots: what servers may use; None: roots are not declared.

        Raises:
            ConfigError: one of the roots is none.
        """
        self._elicitor = elicitor
        self._sample = sample
        self._limits = limits or SamplingLimits()
        self._roots = None if roots is None else read_roots(roots)
        answered = {Kind.FORM: elicitor, Kind.URL: elicitor, Kind.SAMPLING: sample, Kind.ROOTS: self._roots}
        self.kinds = frozenset(kind for kind, somebody in answered.items() if somebody is not None)
        self._deprecations = Deprecations()
        # Maps server -> how many of its sampling requests may run; and how many are open.
        self._turns: dict[str, trio.Semaphore] = {}
        self._open: dict[str, int] = {}

    def set_roots(self, roots: Iterable[Root]) -> bool:
        """List others from now on; false when they are those already. Raises `ConfigError`: one of them is none."""
        known = read_roots(roots)
        is_news, self._roots = known != self._roots, known
        return is_news

    @property
    def elicitor(self) -> Elicitor | None:
        """Who gets forms and URLs answered."""
        return self._elicitor

    @property
    def capabilities(self) -> JsonObject:
        """What to declare."""
        return capabilities(self.kinds, has_sampling_tools=self._limits.has_tools)

    @property
    def methods(self) -> frozenset[str]:
        """The requests of servers that are answered here."""
        return frozenset(METHODS[kind] for kind in self.kinds)

    async def answer(
        self,
        server: str,
        key: RequestId,
        method: str,
        params: JsonObject,
    ) -> JsonObject | Refused:
        """Get the answer to one request of a server, or to one input request of a result.

        Args:
            server: raw name of the server.
            key: the request's id, or its key in the result.
            method: one of `methods`.
            params: as sent, and not refused by `question_rules.refuse_question`.

        Returns:
            The bare result, or the error.

        Cancellation:
            Safe. A question is withdrawn and its dialog closed.

        Source:
            S282-S297 (S285: known before the handshake), fault 76.
        """
        if method == ELICITATION:
            question = read_elicitation(server, key, params, clean=clean_text)
            if isinstance(question, Refused):
                return question
            assert self._elicitor is not None
            outcome = await self._elicitor.ask(question)
            return outcome.result() if isinstance(outcome, Answer) else outcome
        self._note_deprecated(server, method)
        if method == ROOTS:
            return roots_result(self._roots or ())
        return await self._answer_sampling(server, params)

    def _note_deprecated(self, server: str, method: str) -> None:
        note = self._deprecations.note(server, method)
        if note is not None:
            logger.warning("[MCP:%s] %s", server, note)

    # ── sampling ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer_sampling(self, server: str, params: JsonObject) -> JsonObject | Refused:
        request = read_sampling(server, params, self._limits)
        if isinstance(request, Refused):
            return request
        if self._open.get(server, 0) >= self._limits.max_open:
            return Refused(INTERNAL_ERROR, "Too many sampling requests are open")
        turn = self._turns.setdefault(server, trio.Semaphore(self._limits.max_concurrent))
        self._open[server] = self._open.get(server, 0) + 1
        try:
            async with turn:
                return await self._run_sampling(request)
        finally:
            self._open[server] -= 1
            if not self._open[server]:
                del self._open[server], self._turns[server]

    async def _run_sampling(self, request: SamplingRequest) -> JsonObject | Refused:
        assert self._sample is not None
        try:
            with trio.fail_after(self._limits.timeout):
                answer = await self._sample(request)
            return REJECTED if answer is None else sampling_result(answer)
        except Exception:
            # The host's own code: whatever it raises is an error for the server (fault 76).
            logger.exception("[MCP:%s] ! the sampling handler failed", request.server)
            return Refused(INTERNAL_ERROR, "the client failed to sample")

    # ── -32042 ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def with_url_rounds(
        self,
        server: str,
        attempt: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        """Make a call; where the server first wants a person on its pages, send them there and make it again.

        Args:
            server: raw name of the server.
            attempt: makes the call, once for each round.

        Returns:
            What `attempt` returned.

        Raises:
            ElicitationDeclined: the person did not want to, or never came back.
            RpcError: the call's error, also when it asks again after the last round.
            (and whatever else `attempt` raises.)

        Cancellation:
            Safe. An open question is withdrawn.

        Source:
            S207, S290, F10.
        """

        def pages_of(error: RpcError) -> tuple[InputRequest, ...] | None:
            return read_url_elicitations(server, error, kinds=self.kinds, clean=clean_text)

        async def visit(question: InputRequest, _: RpcError) -> None:
            for stage in (Stage.FIRST, Stage.COMPLETION):
                await self._require(evolve(question, stage=stage))

        return await visit_and_repeat(attempt, pages_of, visit)

    async def _require(self, question: InputRequest) -> None:
        assert self._elicitor is not None
        outcome = await self._elicitor.ask(question)
        action = outcome.action if isinstance(outcome, Answer) else Action.CANCEL
        if action is not Action.ACCEPT:
            raise ElicitationDeclined(server=question.server, action=str(action))
