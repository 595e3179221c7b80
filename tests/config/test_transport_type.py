"""Which transport an entry means."""

from __future__ import annotations

import pytest

from mcp_actors.config.notes import Findings
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget, TransportName
from mcp_actors.config.validate import EntryContext, read_entry


def read(raw: object) -> tuple[ServerSpec | None, Findings]:
    findings = Findings("some.json")
    context = EntryContext(findings, Scope.USER, {})
    return read_entry("a", raw, ("mcpServers", "a"), context), findings


def target(raw: object) -> object:
    spec, findings = read(raw)
    assert spec is not None, findings.problems
    return spec.target


URL = "https://h/mcp"


@pytest.mark.parametrize(
    ("spelling", "transport"),
    [
        ("http", TransportName.HTTP),
        ("HTTP", TransportName.HTTP),
        ("streamable-http", TransportName.HTTP),
        ("streamable_http", TransportName.HTTP),
        ("streamableHttp", TransportName.HTTP),
        ("Streamable HTTP", TransportName.HTTP),
        ("sse", TransportName.SSE),
        ("SSE", TransportName.SSE),
    ],
)
def test_transport_is_read_in_any_spelling(spelling: str, transport: TransportName) -> None:
    """The type counts without regard to case and separators, under either key (S005, fault 20)."""
    assert target({"type": spelling, "url": URL}) == RemoteTarget(URL, transport)
    assert target({"transport": spelling, "url": URL}) == RemoteTarget(URL, transport)


@pytest.mark.parametrize("spelling", ["ws", "WebSocket", "web-socket"])
def test_websocket_is_read(spelling: str) -> None:
    """ws is a type that files may name (S006)."""
    assert target({"type": spelling, "url": "wss://h/x"}) == RemoteTarget("wss://h/x", TransportName.WS)


@pytest.mark.parametrize("spelling", ["stdio", "STDIO", None])
def test_stdio_is_the_default(spelling: str | None) -> None:
    """An entry with a command and no type is a program (S004, S002)."""
    assert target({"type": spelling, "command": "x"}) == StdioTarget("x")


def test_unknown_type_lists_what_is_accepted() -> None:
    """The remedy for an unknown type names the types there are; nothing is guessed (fault 20)."""
    _, findings = read({"type": "grpc", "url": URL})

    assert all(word in str(findings.problems[0]) for word in ("grpc", "stdio", "streamable-http", "sse", "ws"))


def test_url_without_type_is_streamable_http_with_a_note() -> None:
    """An address without type is taken as streamable HTTP, said so, and marked as a guess (S004, faults 19, 34)."""
    spec, findings = read({"url": URL})

    assert spec is not None
    assert spec.target == RemoteTarget(URL, TransportName.HTTP, is_guess=True)
    assert [(note.code, note.is_warning) for note in findings.notes] == [("url-without-type", False)]


def test_websocket_address_without_type_is_a_websocket() -> None:
    """The scheme ws says enough."""
    assert target({"url": "ws://h/x"}) == RemoteTarget("ws://h/x", TransportName.WS)
