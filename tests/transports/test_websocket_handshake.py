"""The headers of a WebSocket's handshake, and what its refusal comes to."""

from __future__ import annotations

import pytest

from mcp_actors.errors import AuthRequired, ConnectFailed
from mcp_actors.transports.websocket_handshake import read_head, refused, split_host


def test_a_configured_host_goes_first_and_the_handshakes_own_headers_do_not_go_twice() -> None:
    """Host is taken out of the headers; Upgrade and Sec-WebSocket-* are the library's (S084)."""
    given = [(b"X-A", b"1"), (b"HOST", b"other"), (b"Upgrade", b"h2c"), (b"Sec-WebSocket-Key", b"k")]

    assert split_host(given, "url.example") == ("other", [(b"X-A", b"1")])
    assert split_host(given[:1], "url.example") == ("url.example", [(b"X-A", b"1")])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (None, {})),
        (b"SSH-2.0-x\r\n", (None, {})),
        (b"HTTP/1.1 abc\r\n\r\n", (None, {})),
        (b"HTTP/1.1 " + b"9" * 5000, (None, {})),  # more digits than a number may have
        (b"HTTP/1.1 503 No\r\nRetry-After:  7 \r\nodd\r\n\r\nbody: x", (503, {b"retry-after": b"7", b"odd": b""})),
    ],
)
def test_a_head_is_read_as_far_as_it_is_one(data: bytes, expected: tuple[int | None, dict[bytes, bytes]]) -> None:
    """Status and headers are taken from what came, and nothing from what is no HTTP."""
    assert read_head(data) == expected


@pytest.mark.parametrize(
    ("status", "kind", "can_retry"),
    [(401, AuthRequired, None), (403, AuthRequired, None), (404, ConnectFailed, False), (503, ConnectFailed, True)],
)
def test_a_refusal_is_a_login_or_an_outage_or_final(status: int, kind: type, can_retry: bool | None) -> None:
    """401 and 403 want credentials; an outage is worth another try, at the moment that it names (S085, fault 34)."""
    error = refused("ws.example", status, {b"retry-after": b"7"}, now=0.0)

    assert type(error) is kind
    assert str(status) in str(error)
    assert getattr(error, "can_retry", None) is can_retry
    assert getattr(error, "retry_after", None) == (None if kind is AuthRequired else 7.0)
