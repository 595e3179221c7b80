"""The wire validator: good messages pass, each kind of wrong one is named with its path, every connection has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_actors.actors import wire
from mcp_actors.protocol.outbound import Composer, compose_initialize
from mcp_actors.protocol.revisions import REVISIONS
from tests.wire_validator import VIOLATIONS, CheckedSession, violations_of

LEGACY, MODERN = "2025-11-25", "2026-07-28"
INFO: dict[str, Any] = {"name": "t", "version": "1"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": INFO,
}


def violations(message: object, revision: str = LEGACY, **asked: str) -> list[str]:
    return list(violations_of(json.dumps(message).encode(), revision, dict(asked)))


def request(method: str, params: object = None) -> dict[str, object]:
    message: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": method}
    return message if params is None else {**message, "params": params}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_we_compose_passes(revision: str) -> None:
    """What our composer makes of an ordinary call is what the types of each revision ask for."""
    composer = Composer(REVISIONS[revision], is_http=False, capabilities={}, client_info=INFO)
    params = {"name": "echo", "arguments": {"text": "hi"}}

    frame = composer.compose_request(7, "tools/call", params, wants_progress=True)

    assert list(violations_of(frame.data, revision, {})) == []


def test_the_revision_of_initialize_is_its_own() -> None:
    """The first message is judged by the revision that it offers."""
    frame = compose_initialize(1, "2025-03-26", {"elicitation": {}}, INFO)

    assert list(violations_of(frame.data, MODERN, {})) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ([], "2025-11-25: a message is an object, not list"),
        (request("tools/call", {"name": "t", "arguments": 3}), "2025-11-25 tools/call params.arguments: Input should"),
        (request("tools/call", {}), "2025-11-25 tools/call params.name: Field required"),
        (request("tools/call", {"name": "t", "args": {}}), "2025-11-25 tools/call params: unknown member 'args'"),
        ({**request("ping"), "extra": 1}, "2025-11-25 ping: unknown member 'extra'"),
        (
            request("server/discover", {}),
            "2025-11-25 server/discover: no such request of a client in this revision",
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/initialised"},
            "2025-11-25 notifications/initialised: no such notification of a client in this revision",
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1.5}},
            "2025-11-25 notifications/cancelled params.requestId",
        ),
        (request("ping", {"_meta": MODERN_META}), "2026-07-28 ping: no such request of a client in this revision"),
        ({"id": 1, "method": "ping"}, "2025-11-25 ping jsonrpc: Field required"),
    ],
)
def test_a_wrong_message_is_named(message: object, expected: str) -> None:
    """A message that the types do not allow is reported with revision, method and path."""
    found = violations(message)

    assert found
    assert found[0].startswith(expected)


def test_a_modern_request_needs_its_meta() -> None:
    """A modern request without what each must carry is reported."""
    assert "2026-07-28 tools/list params: Field required" in violations(request("tools/list"), MODERN)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": {"roots": []}}, []),
        ({"error": {"code": -32601, "message": "no"}}, []),
        ({"result": {}}, ["2025-11-25 answer to roots/list result roots: Field required"]),
        ({"error": {"code": "x", "message": "no"}}, ["2025-11-25 answer to roots/list error.code"]),
        ({"result": []}, ["2025-11-25 answer to roots/list result: Input should be a valid dictionary"]),
    ],
)
def test_answers_are_judged_by_the_question(answer: dict[str, object], expected: list[str]) -> None:
    """An answer to a server is held against the result type of what it asked."""
    found = violations({"jsonrpc": "2.0", "id": "q", **answer}, q="roots/list")

    assert len(found) >= len(expected)
    assert all(any(text.startswith(start) for text in found) for start in expected)
    assert bool(found) == bool(expected)


def test_every_connection_is_checked() -> None:
    """Connections make their sessions of the class that checks; a wrong frame is noted the moment it is made."""
    session = wire.Session()
    session.open(0.0)
    session.frames_to_send()
    assert isinstance(session, CheckedSession)
    assert VIOLATIONS == []

    session.receive_message(
        b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private",'
        b'"supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"s","version":"1"}}}',
        0.0,
    )
    session.request("tools/call", {"name": 3}, None)

    assert VIOLATIONS == ["2026-07-28 tools/call params.name: Input should be a valid string"]
    VIOLATIONS.clear()
