"""Owns what a strict server answers to one message, in both eras: a pure core that judges the client as it goes.

What this is not: what the server offers (`scripted` declares that), nor how bytes arrive.

Theory. A `Conversation` is one client as seen from the server: a stdio pipe, a memory link, a legacy wire session, or a
single POST of the modern era. `receive` takes one JSON text and returns `Action` values; whoever owns the wire performs
them. What a client does against the rules is answered as the rules say *and* noted in `violations`, so that a test can
assert that there are none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Protocol

from attrs import field

from mcp_actors.testing.words import (
    CACHEABLE,
    HEADER_MISMATCH,
    HTTP_STATUS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY_REVISIONS,
    LISTENABLE,
    LISTS,
    LOG_LEVELS,
    META,
    METHOD_NOT_FOUND,
    METHODS,
    MODERN_REVISIONS,
    PARSE_ERROR,
    UNSUPPORTED_REVISION,
    Cancel,
    Listen,
    Resolve,
    Run,
    Say,
    error_answer,
)
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from mcp_actors.errors import RpcError
    from mcp_actors.testing.words import Action, Message, MessageId

__all__ = ["Conversation", "Offer", "is_modern_request", "parse"]

# How many ids of a legacy conversation are remembered.
MAX_USED_IDS: Final = 100_000


class Offer(Protocol):
    """What a conversation asks of the server that it belongs to."""

    revisions: Sequence[str]
    instructions: str | None
    page_size: int | None
    ttl_ms: int
    left_out: Collection[str]
    violations: list[str]

    @property
    def info(self) -> Message:
        """What it says of itself: name and version."""
        ...

    def record(self, message: Message) -> None:
        """Keep a message for the assertions of a test."""

    def capabilities(self) -> Message:
        """Capabilities as declared now."""
        ...

    def items(self, method: str) -> Sequence[Message]:
        """Items of a list method, in their order."""
        ...

    def scripted(self, method: str, request_id: MessageId | None) -> tuple[Action, ...] | None:
        """What a test ordered for this message; None: nothing."""
        ...


def parse(raw: bytes) -> object:
    """Decode JSON by the letter: UTF-8 and no NaN.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(raw.decode(), parse_constant=_refuse_constant)
    except RecursionError as exc:
        raise ValueError("nests too deep") from exc


def is_modern_request(revisions: Sequence[str], method: str, params: Message) -> bool:
    """Which era a request speaks, to a server of these revisions: how it opens decides (spec_client 3.7)."""
    if not _speak(revisions, MODERN_REVISIONS):
        return False
    speaks_legacy = _speak(revisions, LEGACY_REVISIONS)
    meta = params.get("_meta")
    is_enveloped = isinstance(meta, dict) and META + "protocolVersion" in meta
    if method == "initialize":
        return is_enveloped and not speaks_legacy
    return is_enveloped or not speaks_legacy or method in {"server/discover", "subscriptions/listen"}


def _speak(spoken: Sequence[str], revisions: Sequence[str]) -> bool:
    return any(revision in spoken for revision in revisions)


