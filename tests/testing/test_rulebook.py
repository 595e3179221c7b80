"""The rulebook answers as the text of each era says, and notes what a client did wrong."""

from __future__ import annotations

import json

import pytest

from mcp_actors.testing.rulebook import Conversation, is_modern_request, parse
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer
from mcp_actors.testing.words import META, Cancel, Die, Listen, Resolve, Run, Say, SayRaw

MODERN_META = {
    META + "protocolVersion": "2026-07-28",
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "t", "version": "1"},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def serving(**options) -> ScriptedServer:
    server = ScriptedServer("judge", **options)
    for name in ("one", "two", "three"):
        server.add_tool(name, lambda call: call.request_id)
    return server


def request(method, params=None, request_id=1):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def modern(method, params=None, request_id=1, **meta):
    return request(method, {**(params or {}), "_meta": {**MODERN_META, **meta}}, request_id)


def greeted(server, revision="2025-11-25") -> Conversation:
    conversation = Conversation(server)
    conversation.receive_message(request("initialize", {**HELLO, "protocolVersion": revision}, 0))
    conversation.receive_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return conversation


def only(actions) -> dict:
    [action] = actions
    assert isinstance(action, Say)
    return action.message


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a":NaN}', -32700),
        (b'"\xff"', -32700),
        (b"[" * 200_000, -32700),
        (b"1", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    ],
)
def test_malformed_message_is_refused_and_noted(raw, code):
    """What is no JSON-RPC request is answered with an error and held against the client."""
    server = serving()

    message = only(Conversation(server).receive(raw))

    assert code == message["error"]["code"]
    assert len(server.violations) == 1


@pytest.mark.parametrize(
    ("revisions", "message", "expected"),
    [
        (MODERN_REVISIONS, request("ping"), True),
        (MODERN_REVISIONS, request("initialize", HELLO), False),
        (MODERN_REVISIONS, modern("initialize", HELLO), True),
        (LEGACY_REVISIONS, modern("tools/list"), False),
        (LEGACY_REVISIONS, modern("server/discover"), False),
        (MODERN_REVISIONS + LEGACY_REVISIONS, modern("tools/list"), True),
        (MODERN_REVISIONS + LEGACY_REVISIONS, request("tools/list"), False),
        (MODERN_REVISIONS + LEGACY_REVISIONS, request("server/discover"), True),
        (MODERN_REVISIONS + LEGACY_REVISIONS, modern("initialize", HELLO), False),
    ],
)
def test_era_follows_from_how_a_request_opens(revisions, message, expected):
    """A dual server takes the era from the request; a server of one era has no choice (spec_client 3.7)."""
    assert expected == is_modern_request(revisions, message["method"], message.get("params", {}))


@pytest.mark.parametrize(
    ("message", "code", "status"),
    [
        (request("server/discover"), -32602, 400),
        (request("server/discover", {"_meta": {META + "protocolVersion": "2026-07-28"}}), -32602, 400),
        (request("server/discover", {"_meta": 7}), -32602, 400),
        (modern("tools/list", **{META + "protocolVersion": "2030-01-01"}), -32022, 400),
        (modern("tools/list", **{META + "protocolVersion": "2025-11-25"}), -32022, 400),
        (modern("ping"), -32601, 404),
        (modern("logging/setLevel", {"level": "info"}), -32601, 404),
        (modern("resources/list"), -32601, 404),
        (modern("tools/list", {"cursor": "rubbish"}), -32602, 200),
        (modern("subscriptions/listen"), -32602, 200),
    ],
)
def test_modern_request_is_refused_as_the_text_says(message, code, status):
    """Each modern refusal has its code and its HTTP status (spec_client 5.2, 13.2)."""
    [action] = Conversation(serving()).receive_message(message)

    assert (code, status) == (action.message["error"]["code"], action.status)
    assert message["id"] == action.message["id"]


def test_wrong_revision_names_what_is_spoken():
    """-32022 carries the supported revisions and the requested one."""
    message = modern("tools/list", **{META + "protocolVersion": "2030-01-01"})

    error = only(Conversation(serving()).receive_message(message))["error"]

    assert {"supported": [*MODERN_REVISIONS, *LEGACY_REVISIONS], "requested": "2030-01-01"} == error["data"]


