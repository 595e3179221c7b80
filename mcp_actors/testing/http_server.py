"""Owns the streamable HTTP face of scripted servers, in both eras, on loopback: sessions, streams, header checks.

What this is not: HTTP itself (`http_doorway`), nor the rules of MCP (`rulebook`).

As a process, for many servers at once: ``python -m mcp_actors.testing.http_server --servers N [--tools N]
[--answers auto|json|sse] [--era legacy|modern|both]`` prints its port on the first line, serves ``/m/0`` to ``/m/N-1``
and exits at end-of-file on standard input.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import trio
from attrs import field

from mcp_actors.groups import bare_errors
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.testing.http_doorway import (
    HttpAnswer,
    HttpRequest,
    Responder,
    encode_event,
    open_http_doorway,
)
from mcp_actors.testing.http_headers import find_mismatch
from mcp_actors.testing.http_voices import ExchangeVoice, HttpOptions, SessionVoice, keep_open
from mcp_actors.testing.live_client import LiveClient
from mcp_actors.testing.rulebook import Conversation, is_modern_request, parse
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.testing.words import LEGACY_REVISIONS, Die, Listen, Run, Say, SayRaw, error_answer
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcp_actors.testing.http_doorway import Stream
    from mcp_actors.testing.words import Action, Message, MessageId

__all__ = ["HttpAnswer", "HttpOptions", "HttpRequest", "main", "open_http_server"]

# Server for the last part of ``/m/ID``; None: there is none, 404.
Factory: TypeAlias = Callable[[str], "ScriptedServer | None"]

SESSION_HEADER: Final = "mcp-session-id"


@asynccontextmanager
async def open_http_server(
    server: ScriptedServer | Factory, *, port: int = 0, options: HttpOptions | None = None
) -> AsyncGenerator[str, None]:
    """Serve over streamable HTTP on 127.0.0.1 for the time of the block.

    Yields:
        For one server its URL. For a factory the URL before the ID: the server of ``f"{url}/{ID}"`` is ``factory(ID)``,
        asked once for each ID.

    Cancellation:
        On exit every connection is closed and every handler cancelled.
    """
    options = options or HttpOptions()
    with bare_errors():
        async with trio.open_nursery() as nursery:
            house = _House(server, options, nursery)
            try:
                async with open_http_doorway(house.decide, port=port, limits=options.limits) as bound:
                    yield f"http://127.0.0.1:{bound}/{'mcp' if isinstance(server, ScriptedServer) else 'm'}"
            finally:
                house.close()
                nursery.cancel_scope.cancel()


@define(eq=False)
class _House:
    """All servers of one port, path -> face."""

    server: ScriptedServer | Factory
    options: HttpOptions
    nursery: trio.Nursery
    _faces: dict[str, _Face] = field(factory=dict)

    def decide(self, request: HttpRequest) -> HttpAnswer | Stream:
        if self.options.intercept is not None:
            answer = self.options.intercept(request)
            if answer is not None:
                return answer
        face = self._faces.get(request.path) or self._open_face(request.path)
        return face.decide(request) if face is not None else HttpAnswer(404)

    def _open_face(self, path: str) -> _Face | None:
        if isinstance(self.server, ScriptedServer):
            server = self.server if path == "/mcp" else None
        else:
            head, _, server_id = path.rpartition("/")
            server = self.server(server_id) if head == "/m" and server_id else None
        if server is None:
            return None
        face = self._faces[path] = _Face(server, self.options, self.nursery)
        return face

    def close(self) -> None:
        for face in self._faces.values():
            for session_id in list(face.sessions):
                face.end_session(session_id)


@define(eq=False)
class _Session:
    """One legacy wire session."""

    client: LiveClient
    voice: SessionVoice
    leave: Callable[[], None]
    has_stream: bool = False


@define(eq=False)
class _Face:
    """One endpoint."""

    server: ScriptedServer
    options: HttpOptions
    nursery: trio.Nursery
    # Wire session id -> session.
    sessions: dict[str, _Session] = field(factory=dict)

    def decide(self, request: HttpRequest) -> HttpAnswer | Stream:
        """Look at one request."""
        if request.method == "POST":
            return self._decide_post(request)
        if not self._speaks_legacy() or not self.options.has_sessions or request.method not in {"GET", "DELETE"}:
            return HttpAnswer(405, headers=(("allow", "POST"),))
        session_id = request.headers.get(SESSION_HEADER)
        if request.method == "GET" and not self.options.has_get_stream:
            return HttpAnswer(405, headers=(("allow", "POST, DELETE"),))
        if session_id not in self.sessions:
            return HttpAnswer(400 if session_id is None else 404)
        if request.method == "DELETE":
            self.end_session(session_id)
            return HttpAnswer(200)
        return self._decide_get(request, self.sessions[session_id])

    def _speaks_legacy(self) -> bool:
        return any(revision in self.server.revisions for revision in LEGACY_REVISIONS)

    def end_session(self, session_id: str) -> None:
        """Forget a session, if it is there: its requests are stopped and its stream ends."""
        session = self.sessions.pop(session_id, None)
        if session is None:
            return
        session.leave()
        session.voice.close()

    # ── POST ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _decide_post(self, request: HttpRequest) -> HttpAnswer | Stream:
        refusal = self._refuse_format(request)
        if refusal is not None:
            return refusal
        try:
            message: Any = parse(request.body)
        except ValueError:
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("params", {}), dict):
            return self._answer_now(Conversation(self.server).receive(request.body))
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            if is_modern_request(self.server.revisions, method, message.get("params", {})):
                conversation = Conversation(self.server)
                tools = self.server.items("tools/list")
                conversation.header_check = lambda part: find_mismatch(request.headers, part, tools)
                return self._decide_modern(conversation, message)
            if method == "initialize":
                return self._decide_initialize(message)
            if self.server.has_order(method):
                return self._decide_modern(Conversation(self.server), message)
        elif not self._speaks_legacy():
            self.server.record(message)
            self.server.violations.append(
                f"posted {method or 'an answer'} to a modern server: there is no such message"
            )
            return HttpAnswer(202)
        return self._decide_legacy(request, message)

    def _refuse_format(self, request: HttpRequest) -> HttpAnswer | None:
        """Source: spec_client 5.1: Accept lists both types, the body is JSON."""
        accept = request.headers.get("accept", "")
        if not ("*/*" in accept or ("application/json" in accept and "text/event-stream" in accept)):
            self.server.violations.append(f"sent a POST with Accept: {accept!r}")
            return _error(406, -32000, "Accept must list application/json and text/event-stream")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            self.server.violations.append("sent a POST that is not application/json")
            return _error(415, -32000, "Content-Type must be application/json")
        return None

    def _decide_modern(self, conversation: Conversation, message: Message) -> HttpAnswer | Stream:
        actions = conversation.receive_message(message)
        if actions and isinstance(actions[0], Run | Listen):
            return self._run_modern(conversation, actions[0])
        return self._answer_now(actions)

    def _answer_now(self, actions: Sequence[Action]) -> HttpAnswer | Stream:
        """The answer to a message that needs nothing to run; legacy notifications have no action left by now."""
        for action in actions:
            if isinstance(action, Say):
                return self._dress(encode(action.message), action.status)
            if isinstance(action, SayRaw):
                return self._dress(action.data, 200)
            if isinstance(action, Die):
                self.server.died_with = action.status
                return _abort
        return _wait_for_ever

    def _dress(self, data: bytes, status: int) -> HttpAnswer:
        if self.options.answers == "sse" and status == 200:
            return HttpAnswer(200, encode_event(data), "text/event-stream")
        return HttpAnswer(status, data)

    def _run_modern(self, conversation: Conversation, action: Run | Listen) -> Stream:
        async def run(responder: Responder) -> None:
            voice = ExchangeVoice(responder, self.options)
            with self.server.attach(voice, conversation) as client:
                if isinstance(action, Run):
                    await client.run(action, voice)
                    return
                ended = await client.open_listen(action, voice)
                await keep_open(responder, ended, self.options.keep_alive)

        return run

    # ── legacy ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _decide_initialize(self, message: Message) -> HttpAnswer | Stream:
        conversation = Conversation(self.server)
        actions = conversation.receive_message(message)
        answer = self._answer_now(actions)
        if conversation.revision is None or not self.options.has_sessions or not isinstance(answer, HttpAnswer):
            return answer
        session_id = secrets.token_hex(16)
        stack = ExitStack()
        voice = SessionVoice()
        client = stack.enter_context(self.server.attach(voice, conversation))
        client.hang_up = lambda: self.end_session(session_id)
        self.sessions[session_id] = _Session(client, voice, stack.close)
        return HttpAnswer(answer.status, answer.body, answer.content_type, ((SESSION_HEADER, session_id),))

    def _decide_legacy(self, request: HttpRequest, message: Message) -> HttpAnswer | Stream:
        """Source: MCP 2025-11-25, transports, "Session Management"; spec_client 5.3."""
        request_id = message.get("id")
        session_id = request.headers.get(SESSION_HEADER)
        revision = request.headers.get("mcp-protocol-version")
        if revision is not None and revision not in self.server.revisions:
            if message.get("method") != "server/discover":  # the probe cannot know better
                self.server.violations.append(f"sent MCP-Protocol-Version: {revision}")
            return _error(400, -32600, f"unsupported protocol version: {revision}", request_id)
        if not self.options.has_sessions:
            conversation = Conversation(self.server, revision=revision or "2025-03-26", is_ready=True)
            return self._perform_legacy(LiveClient(conversation, SessionVoice(), self.server.work), message)
        if session_id is None:
            self.server.record(message)
            return _error(400, -32000, "Mcp-Session-Id is required", request_id)
        session = self.sessions.get(session_id)
        if session is None:
            self.server.record(message)
            return _error(404, -32001, "session not found", request_id)
        negotiated = session.client.conversation.revision
        if revision != negotiated and not (revision is None and negotiated in {"2025-03-26", "2024-11-05"}):
            self.server.violations.append(f"sent MCP-Protocol-Version {revision} on a session of {negotiated}")
        return self._perform_legacy(session.client, message)

    def _perform_legacy(self, client: LiveClient, message: Message) -> HttpAnswer | Stream:
        actions = client.conversation.receive_message(message)
        if "id" not in message or "method" not in message:
            rest = client.perform_now(actions)
            return self._answer_now(rest) if rest else HttpAnswer(202)
        if actions and isinstance(actions[0], Run):
            return self._run_legacy(client, actions[0])
        return self._answer_now(actions)

    def _run_legacy(self, client: LiveClient, action: Run) -> Stream:
        """A legacy request runs on when its client hangs up (spec_client 5.3), so it runs outside of the exchange."""

        async def run(responder: Responder) -> None:
            voice = ExchangeVoice(responder, self.options, client)
            done = trio.Event()

            async def work() -> None:
                try:
                    if not await client.run(action, voice):
                        voice.is_gone = True
                finally:
                    done.set()

            self.nursery.start_soon(work)
            try:
                await done.wait()
            finally:
                voice.is_gone = True
            if not responder.is_finished:  # cancelled: no answer will come
                await responder.start_events()
                await responder.finish()

        return run

    # ── GET ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _decide_get(self, request: HttpRequest, session: _Session) -> HttpAnswer | Stream:
        if "text/event-stream" not in request.headers.get("accept", ""):
            self.server.violations.append("sent a GET without Accept: text/event-stream")
            return HttpAnswer(406)
        if session.has_stream:
            return HttpAnswer(409)
        session.has_stream = True

        async def run(responder: Responder) -> None:
            try:
                await responder.start_events()
                await session.voice.pour(responder, self.options.keep_alive)
            finally:
                session.has_stream = False

        return run


async def _wait_for_ever(_: Responder) -> None:
    await trio.sleep_forever()


async def _abort(responder: Responder) -> None:
    await trio.lowlevel.checkpoint()
    responder.abort()


def _error(status: int, code: int, text: str, request_id: MessageId | None = None) -> HttpAnswer:
    return HttpAnswer(status, encode(error_answer(request_id, code, text)))


def main() -> None:
    """Serve many synthetic servers as a process, until end-of-file on standard input."""
    import argparse

    from mcp_actors.testing.synthetic import synthetic_server

    parser = argparse.ArgumentParser(prog="http_server", description="Synthetic MCP servers over HTTP on loopback.")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--tools", type=int, default=10)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--era", choices=["legacy", "modern", "both"], default="both")
    parser.add_argument("--answers", choices=["auto", "json", "sse"], default="auto")
    options = parser.parse_args()

    def factory(server_id: str) -> ScriptedServer | None:
        if server_id.isdecimal() and int(server_id) < options.servers:
            return synthetic_server(options.tools, era=options.era)
        return None

    async def serve() -> None:
        async with open_http_server(factory, port=options.port, options=HttpOptions(answers=options.answers)) as url:
            sys.stdout.write(f"{urlsplit(url).port}\n")
            sys.stdout.flush()
            while await trio.to_thread.run_sync(os.read, 0, 1024, abandon_on_cancel=True):
                pass

    with suppress(KeyboardInterrupt):
        trio.run(serve)


if __name__ == "__main__":
    main()
