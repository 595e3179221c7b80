"""Tests of what each request of a server is due."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.events import ServerRequestReceived
from mcp_actors.protocol.inbound import Blame, Fault
from mcp_actors.protocol.server_requests import MAX_OPEN_BYTES, Pong, Refuse, ServerRequests

HANDLED = frozenset({"roots/list"})


@pytest.mark.parametrize("is_ready", [True, False])
@pytest.mark.parametrize("request_id", [0, "a", "", -1, 1, "i" * 1024, 2**64, 10**300])
def test_ping_is_due_a_pong_always(request_id, is_ready):
    """Ping gets {} at once, whatever its id, ready or not (fault 75)."""
    assert ServerRequests(HANDLED, 10).receive(request_id, "ping", b"", is_ready=is_ready) == Pong(request_id)


@pytest.mark.parametrize(
    ("method", "params", "is_ready", "code"),
    [
        ("sampling/createMessage", b"{}", True, -32601),
        ("elicitation/create", b"{}", True, -32601),
        ("unknown", b"", True, -32601),
        ("roots/list", b"{}", False, -32601),
        ("roots/list", b"[]", True, -32602),
    ],
)
def test_what_nobody_handles_is_refused(method, params, is_ready, code):
    """Undeclared, unknown, early or unreadable requests are refused with their code (fault 75)."""
    due = ServerRequests(HANDLED, 10).receive(1, method, params, is_ready=is_ready)

    assert isinstance(due, Refuse)
    assert due.code == code


@pytest.mark.parametrize("method", ["ping", "roots/list", "unknown"])
@pytest.mark.parametrize(
    "request_id",
    [None, 1.5, True, [], {}, "i" * 1025, "i" * 1_000_000, 2**4096, -(2**4096)],
    ids=lambda one: f"{one!r:.9}",
)
def test_an_id_that_cannot_be_answered_is_blamed(request_id, method):
    """An id is an integer or a string, never null, and no longer than we would repeat for a peer that reads nothing."""
    due = ServerRequests(HANDLED, 10).receive(request_id, method, b"", is_ready=True)

    assert isinstance(due, Blame)
    assert due.fault is Fault.BAD_REQUEST


def test_a_handled_request_is_open_until_it_is_closed():
    """A request that a handler exists for is handed on once; its id is free again after the answer."""
    requests = ServerRequests(HANDLED, 10)

    first = requests.receive(1, "roots/list", b'{"a":1}', is_ready=True)
    twin = requests.receive(1, "roots/list", b"{}", is_ready=True)
    other = requests.receive("1", "roots/list", b"", is_ready=True)

    assert isinstance(first, ServerRequestReceived)
    assert (first.request_id, first.method, first.params) == (1, "roots/list", {"a": 1})
    assert isinstance(twin, Blame)
    assert isinstance(other, ServerRequestReceived)
    assert [requests.close(1), requests.close(1), requests.close("1"), requests.close([])] == [True, False, True, False]


def test_open_requests_are_bounded():
    """A server that asks faster than people answer is refused beyond the bound."""
    requests = ServerRequests(HANDLED, 2)

    dues = [requests.receive(number, "roots/list", b"", is_ready=True) for number in range(3)]

    assert [type(due) for due in dues] == [ServerRequestReceived, ServerRequestReceived, Refuse]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((MAX_OPEN_BYTES // 2, MAX_OPEN_BYTES // 2), "ok ok"),
        ((MAX_OPEN_BYTES // 2, MAX_OPEN_BYTES // 2 + 1), "ok no"),
        ((2 * MAX_OPEN_BYTES, 10, 10), "ok no no"),
    ],
    ids=["fits", "too much", "one alone"],
)
def test_open_requests_are_bounded_in_bytes(sizes, expected):
    """What servers ask waits for a person as it was sent: beyond the bound it is refused, except where it is alone."""
    asks = ServerRequests(HANDLED, 10)
    params = [b'{"a":"%b"}' % (b"a" * (size - 8)) for size in sizes]

    dues = [asks.receive(number, "roots/list", each, is_ready=True) for number, each in enumerate(params)]
    asks.close(0)
    later = asks.receive("later", "roots/list", b"{}", is_ready=True)

    assert ["no" if isinstance(due, Refuse) else "ok" for due in dues] == expected.split()
    assert isinstance(later, ServerRequestReceived)


KEY = "io.modelcontextprotocol/related-task"


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (b'{"%s":{"taskId":"t1"}}' % KEY.encode(), {"k": 1, KEY: {"taskId": "t1"}}),
        (b'{"%s":{"taskId":5}}' % KEY.encode(), {"k": 1}),
        (b'{"%s":"t1"}' % KEY.encode(), {"k": 1}),
        (b'{"%s":{"taskId":"%s"}}' % (KEY.encode(), b"t" * 1025), {"k": 1}),
        (b"[]", {"k": 1}),
        (b"{}", {"k": 1}),
    ],
)
def test_an_answer_names_the_task_of_its_request(meta, expected):
    """A MUST on all messages about a task; other `_meta` of the answer stays (G05)."""
    requests = ServerRequests(HANDLED, 10)
    requests.receive(1, "roots/list", b'{"_meta":%s}' % meta, is_ready=True)

    assert requests.mark(1, {"roots": [], "_meta": {"k": 1}}) == {"roots": [], "_meta": expected}
    assert requests.mark(2, {"roots": []}) == {"roots": []}
