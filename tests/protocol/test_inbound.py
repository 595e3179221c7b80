"""Tests of how arriving pieces are read: ids, answers, errors, refusals, notifications."""

from __future__ import annotations

import pytest

from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    CredentialsRefused,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
)
from mcp_actors.protocol import inbound
from mcp_actors.protocol.events import ListChanged, LogReceived, ResourceUpdated
from mcp_actors.protocol.jsonrpc import decode_envelope
from mcp_actors.protocol.types import Refusal

IN_BAND = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7),
        (7.0, 7),
        ("7.0", 7),
        (" 7 ", 7),
        (7.5, None),
        ("x", None),
        ("", None),
        ("inf", None),
        ("nan", None),
        (True, None),
        (None, None),
        ([7], None),
        ("9" * 400, None),
        (float("inf"), None),
    ],
)
def test_our_id_reads_ids_of_another_type(value, expected):
    """What a peer made of an integer is read back; anything else is no id of ours (fault 72)."""
    assert inbound.our_id(value) == expected


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (b'"result":{"a":1}', b'{"a":1}'),
        (b'"result":{},"error":null', b"{}"),
        (b'"result":null,"error":{"code":-5,"message":"m"}', RpcError),
        (b'"error":{"code":-5,"message":"m"}', RpcError),
        (b'"result":{},"error":{"code":-5,"message":"m"}', RemoteProtocolError),
        (b'"result":null', RemoteProtocolError),
        (b'"result":[]', RemoteProtocolError),
        (b'"result":"x"', RemoteProtocolError),
        (b'"error":null', RemoteProtocolError),
        (b'"error":"text"', RemoteProtocolError),
        (b'"error":{"message":"m"}', RemoteProtocolError),
        (b'"error":{"code":"-5"}', RemoteProtocolError),
        (b'"error":{"code":true}', RemoteProtocolError),
        (b'"error":{"code":-5.0}', RpcError),
        (b'"x":1', RemoteProtocolError),
    ],
)
def test_an_answer_is_a_result_or_an_error(members, expected):
    """Exactly one of result and error makes an answer; null counts as absent, all else is an error of the peer."""
    answer = inbound.read_answer(decode_envelope(b'{"jsonrpc":"2.0","id":1,' + members + b"}"), is_modern=True)

    assert answer == expected if isinstance(expected, bytes) else type(answer) is expected


def test_an_error_keeps_code_message_and_data():
    """Nothing of a JSON-RPC error is lost, whatever its code means (S412, B09)."""
    error = inbound.read_error(b'{"code":-32022,"message":"no","data":{"supported":["x"]}}', 400)

    assert isinstance(error, RpcError)
    assert (error.code, error.message, error.data, error.http_status) == (-32022, "no", {"supported": ["x"]}, 400)


@pytest.mark.parametrize(
    ("result", "is_refused"),
    [
        (b"{}", False),
        (b'{"resultType":"complete"}', False),
        (b'{"resultType":"input_required"}', False),
        (b'{"resultType":"task"}', False),
        (b'{"resultType":"novel"}', True),
        (b'{"resultType":null}', True),
        (b'{"resultType":["complete"]}', True),
        (b"[]", True),
    ],
)
def test_unknown_result_types_make_a_modern_answer_invalid(result, is_refused):
    """Absent means complete, unknown is invalid (B06)."""
    assert (inbound.refuse_result(result, is_modern=True) is not None) == is_refused


def test_legacy_results_may_have_any_member():
    """`resultType` means nothing in a legacy result."""
    assert inbound.refuse_result(b'{"resultType":"novel"}', is_modern=False) is None


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
    error = inbound.read_refusal(given, is_connecting=is_connecting)

    assert type(error) is (connecting if is_connecting else running)
    assert error.http_status == given.status


@pytest.mark.parametrize(
    ("status", "can_retry"),
    [(500, True), (503, True), (429, True), (408, True), (404, False), (200, False), (302, False)],
)
def test_only_outages_are_worth_another_try(status, can_retry):
    """A passing condition can be retried, a wrong address or a page cannot (fault 34, S413, S119)."""
    error = inbound.read_refusal(refusal(status, retry_after=7.0), is_connecting=True)

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
    assert inbound.read_refusal(given, is_connecting=True).describe() == text


def test_a_page_instead_of_mcp_is_described():
    """The error of an HTML page names URL, status, type and a short, clean excerpt (fault 37)."""
    page = b"<html>\n\x1b[31mSign   in\xff</html>" + b"x" * 10_000
    given = refusal(200, page, content_type="text/html", url="https://host/mcp")

    text = inbound.read_refusal(given, is_connecting=True).describe()

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
    text = inbound.read_refusal(refusal(status, content_type=content_type), is_connecting=True).describe()

    assert ("url in its configuration may be wrong" in text) is is_doubted


def test_a_bare_403_may_be_a_firewall_s():
    """It waits for a login as the contract says, but the reason names what was answered (S245)."""
    error = inbound.read_refusal(refusal(403, b"<html>Blocked</html>", content_type="text/html"), is_connecting=True)
    asked = inbound.read_refusal(refusal(403, challenge="Bearer"), is_connecting=True)

    assert isinstance(error, AuthRequired)
    assert error.reason.startswith("the server answered 403 (a login is missing, or a firewall refuses us): ")
    assert "<html>Blocked</html>" in error.reason
    assert str(asked) == "the server asks for a login"


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("notifications/tools/list_changed", {}, ListChanged),
        ("notifications/prompts/list_changed", {"x": 1}, ListChanged),
        ("notifications/resources/list_changed", {}, ListChanged),
        ("notifications/resources/updated", {"uri": "file:///a"}, ResourceUpdated),
        ("notifications/resources/updated", {}, None),
        ("notifications/message", {"level": "info", "data": [1]}, LogReceived),
        ("notifications/message", {"level": "info", "logger": 5}, LogReceived),
        ("notifications/message", {"data": 1}, None),
    ],
)
def test_notifications_become_events(method, params, expected):
    """Each known notification becomes its event; one with unreadable params is refused alone (fault 74)."""
    if expected is None:
        with pytest.raises(RemoteProtocolError):
            inbound.NOTIFICATIONS[method](params)
    else:
        assert type(inbound.NOTIFICATIONS[method](params)) is expected


@pytest.mark.parametrize("progress", ["5", None, True, [], 10**400])
def test_progress_that_is_no_number_is_refused(progress):
    """`progress` must be a number that fits (fault 74)."""
    with pytest.raises(RemoteProtocolError):
        inbound.read_progress({"progressToken": 1, "progress": progress})


def test_progress_drops_what_it_cannot_use():
    """A bad total or message does not cost the progress itself."""
    report = inbound.read_progress({"progressToken": "t", "progress": 1, "total": "x", "message": 5})

    assert report == inbound.Progress("t", 1.0, None, None)


@pytest.mark.parametrize(
    ("raw", "expected"), [(b"", {}), (b"null", {}), (b"{}", {}), (b'{"a":1}', {"a": 1}), (b"[]", None), (b"5", None)]
)
def test_params_are_an_object_or_nothing(raw, expected):
    """Absent and null params are empty; other JSON is refused (fault 74)."""
    if expected is None:
        with pytest.raises(RemoteProtocolError):
            inbound.read_params(raw)
    else:
        assert inbound.read_params(raw) == expected


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
    assert inbound.is_shut_out(error, has_helper=has_helper) is expected