def test_discover_describes_the_server():
    """The discover result has what the schema requires and tells who answers in its _meta."""
    server = serving(instructions="be brief")

    result = only(Conversation(server).receive_message(modern("server/discover")))["result"]

    assert {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "supportedVersions": [*MODERN_REVISIONS, *LEGACY_REVISIONS],
        "capabilities": {"logging": {}, "tools": {"listChanged": True}},
        "instructions": "be brief",
        "_meta": {META + "serverInfo": {"name": "judge", "version": "1.0.0"}},
    } == result
    assert server.violations == []


def test_missing_client_info_is_noted_and_served():
    """clientInfo is a SHOULD: its absence is held against the client, and served."""
    server = serving()
    message = modern("tools/list")
    del message["params"]["_meta"][META + "clientInfo"]

    assert "result" in only(Conversation(server).receive_message(message))
    assert server.violations == ["tools/list without clientInfo (SHOULD)"]


@pytest.mark.parametrize("asked", [*LEGACY_REVISIONS, "2099-01-01"])
def test_initialize_agrees_on_a_revision(asked):
    """The server answers with the revision that was asked for, or with its newest legacy one."""
    conversation = Conversation(serving())

    result = only(conversation.receive_message(request("initialize", {**HELLO, "protocolVersion": asked})))["result"]

    assert (asked if asked in LEGACY_REVISIONS else LEGACY_REVISIONS[0]) == result["protocolVersion"]
    assert "resultType" not in result


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_lacking_a_field_is_refused(missing):
    """A malformed initialize is -32602 and noted."""
    server = serving()
    params = {key: value for key, value in HELLO.items() if key != missing}

    assert only(Conversation(server).receive_message(request("initialize", params)))["error"]["code"] == -32602
    assert len(server.violations) == 1


def test_modern_only_server_refuses_initialize_with_its_revisions():
    """Initialize on a modern-only server is answered with the revisions it speaks."""
    conversation = Conversation(serving(revisions=MODERN_REVISIONS))

    error = only(conversation.receive_message(request("initialize", HELLO)))["error"]

    assert (error["code"], error["data"]["supported"]) == (-32022, ["2026-07-28"])


def test_initialize_after_discover_is_refused_and_noted():
    """A client that knows the server to be modern never goes back to initialize."""
    server = serving()
    conversation = Conversation(server)
    conversation.receive_message(modern("server/discover"))

    assert only(conversation.receive_message(request("initialize", HELLO)))["error"]["code"] == -32022
    assert server.violations == ["sent initialize to a server that it knows to be modern"]


def test_probe_of_a_legacy_server_is_no_violation():
    """server/discover on a legacy server is refused with -32601 and not held against the client."""
    server = serving(revisions=LEGACY_REVISIONS)

    assert only(Conversation(server).receive_message(modern("server/discover")))["error"]["code"] == -32601
    assert server.violations == []


@pytest.mark.parametrize(
    ("messages", "violation"),
    [
        ([request("tools/list")], "sent tools/list before initialize"),
        ([request("initialize", HELLO), request("tools/list", None, 2)], "before notifications/initialized"),
        ([{"jsonrpc": "2.0", "method": "notifications/initialized"}], "out of place"),
        ([request("initialize", HELLO), request("initialize", HELLO, 2)], "initialize twice"),
        ([request("initialize", HELLO), request("ping", None, 1)], "twice"),
        ([{"jsonrpc": "2.0", "method": "notifications/made/up"}], "unknown or malformed notification"),
        ([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}], "malformed notification"),
        ([{"jsonrpc": "2.0", "id": 1, "result": {}}], "answered a server that never asks"),
        ([request("initialize", HELLO), {"jsonrpc": "2.0", "id": 1}], "without exactly one"),
    ],
)
def test_rule_break_is_noted(messages, violation):
    """What a client does against the rules is held against it, once."""
    server = serving()
    conversation = Conversation(server)

    for message in messages:
        conversation.receive_message(message)

    [noted] = server.violations
    assert violation in noted