@define(eq=False)
class Conversation:
    """One client. Every method is synchronous and raises nothing for what the client did."""

    offer: Offer
    # Negotiated legacy revision; None before `initialize`.
    revision: str | None = None
    # Whether `notifications/initialized` came.
    is_ready: bool = False
    # Whether a discover was answered here: the client knows that we are modern.
    is_known_modern: bool = False
    client_capabilities: Message = field(factory=dict)
    client_info: Message = field(factory=dict)
    # Set by logging/setLevel; messages below it are not sent.
    log_level: str = "debug"
    # Wires with headers: says what is wrong with them for this modern message, or None (B02).
    header_check: Callable[[Message], str | None] | None = None
    # Resource URIs of resources/subscribe.
    subscriptions: set[str] = field(factory=set)
    # Ids of this legacy conversation, oldest first; at most MAX_USED_IDS.
    _used_ids: dict[tuple[type, MessageId], None] = field(factory=dict)

    # ── receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, raw: bytes) -> list[Action]:
        """Judge one JSON text and say what to do about it, in order."""
        try:
            message = parse(raw)
        except ValueError as exc:
            self._note(f"sent what is not JSON: {exc}")
            return [Say(error_answer(None, PARSE_ERROR, "parse error"), 400)]
        if isinstance(message, list) and message and self.revision == "2025-03-26":
            return [action for part in message for action in self.receive_message(part)]
        return self.receive_message(message)

    def receive_message(self, message: object) -> list[Action]:
        """The same for a decoded message."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._note(f"sent no JSON-RPC 2.0 message: {str(message)[:80]}")
            return [Say(error_answer(None, INVALID_REQUEST, "not a JSON-RPC 2.0 message"), 400)]
        self.offer.record(message)
        request_id, method = message.get("id"), message.get("method")
        if method is None:
            return self._receive_answer(message)
        if "id" in message and (not isinstance(request_id, int | str) or isinstance(request_id, bool)):
            self._note(f"used {request_id!r} as an id")
            return [Say(error_answer(None, INVALID_REQUEST, "id must be a string or an integer"), 400)]
        params = message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            self._note(f"sent a malformed {method!r}")
            return [Say(error_answer(request_id, INVALID_REQUEST, "method must be text and params an object"), 400)]
        scripted = self.offer.scripted(method, request_id)
        if scripted is not None:
            return list(scripted)
        if request_id is None:
            return self._receive_notification(method, params)
        try:
            return self._receive_request(message)
        except _Refusal as refusal:
            return [refusal.action(request_id)]

    def _receive_answer(self, message: Message) -> list[Action]:
        if self.revision is None:
            self._note("answered a server that never asks (modern)")
            return []
        if ("result" in message) == ("error" in message) or "id" not in message:
            self._note("sent an answer without exactly one of result and error, or without id")
            return []
        return [Resolve(message["id"], message)]

    def _receive_notification(self, method: str, params: Message) -> list[Action]:
        if method == "notifications/initialized":
            if self.revision is None or self.is_ready:
                self._note("sent notifications/initialized out of place")
            self.is_ready = True
        elif method == "notifications/cancelled" and "requestId" in params:
            return [Cancel(params["requestId"])]
        elif method not in {"notifications/progress", "notifications/roots/list_changed"}:
            self._note(f"sent an unknown or malformed notification: {method}")
        return []

    def _receive_request(self, message: Message) -> list[Action]:
        request_id, method, params = message["id"], message["method"], message.get("params", {})
        if is_modern_request(self.offer.revisions, method, params):
            return self._receive_modern(message)
        key = (type(request_id), request_id)
        if key in self._used_ids:
            self._note(f"used the id {request_id!r} twice")
        self._used_ids[key] = None
        if len(self._used_ids) > MAX_USED_IDS:
            del self._used_ids[next(iter(self._used_ids))]
        return self._receive_legacy(request_id, method, params)

    # ── modern ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive_modern(self, message: Message) -> list[Action]:
        """Source: MCP 2026-07-28, spec_client 3.1 and 13.2: the order of the checks is the order of the text."""
        request_id, method, params = message["id"], message["method"], message.get("params", {})
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        revision = meta.get(META + "protocolVersion")
        if not isinstance(revision, str) or not isinstance(meta.get(META + "clientCapabilities"), dict):
            text = "_meta lacks protocolVersion or clientCapabilities"
            raise self._refuse(INVALID_PARAMS, text, status=400, note=f"sent {method} without its _meta")
        if revision not in self.offer.revisions or revision not in MODERN_REVISIONS:
            raise self._wrong_revision(revision)
        info = meta.get(META + "clientInfo")
        if not (isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)):
            self._note(f"{method} without clientInfo (SHOULD)")
        mismatch = self.header_check(message) if self.header_check else None
        if mismatch is not None:
            raise self._refuse(HEADER_MISMATCH, mismatch, note=f"sent {method} with a wrong header: {mismatch}")
        self._check_offered(method, "modern")
        if method == "server/discover":
            self.is_known_modern = True
            result = {"supportedVersions": list(self.offer.revisions), **self._self_description()}
            return [Say(self.answer(request_id, method, result, is_modern=True))]
        if method == "subscriptions/listen":
            wanted = params.get("notifications")
            if not isinstance(wanted, dict):
                raise self._refuse(INVALID_PARAMS, "notifications must be an object")
            return [Listen(request_id, self._honoured(wanted))]
        return self._receive_work(request_id, method, params, is_modern=True)

    # ── legacy ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive_legacy(self, request_id: MessageId, method: str, params: Message) -> list[Action]:
        if method == "initialize":
            return [Say(self.answer(request_id, method, self._initialize(params), is_modern=False))]
        if method == "ping":
            return [Say(self.answer(request_id, method, {}, is_modern=False))]
        if self.revision is None:
            # A probe with server/discover is how a client finds out: no violation (spec_client 3.4).
            if method == "server/discover":
                raise self._refuse(METHOD_NOT_FOUND, "method not found: server/discover")
            raise self._refuse(INVALID_REQUEST, "not initialized", note=f"sent {method} before initialize")
        if not self.is_ready:
            self._note(f"sent {method} before notifications/initialized")
        self._check_offered(method, "legacy")
        if method == "logging/setLevel":
            if params.get("level") not in LOG_LEVELS:
                raise self._refuse(INVALID_PARAMS, "unknown log level")
            self.log_level = params["level"]
        elif method in {"resources/subscribe", "resources/unsubscribe"}:
            uri = params.get("uri")
            if not isinstance(uri, str):
                raise self._refuse(INVALID_PARAMS, "uri must be text")
            (self.subscriptions.add if method == "resources/subscribe" else self.subscriptions.discard)(uri)
        else:
            return self._receive_work(request_id, method, params, is_modern=False)
        return [Say(self.answer(request_id, method, {}, is_modern=False))]

    def _initialize(self, params: Message) -> Message:
        """Source: MCP 2025-11-25, lifecycle: the same version if supported, else another one."""
        wanted, info = params.get("protocolVersion"), params.get("clientInfo")
        if not _speak(self.offer.revisions, LEGACY_REVISIONS) or self.is_known_modern:
            if self.is_known_modern:
                self._note("sent initialize to a server that it knows to be modern")
            raise self._wrong_revision(str(wanted))
        if self.revision is not None:
            raise self._refuse(INVALID_REQUEST, "already initialized", note="sent initialize twice")
        capabilities = params.get("capabilities")
        if not isinstance(wanted, str) or not isinstance(capabilities, dict) or not isinstance(info, dict):
            raise self._refuse(INVALID_PARAMS, "initialize lacks a field", note="sent a malformed initialize")
        if not isinstance(info.get("name"), str) or not isinstance(info.get("version"), str):
            raise self._refuse(INVALID_PARAMS, "clientInfo lacks a field", note="sent a malformed clientInfo")
        spoken = [revision for revision in LEGACY_REVISIONS if revision in self.offer.revisions]
        self.revision = wanted if wanted in spoken else spoken[0]
        self.client_capabilities, self.client_info = capabilities, info
        return {"protocolVersion": self.revision, "serverInfo": self.offer.info, **self._self_description()}

    # ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive_work(self, request_id: MessageId, method: str, params: Message, *, is_modern: bool) -> list[Action]:
        key = LISTS.get(method)
        if key is None:
            return [Run(request_id, method, params, is_modern)]
        page = self._page(method, key, params.get("cursor"))
        return [Say(self.answer(request_id, method, page, is_modern=is_modern))]

    def _page(self, method: str, key: str, cursor: object) -> Message:
        items = self.offer.items(method)
        size = self.offer.page_size or max(len(items), 1)
        starts = {f"page-{start}": start for start in range(size, len(items), size)}
        if cursor is not None and cursor not in starts:
            raise self._refuse(INVALID_PARAMS, "invalid cursor", note=f"sent an unknown cursor to {method}")
        start = starts[str(cursor)] if cursor is not None else 0
        page: Message = {key: list(items[start : start + size])}
        if start + size < len(items):
            page["nextCursor"] = f"page-{start + size}"
        return page

    def _honoured(self, wanted: Message) -> Message:
        """What of a subscription's filter is taken."""
        offered, left_out = self.offer.capabilities(), self.offer.left_out
        honoured: Message = {}
        for key, value in wanted.items():
            kept = [uri for uri in value if uri not in left_out] if isinstance(value, list) else value
            if kept and key not in left_out and LISTENABLE.get(key, ("",))[0] in offered:
                honoured[key] = kept
        return honoured

    def _check_offered(self, method: str, era: str) -> None:
        capability, eras = METHODS.get(method, (None, frozenset()))
        if era not in eras:
            raise self._refuse(METHOD_NOT_FOUND, f"method not found: {method}")
        if capability is not None and capability not in self.offer.capabilities():
            note = f"sent {method} to a server without {capability}"
            raise self._refuse(METHOD_NOT_FOUND, f"method not found: {method}", note=note)

    def _self_description(self) -> Message:
        description: Message = {"capabilities": self.offer.capabilities()}
        if self.offer.instructions is not None:
            description["instructions"] = self.offer.instructions
        return description

    def answer(self, request_id: MessageId, method: str, result: Message, *, is_modern: bool) -> Message:
        """The answer with this result, dressed for its era (spec_client 13.2)."""
        if is_modern:
            result = {"resultType": "complete", **result}
            result["_meta"] = {META + "serverInfo": self.offer.info, **result.get("_meta", {})}
            if method in CACHEABLE and result["resultType"] == "complete":
                result = {"ttlMs": self.offer.ttl_ms, "cacheScope": "private", **result}
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    def refusal(self, request_id: MessageId, error: RpcError, *, is_modern: bool) -> Say:
        """The answer with this error."""
        status = HTTP_STATUS.get(error.code, 200) if is_modern else 200
        return Say(error_answer(request_id, error.code, error.message, error.data), status)

    def _refuse(self, code: int, text: str, *, status: int | None = None, note: str | None = None) -> _Refusal:
        if note is not None:
            self._note(note)
        return _Refusal(code, text, None, HTTP_STATUS.get(code, 200) if status is None else status)

    def _wrong_revision(self, requested: str) -> _Refusal:
        data = {"supported": list(self.offer.revisions), "requested": requested}
        return _Refusal(UNSUPPORTED_REVISION, "unsupported protocol version", data, 400)

    def _note(self, what: str) -> None:
        self.offer.violations.append(what)


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


class _Refusal(Exception):
    """An error answer on its way up."""

    def __init__(self, code: int, text: str, data: object, status: int) -> None:
        super().__init__(text)
        self.code, self.text, self.data, self.status = code, text, data, status

    def action(self, request_id: MessageId) -> Say:
        return Say(error_answer(request_id, self.code, self.text, self.data), self.status)
