"""Tests of how HTTP answers that are no message become errors."""

from __future__ import annotations

import pytest

from mcp_actors.errors import AuthRequired, ConnectFailed, CredentialsRefused, RpcError, TransportBroken
from mcp_actors.protocol.refusals import is_shut_out, read_refusal
from mcp_actors.protocol.types import Refusal

IN_BAND = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'


def refusal(status: int, body: bytes = b"", **more: object) -> Refusal:
    return Refusal(status, body=body, **more)


@pytest.mark.parametrize("is_connecting", [True, False])
@pytest.mark.parametrize(
    ("given", "connecting", "running"),
    [
        (refusal(401), AuthRequired, AuthRequired),
        (refusal(401, IN_BAND), AuthRequired, AuthRequired),
        (refusal(403), AuthRequired, AuthRequired),
        (refusal(403, IN_BAND), AuthRequired, RpcError),
        (refusal(403, IN_BAND, challenge='Bearer error="insufficient_scope"'), AuthRequired, AuthRequired),
        (refusal(404, IN_BAND), RpcError, RpcError),
        (refusal(400, IN_BAND), RpcError, RpcError),
        (refusal(404), ConnectFailed, TransportBroken),
        (refusal(500), ConnectFailed, TransportBroken),
        (refusal(500, IN_BAND), ConnectFailed, RpcError),
        (refusal(503, b"busy", retry_after=3.0), ConnectFailed, TransportBroken),
        (refusal(200, b"<html>", content_type="text/html"), ConnectFailed, TransportBroken),
        (refusal(302), ConnectFailed, TransportBroken),
        (refusal(400, b'{"error":"invalid"}'), ConnectFailed, TransportBroken),
        (refusal(400, b"[" * 100_000), ConnectFailed, TransportBroken),
    ],
    ids=lambda value: f"{value.status}" if isinstance(value, Refusal) else "",
)
def test_a_refusal_becomes_the_error_of_its_request(given, connecting, running, is_connecting):
    """Login, an in-band error, or a broken exchange: the status and the body decide (C10, faults 36, 37, 46)."""
    error = read_refusal(given, is_connecting=is_connecting)

    assert type(error) is (connecting if is_connecting else running)
    assert error.http_status == given.status


@pytest.mark.parametrize(
    ("status", "can_retry"),
    [(500, True), (503, True), (429, True), (408, True), (404, False), (200, False), (302, False)],
)
def test_only_outages_are_worth_another_try(status, can_retry):
    """A passing condition can be retried, a wrong address or a page cannot (fault 34, S413, S119)."""
    error = read_refusal(refusal(status, retry_after=7.0), is_connecting=True)

    assert isinstance(error, ConnectFailed)
    assert error.can_retry is can_retry
    assert error.retry_after == 7.0


WRONG = ", so the url in its configuration may be wrong"
WORDS = [
    (refusal(404, b"gone", url="https://h/mcp"), f"https://h/mcp answered 404{WRONG}: gone"),
    (
        refusal(500, b'{"error":"x"}', content_type="application/json"),
        'the server answered 500 (application/json): {"error":"x"}',
    ),
    (refusal(500, IN_BAND, content_type="application/json"), "the server answered 500: Session not found"),
    (refusal(401), "the server asks for a login"),
    (refusal(401, b"key expired"), "the server asks for a login: key expired"),
    (
        refusal(403, b"tenant\x1b[0m suspended"),
        "the server answered 403 (a login is missing, or a firewall refuses us): tenant suspended",
    ),
    (
        refusal(403, IN_BAND),
        "the server answered 403 (a login is missing, or a firewall refuses us): Session not found",
    ),
]


@pytest.mark.parametrize(("given", "text"), WORDS, ids=lambda value: str(getattr(value, "status", "")))
def test_the_error_says_what_the_server_said(given, text):
    """Status and the server's own words, cleaned; 404 points at the url (S408, S409, S414)."""
    assert read_refusal(given, is_connecting=True).describe() == text


def test_a_page_instead_of_mcp_is_described():
    """The error of an HTML page names URL, status, type and a short, clean excerpt (fault 37)."""
    page = b"<html>\n\x1b[31mSign   in\xff</html>" + b"x" * 10_000
    given = refusal(200, page, content_type="text/html", url="https://host/mcp")

    text = read_refusal(given, is_connecting=True).describe()

    assert text.startswith(
        "https://host/mcp answered 200 (text/html), so the url in its configuration may be wrong: <html> Sign in"
    )
    assert len(text) < 300
    assert text.isprintable()


@pytest.mark.parametrize(
    ("status", "content_type", "is_doubted"),
    [(404, "", True), (405, "", True), (200, "text/html", True), (200, "text/plain", False), (500, "text/html", False)],
)
def test_a_wrong_url_is_suspected_where_it_shows(status, content_type, is_doubted):
    """What takes no POST, knows no such path or shows a page is hardly an MCP server (S408, fault 37)."""
    text = read_refusal(refusal(status, content_type=content_type), is_connecting=True).describe()

    assert ("url in its configuration may be wrong" in text) is is_doubted


def test_a_bare_403_may_be_a_firewall_s():
    """It waits for a login as the contract says, but the reason names what was answered (S245)."""
    error = read_refusal(refusal(403, b"<html>Blocked</html>", content_type="text/html"), is_connecting=True)
    asked = read_refusal(refusal(403, challenge="Bearer"), is_connecting=True)

    assert isinstance(error, AuthRequired)
    assert error.told.startswith("the server answered 403 (a login is missing, or a firewall refuses us): ")
    assert error.said == "<html>Blocked</html>"
    assert str(asked) == "the server asks for a login"


@pytest.mark.parametrize(
    ("error", "has_helper", "expected"),
    [
        (AuthRequired(http_status=401), False, True),
        (AuthRequired(http_status=403), False, False),
        (AuthRequired(http_status=403), True, True),
        (CredentialsRefused(http_status=401), False, True),
        (CredentialsRefused(http_status=403), False, False),
        (ConnectFailed(reason="down", http_status=401), True, False),
    ],
)
def test_a_refused_call_may_be_the_end_of_all(error, has_helper, expected):
    """401 is about who we are; 403 may be about one request, unless a helper's headers were renewed (S091, S245)."""
    assert is_shut_out(error, has_helper=has_helper) is expected