def test_orderly_legacy_client_breaks_no_rule():
    """Initialize, initialized, ping, lists, log level, subscriptions and calls leave no violation."""
    server = serving()
    server.add_resource("a://b", "text")
    conversation = greeted(server)

    for number, (method, params) in enumerate(
        [
            ("ping", None),
            ("tools/list", None),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("logging/setLevel", {"level": "warning"}),
            ("resources/subscribe", {"uri": "a://b"}),
            ("tools/call", {"name": "one", "arguments": {}}),
        ],
        1,
    ):
        [action] = conversation.receive_message(request(method, params, number))
        assert isinstance(action, Run) or "result" in action.message

    assert server.violations == []
    assert (conversation.log_level, conversation.subscriptions) == ("warning", {"a://b"})


@pytest.mark.parametrize("size", [1, 2, 3, 4, None])
def test_pages_hold_every_item_once(size):
    """Following the cursors gives every tool once, in order, whatever the page size (S166)."""
    conversation = greeted(serving(page_size=size))
    names, cursor, number = [], None, 0

    while True:
        number += 1
        params = {} if cursor is None else {"cursor": cursor}
        page = only(conversation.receive_message(request("tools/list", params, number)))["result"]
        names += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break

    assert names == ["one", "two", "three"]
    assert number == (-(-3 // size) if size else 1)


def test_batch_is_taken_only_by_the_revision_that_had_it():
    """2025-03-26 takes arrays; no other revision does."""
    batch = json.dumps([request("ping", None, 7), request("tools/list", None, 8)]).encode()

    assert len(greeted(serving(), "2025-03-26").receive(batch)) == 2
    assert only(greeted(serving(), "2025-06-18").receive(batch))["error"]["code"] == -32600


def test_messages_become_actions():
    """Cancels, answers, calls and subscriptions are handed to whoever owns the wire."""
    conversation = greeted(serving())
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}
    answer = {"jsonrpc": "2.0", "id": "server-1", "result": {}}
    listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True, "unknown": True}}, "l")

    assert [Cancel(4)] == conversation.receive_message(cancelled)
    assert [Resolve("server-1", answer)] == conversation.receive_message(answer)
    assert [Listen("l", {"toolsListChanged": True})] == conversation.receive_message(listen)
    params = {"name": "one"}
    assert [Run(5, "tools/call", params, False)] == conversation.receive_message(request("tools/call", params, 5))


def test_orders_of_a_test_go_first_and_are_used_up():
    """Each order answers as many messages as it was given for, in the order they were given."""
    server = serving()
    server.refuse("ping", -1, "no", times=2)
    server.silence("ping", times=1)
    server.answer_raw("ping", b'{"raw":$ID}', times=1)
    server.answer_with("ping", {"x": 1}, times=1)
    server.die_on("ping", status=3, times=1)
    conversation = greeted(server)

    actions = [conversation.receive_message(request("ping", None, number)) for number in range(1, 8)]

    refused = {"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}}
    assert [
        [Say({**refused, "id": 1})],
        [Say({**refused, "id": 2})],
        [],
        [SayRaw(b'{"raw":4}')],
        [Say({"jsonrpc": "2.0", "id": 5, "result": {"x": 1}})],
        [Die(3)],
        [Say({"jsonrpc": "2.0", "id": 7, "result": {}})],
    ] == actions


def test_orders_can_be_taken_back():
    """After `obey` the method is answered by the rules again."""
    server = serving()
    server.silence("ping")
    conversation = greeted(server)
    assert conversation.receive_message(request("ping", None, 1)) == []

    server.obey("ping")

    assert only(conversation.receive_message(request("ping", None, 2)))["result"] == {}


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf{}", b"NaN", b"-Infinity", b"\xff", b"[" * 100_000, b"{} {}"])
def test_parse_goes_by_the_letter(raw):
    """The judge's decoder is stricter than the client's: no byte order mark, no NaN, no broken UTF-8."""
    with pytest.raises(ValueError):
        parse(raw)
