"""Tests of what refusals mean: lost sessions, wrong URLs, other revisions."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RpcError, TransportClosed, UnsupportedRevision
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.recovery import (
    SessionExpiry,
    is_expired,
    is_outgrown,
    is_version_error,
    renegotiated,
    unsupported,
)
from mcp_actors.protocol.types import Era, Refusal

DUAL, SPEC = SessionExpiry.DUAL, SessionExpiry.SPEC


def refusal(status: int, body: object = b"", *, had_session: bool = True, **more) -> Refusal:
    raw = body if isinstance(body, bytes) else encode(body)
    return Refusal(status, body=raw, had_session=had_session, **more)


def rpc(code: int, message: str = "") -> dict:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


@pytest.mark.parametrize("has_served", [False, True])
@pytest.mark.parametrize(
    ("given", "dual", "spec"),
    [
        (refusal(404, rpc(-32001, "Session not found")), True, True),
        (refusal(404, b'Error POSTing: {"code":-32001, ...'), True, True),
        (refusal(404, b'{"error":{"code" :\n\t-32001'), True, True),
        (refusal(404, b'{"error":{"code":-320011'), False, True),
        (refusal(404), False, True),
        (refusal(404, b"<html>Not Found</html>", content_type="text/html"), False, True),
        (refusal(404, rpc(-32000, "no")), False, True),
        (refusal(404, rpc(-32601, "Method not found")), False, True),
        (refusal(404, rpc(-32001), had_session=False), False, False),
        (refusal(404, had_session=False), False, False),
        (refusal(400, rpc(-32001)), False, False),
        (refusal(500, rpc(-32001)), False, False),
        (refusal(200, rpc(-32001)), False, False),
        (refusal(410), False, False),
    ],
)
def test_the_double_signal_and_the_spec_rule(given, dual, spec, has_served):
    """404 with -32001 means a lost session; 404 alone does under ``spec``, with our id; else nothing (S405, S406)."""
    assert is_expired(given, DUAL, has_served=has_served) is dual
    assert is_expired(given, SPEC, has_served=has_served) is spec


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (refusal(400, rpc(-32000, "Bad Request: No valid session ID provided")), True),
        (refusal(400, rpc(-32000, "Bad Request: Server not initialized")), True),
        (refusal(401, rpc(-32000, "Unknown session")), True),
        (refusal(404, rpc(-32600, "Session not found")), True),
        (refusal(404, b"session not found\n", content_type="text/plain"), True),
        (refusal(404, b"session not found\n", content_type="text/html"), False),
        (refusal(404, b"session " * 100, content_type="text/plain"), False),
        (refusal(400, b"Bad Request: No valid session ID provided"), True),
        (refusal(401, b"Unauthorized: Session not found"), True),
        (refusal(401, b"Unauthorized"), False),
        (refusal(401, b"Unauthorized: Session not found", challenge="Bearer"), False),
        (refusal(401, rpc(-32000, "Unknown session"), challenge="Bearer"), False),
        (refusal(401, rpc(-32000, "Unauthorized")), False),
        (refusal(404, rpc(-32600, "Not Found: Session has been terminated")), True),
        (refusal(400, rpc(-32600, "Not Found: Invalid or expired session ID")), True),
        (refusal(400, rpc(-32000, "Bad Request: Mcp-Session-Id header is required")), True),
        (refusal(400, b"Bad Request: Missing session ID"), True),
        (refusal(400, rpc(-32000, "Session not found: 3f2a-99")), True),
        (refusal(400, rpc(-32000, "session expired")), True),
        (refusal(400, b"Could not find session"), True),
        (refusal(400, rpc(-32602, "no such browser session")), False),
        (refusal(400, rpc(-32602, "Session not found")), False),
        (refusal(400, rpc(-32000, "no such browser session")), False),
        (refusal(400, rpc(-32000, "checkout session 7 was charged but could not be closed")), False),
        (refusal(400, b"your session at the bank has ended after the transfer"), False),
        (refusal(401, b"your session at the bank has ended after the transfer"), False),
        (refusal(401, rpc(-32000, "the session was recorded, then the upload was not initialized")), False),
        (refusal(400, rpc(-32000, "Bad Request")), False),
        (refusal(403, rpc(-32000, "Unknown session")), False),
        (refusal(500, rpc(-32000, "Unknown session")), False),
        (refusal(400, rpc(-32000, "Unknown session"), had_session=False), False),
    ],
)
def test_words_count_when_the_session_has_served(given, expected):
    """A server that says it in words is believed by evidence only: our id was sent and this session worked before."""
    assert is_expired(given, DUAL, has_served=True) is expected
    assert is_expired(given, DUAL, has_served=False) is False


@pytest.mark.parametrize(
    ("data", "revision"),
    [
        ({"supported": ["2026-07-28"]}, "2026-07-28"),
        ({"supported": ["2025-11-25", "2026-07-28"]}, "2026-07-28"),
        ({"supported": ["2025-11-25"]}, None),
        ({"supported": "2026-07-28"}, None),
        ({"supported": [None, 7]}, None),
        (None, None),
    ],
)
def test_a_version_error_names_the_revision_to_ask_at(data, revision):
    """-32022 is worth another try where it names a modern revision of ours (A03)."""
    error = RpcError(code=-32022, message="no", data=data)

    assert is_version_error(error)
    assert renegotiated(error) == revision
    assert isinstance(unsupported(error), UnsupportedRevision)


def test_other_errors_are_no_version_errors():
    """Only -32022 is."""
    assert not is_version_error(RpcError(code=-32020, message="no"))
    assert not is_version_error(TransportClosed())
    assert renegotiated(TransportClosed()) is None


@pytest.mark.parametrize(
    ("error", "legacy", "modern"),
    [
        (RpcError(code=-32022, message="no", data={"supported": ["2026-07-28"]}), True, False),
        (RpcError(code=-32022, message="no", data={"supported": ["2025-11-25"]}), False, False),
        (UnsupportedRevision(supported=("2025-11-25",)), False, True),
        (RpcError(code=-32602, message="_meta lacks protocolVersion", http_status=400), True, True),
        (RpcError(code=-32000, message="Unsupported protocol version", http_status=400), True, True),
        (RpcError(code=-32000, message="Server not initialized", http_status=400), False, True),
        (RpcError(code=-32001, message="Session not found", http_status=404), False, True),
        (RpcError(code=-32601, message="no method of this session", http_status=404), False, False),
        (RpcError(code=-32602, message="unknown protocol version"), False, False),
        (RpcError(code=-32602, message="missing argument: session", http_status=400), False, False),
        (RpcError(code=-32602, message="Session not found", http_status=400), False, False),
        (RpcError(code=-32000, message="No browser session with id 7", http_status=400), False, False),
        (RpcError(code=-32000, message="it negotiated an old TLS protocol version", http_status=400), False, False),
        (RpcError(code=-32000, message="session expired", http_status=500), False, False),
        (TransportClosed(), False, False),
    ],
)
def test_is_outgrown(error, legacy, modern):
    """A request turned away by the manners of the other era says that the server changed; nothing else does (A06)."""
    assert (is_outgrown(error, Era.LEGACY), is_outgrown(error, Era.MODERN)) == (legacy, modern)
