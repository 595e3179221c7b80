"""Owns how our messages look in each era: `_meta` in modern, mirrored headers on HTTP, ids as given.

What this is not: the decision to send one; that is `session`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.features import foreign_methods, refuse_method
from mcp_actors.protocol.jsonrpc import encode_answer, encode_error, encode_notification, encode_request
from mcp_actors.protocol.types import Frame
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.revisions import Revision
    from mcp_actors.protocol.types import RequestId

__all__ = ["META_PREFIX", "VERSION_HEADER", "Composer", "compose_initialize", "encode_header_value"]

META_PREFIX: Final = "io.modelcontextprotocol/"
META_VERSION: Final = META_PREFIX + "protocolVersion"
META_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
META_CLIENT: Final = META_PREFIX + "clientInfo"
META_LOG_LEVEL: Final = META_PREFIX + "logLevel"
VERSION_HEADER: Final = "MCP-Protocol-Version"

# Maps method -> the parameter that Mcp-Name mirrors (B02, spec_client 5.2).
_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
# Nothing that a model or a program means to say is larger; half of what the wires take in one frame (S210).
MAX_REQUEST_BYTES: Final = 32 * 1024 * 1024
# W3C trace context: four fields, of which later versions may have more. What is no such text is no header.
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,200})?")
_TRACESTATE: Final = re.compile(r"[!-~](?:[ -~]{0,4094}[!-~])?")
_CODED_HEAD: Final = "=?base64?"
_CODED_TAIL: Final = "?="


def encode_header_value(text: str) -> str:
    """Write `text` as a header value: plain where that is safe, else in the base64 form.

    Source:
        MCP 2026-07-28, streamable HTTP, "Value Encoding"; B03.
    """
    is_plain = (
        text.isascii()
        and text.isprintable()  # of ASCII: exactly 0x20 to 0x7E
        and text.strip() == text
        and not (text.startswith(_CODED_HEAD) and text.endswith(_CODED_TAIL))
    )
    if is_plain:
        return text
    coded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return f"{_CODED_HEAD}{coded}{_CODED_TAIL}"


def compose_initialize(
    request_id: RequestId, revision: str, capabilities: JsonObject, client_info: JsonObject
) -> Frame:
    """Make the legacy handshake request. It carries no trace of a probe that came before (A07)."""
    params: JsonObject = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client_info}
    return Frame(data=encode_request(request_id, "initialize", params), request_id=request_id, method="initialize")


def _trace_headers(params: JsonObject | None) -> tuple[tuple[str, str], ...]:
    """The trace context that the caller put in ``_meta``, as what stands between us and the server reads it (S095)."""
    own = params.get("_meta") if params else None
    if not isinstance(own, Mapping):
        return ()
    parent, state = own.get("traceparent"), own.get("tracestate")
    if not isinstance(parent, str) or _TRACEPARENT.fullmatch(parent) is None:
        return ()
    if not isinstance(state, str) or _TRACESTATE.fullmatch(state) is None:
        return (("traceparent", parent),)
    return ("traceparent", parent), ("tracestate", state)


@define(eq=False)
class Composer:
    """Makes frames for one revision. Holds no state of the conversation."""

    revision: Revision
    is_http: bool
    capabilities: JsonObject
    client_info: JsonObject
    # The least severe log message that every modern request wants; None for none (F13).
    log_level: str | None = None
    max_request_bytes: int = MAX_REQUEST_BYTES
    # What every modern request says of us (B01), empty in legacy; maps `_meta` key -> value.
    _meta: Mapping[str, Json] = field(init=False, repr=False)
    # What every message says on HTTP.
    _headers: tuple[tuple[str, str], ...] = field(init=False, repr=False)
    # Methods of other revisions.
    _foreign: frozenset[str] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._meta = {}
        if self.revision.is_modern:
            self._meta = {
                META_VERSION: self.revision.name,
                META_CAPABILITIES: self.capabilities,
                META_CLIENT: self.client_info,
                **({} if self.log_level is None else {META_LOG_LEVEL: self.log_level}),
            }
        self._foreign = foreign_methods(self.revision.name)
        # The header is a MUST from 2025-06-18 on and harmless before (C08).
        self._headers = ((VERSION_HEADER, self.revision.name),) if self.is_http else ()

    def compose_request(
        self,
        request_id: RequestId,
        method: str,
        params: JsonObject | None,
        *,
        wants_progress: bool = False,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Frame:
        """Make a request; `headers` are further mirrored values, kept on HTTP only.

        Raises:
            LocalProtocolError: the revision has no such method (F14), or `params` are no JSON or too large (S210).
        """
        if method in self._foreign:
            raise LocalProtocolError(reason=refuse_method(method, self.revision.name) or method)
        sent = params
        # "Every request MUST" carry `_meta` in modern, so params is never absent there.
        if wants_progress or self._meta:
            meta = self._request_meta(params)
            if wants_progress:
                # Our ids are unique among active requests, so they serve as tokens (B16).
                meta = {**meta, "progressToken": request_id}
            sent = {**(params or {}), "_meta": meta}
        mirrored = (*self._mirror(method, params, headers), *_trace_headers(params)) if self.is_http else ()
        data = encode_request(request_id, method, sent)
        if len(data) > self.max_request_bytes:
            reason = f"the request {method} has {len(data)} bytes, and {self.max_request_bytes} are the most"
            raise LocalProtocolError(reason=reason)
        return Frame(data, request_id, method, mirrored)

    def compose_notification(self, method: str, params: JsonObject | None) -> Frame:
        """Make a notification.

        Raises:
            LocalProtocolError: the revision has no such notification (F14), or `params` are no JSON.
        """
        if method in self._foreign:
            raise LocalProtocolError(reason=refuse_method(method, self.revision.name) or method)
        mirrored = self._mirror(method, params, ()) if self.is_http else ()
        return Frame(data=encode_notification(method, params), method=method, headers=mirrored)

    def compose_answer(self, request_id: RequestId, result: JsonObject) -> Frame:
        """Make the successful answer to a request of the server (legacy only)."""
        return Frame(data=encode_answer(request_id, result), headers=self._headers)

    def compose_error(self, request_id: RequestId, code: int, message: str) -> Frame:
        """Make the refusal of a request of the server (legacy only)."""
        return Frame(data=encode_error(request_id, code, message), headers=self._headers)

    def _request_meta(self, params: JsonObject | None) -> Mapping[str, Json]:
        # What the caller has in it goes along bare: `traceparent`, `tracestate`, `baggage` (F16).
        own = params.get("_meta") if params else None
        if own is None or not isinstance(own, Mapping):
            return self._meta
        if not self.revision.is_modern:
            return own
        # A call may withhold a capability or add a log level, but the version must equal the header's.
        return {**self._meta, **own, META_VERSION: self.revision.name}

    def _mirror(
        self, method: str, params: JsonObject | None, more: Sequence[tuple[str, str]]
    ) -> tuple[tuple[str, str], ...]:
        if not self.revision.is_modern:
            return self._headers
        named_by = _NAMED_BY.get(method)
        name = params.get(named_by) if params and named_by else None
        if isinstance(name, str):
            return (*self._headers, ("Mcp-Method", method), ("Mcp-Name", encode_header_value(name)), *more)
        return (*self._headers, ("Mcp-Method", method), *more)
