"""Owns the requests of one server that the host's handlers answer just now: each judged, run, and ended on withdrawal.

What this is not: the handlers and what is declared for them (`host`), nor the way of an answer to the wire (`wire`).

Rules.

1. A handler runs in a task of the connection: the reader never waits for it (A16, fault 76).
2. Every request of a server gets exactly one answer; a handler that raises answers with an error (fault 75).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio

from mcp_actors.actors.host import ServerRequest
from mcp_actors.errors import LocalProtocolError, RpcError
from mcp_actors.protocol.jsonrpc import INTERNAL_ERROR, encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_actors.actors.host import WiredHost
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.types import RequestId

__all__ = ["Answering"]

logger = logging.getLogger("mcp_actors.connection")


class Answering:
    """The requests of one server that are being answered."""

    def __init__(self, server: str, host: WiredHost) -> None:
        self._server = server
        self._host = host
        # Request id -> scope of the task that answers it.
        self._scopes: dict[RequestId, trio.CancelScope] = {}
        # Found at the handshake.
        self._capabilities: JsonObject | None = None

    @property
    def capabilities(self) -> JsonObject:
        """What was declared to the server, from the handshake of this life on."""
        if self._capabilities is None:
            self._capabilities = self._host.capabilities_for(self._server)
        return self._capabilities

    @property
    def methods(self) -> frozenset[str]:
        """What there are handlers for."""
        return frozenset(self._host.handlers)

    @property
    def with_pages(self) -> Callable[[Callable[[], Awaitable[bytes]]], Awaitable[bytes]] | None:
        """The host's own way to have pages visited; None where it has none."""
        with_pages = self._host.with_pages
        return None if with_pages is None else partial(with_pages, self._server)

    def expect(self, request_id: RequestId) -> trio.CancelScope:
        """Make the scope in which a request will be answered; it may be withdrawn from now on."""
        self._scopes[request_id] = scope = trio.CancelScope()
        return scope

    async def answer(
        self, request_id: RequestId, method: str, params: JsonObject, scope: trio.CancelScope
    ) -> JsonObject | RpcError | None:
        """Answer a request of a legacy server: with a result, a refusal, or None where it was withdrawn.

        Args:
            scope: as `expect` made it.

        Source:
            F08, F11, fault 76.
        """
        from mcp_actors.protocol.question_rules import refuse_question  # few servers ever ask

        try:
            refused = refuse_question(method, params, self.capabilities)
            if refused is not None:
                return RpcError(server=self._server, code=refused.code, message=refused.reason)
            with scope:
                try:
                    return await self.result(method, params)
                except RpcError as error:
                    return error
            return None
        finally:
            if self._scopes.get(request_id) is scope:  # else the server has used the id again
                del self._scopes[request_id]

    async def result(self, method: str, params: JsonObject) -> JsonObject:
        """Run the handler of a method for a question that may be put, and judge its answer.

        Raises:
            RpcError: it refused, or failed, also by an answer that is none: of what is logged, not told to the server.

        Source:
            E13, F09, F11, fault 76.
        """
        from mcp_actors.protocol.question_rules import refuse_answer

        try:
            answer = await self._host.handlers[method](ServerRequest(self._server, method, params))
            reason = refuse_answer(method, params, answer)
            if reason is not None:
                raise LocalProtocolError(server=self._server, reason=reason)
            encode(answer)  # what is no JSON fails here, where it costs nobody else
        except RpcError:
            raise
        except Exception as error:
            logger.exception("[MCP:%s] handler of %s failed", self._server, method)
            raise RpcError(server=self._server, code=INTERNAL_ERROR, message="the client could not answer") from error
        return answer

    def withdraw(self, request_id: RequestId) -> None:
        """The server no longer wants the answer."""
        scope = self._scopes.get(request_id)
        if scope is not None:
            scope.cancel()
