"""Tests of how our messages look in each era."""

from __future__ import annotations

import base64

import pytest

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.jsonrpc import decode
from mcp_actors.protocol.outbound import Composer, compose_initialize, encode_header_value
from mcp_actors.protocol.revisions import REVISIONS

CLIENT = {"name": "us", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}


def composer(revision: str, *, is_http: bool = False) -> Composer:
    return Composer(REVISIONS[revision], is_http, {"elicitation": {}}, CLIENT)


def coded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("text", ["echo", "a b", "", "~!@#", "=?base64?open", "x?=", "=?BASE64?eA==?="])
def test_safe_header_values_stay_plain(text):
    """Printable ASCII without outer spaces goes as it is (B03)."""
    assert encode_header_value(text) == text


@pytest.mark.parametrize(
    "text", ["é", "a\tb", "a\r\nX: y", " a", "a ", "\x7f", "=?base64?eA==?=", "\U0001f600", "\u2028"]
)
def test_unsafe_header_values_are_coded(text):
    """Anything else takes the base64 form, and so does a text that looks like it (B03)."""
    assert encode_header_value(text) == coded(text)


@pytest.mark.parametrize("params", [None, {}, {"name": "echo"}])
def test_every_modern_request_carries_its_meta(params):
    """Version, capabilities and client info are in the params of every modern request, which are never absent (B01)."""
    frame = composer("2026-07-28").compose_request(3, "tools/call", params)

    assert decode(frame.data) == {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {**(params or {}), "_meta": META},
    }
    assert (frame.request_id, frame.method, frame.headers) == (3, "tools/call", ())


def test_a_call_adds_to_its_meta_but_keeps_the_version():
    """A caller may withhold a capability or set a log level for one call; the version stays that of the header."""
    own = {
        "io.modelcontextprotocol/protocolVersion": "1999-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": "00-1",
    }
    frame = composer("2026-07-28").compose_request(1, "tools/list", {"_meta": own}, wants_progress=True)

    sent = decode(frame.data)["params"]["_meta"]
    assert sent == {
        **META,
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": "00-1",
        "progressToken": 1,
    }


def test_callers_params_are_not_changed():
    """The params of the caller stay as they were."""
    params = {"name": "x", "_meta": {"a": 1}}

    composer("2026-07-28").compose_request(1, "tools/call", params, wants_progress=True)

    assert params == {"name": "x", "_meta": {"a": 1}}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_request_is_bounded(revision):
    """S210: a request of the bound goes out, one byte more is refused before anything is sent, and says both sizes."""
    ours = composer(revision)
    size = len(ours.compose_request(1, "tools/call", {"name": "x", "arguments": {"text": ""}}).data)
    ours.max_request_bytes = size + 10

    fits = ours.compose_request(1, "tools/call", {"name": "x", "arguments": {"text": "y" * 10}})
    with pytest.raises(LocalProtocolError, match=f"has {size + 11} bytes, and {size + 10} are the most"):
        ours.compose_request(1, "tools/call", {"name": "x", "arguments": {"text": "y" * 11}})

    assert len(fits.data) == size + 10
    assert composer(revision).max_request_bytes == 32 * 1024 * 1024


@pytest.mark.parametrize(
    ("params", "wants_progress", "expected"),
    [
        (None, False, None),
        ({"a": 1}, False, {"a": 1}),
        (None, True, {"_meta": {"progressToken": 5}}),
        ({"a": 1, "_meta": {"b": 2}}, True, {"a": 1, "_meta": {"b": 2, "progressToken": 5}}),
    ],
)
def test_legacy_requests_carry_what_was_asked_for(params, wants_progress, expected):
    """A legacy request has no meta of ours but the progress token, which is its id (B16)."""
    frame = composer("2025-11-25").compose_request(5, "m", params, wants_progress=wants_progress)

    assert decode(frame.data).get("params") == expected


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2024-11-05"])
@pytest.mark.parametrize("wants_progress", [True, False])
def test_trace_context_goes_along_as_the_caller_wrote_it(revision, wants_progress):
    """`traceparent`, `tracestate` and `baggage` stand bare in `_meta`, in either era (F16)."""
    trace = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
        "baggage": "c=d",
    }

    frame = composer(revision).compose_request(
        1, "tools/call", {"name": "x", "_meta": trace}, wants_progress=wants_progress
    )

    assert trace.items() <= decode(frame.data)["params"]["_meta"].items()


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BOTH = (("traceparent", PARENT), ("tracestate", "a=b,c=d"))


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, ()),
        ("no object", ()),
        ({}, ()),
        ({"traceparent": PARENT}, BOTH[:1]),
        ({"traceparent": PARENT, "tracestate": "a=b,c=d", "baggage": "e=f"}, BOTH),
        # A later version with a fifth field.
        ({"traceparent": PARENT + "-more"}, (("traceparent", PARENT + "-more"),)),
        # A state means nothing without its parent.
        ({"tracestate": "a=b,c=d"}, ()),
        # What is none, or could end a header, is in `_meta` only.
        *(({"traceparent": bad}, ()) for bad in (7, "", "00-1", PARENT + "\r\nX: y", PARENT.upper(), PARENT + "\n")),
        *(
            ({"traceparent": PARENT, "tracestate": bad}, BOTH[:1])
            for bad in (None, "", " a=b", "a=b\r\nX: y", "ä=b", "a" * 5000)
        ),
    ],
)
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2024-11-05"])
def test_trace_context_is_in_headers_too(revision, meta, expected):
    """S095: what stands between us and an HTTP server sees the trace, in either era; other wires have no headers."""
    params = {"name": "x"} if meta is None else {"name": "x", "_meta": meta}

    over_http = composer(revision, is_http=True).compose_request(1, "tools/call", params).headers
    elsewhere = composer(revision).compose_request(1, "tools/call", params).headers

    assert tuple(pair for pair in over_http if pair[0].startswith("trace")) == expected
    assert elsewhere == ()


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "echo", "uri": "no"}, "echo"),
        ("tools/call", {"name": "ünï"}, coded("ünï")),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "file:///a b", "name": "no"}, "file:///a b"),
        ("tasks/cancel", {"taskId": "t"}, "t"),
        ("tools/list", {"name": "no"}, None),
        ("tools/call", {"name": 5}, None),
        ("tools/call", None, None),
    ],
)
def test_modern_http_mirrors_method_and_name(method, params, name):
    """On modern HTTP the headers repeat version, method, and the name where the method has one (B02)."""
    frame = composer("2026-07-28", is_http=True).compose_request(1, method, params, headers=[("Mcp-Param-X", "1")])

    expected = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
    expected += [("Mcp-Name", name)] if name is not None else []
    assert list(frame.headers) == [*expected, ("Mcp-Param-X", "1")]


def test_legacy_http_says_its_version_on_every_message():
    """After the handshake every legacy message on HTTP has the negotiated version, nothing of modern (S080, C08)."""
    made = composer("2025-06-18", is_http=True)

    frames = [
        made.compose_request(1, "tools/call", {"name": "x"}, headers=[("Mcp-Param-X", "1")]),
        made.compose_notification("notifications/initialized", None),
        made.compose_answer("a", {}),
        made.compose_error("a", -1, "no"),
    ]

    assert [frame.headers for frame in frames] == [(("MCP-Protocol-Version", "2025-06-18"),)] * 4


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_other_wires_have_no_headers(revision):
    """Nothing is mirrored where there are no headers."""
    frame = composer(revision).compose_request(1, "tools/call", {"name": "x"}, headers=[("Mcp-Param-X", "1")])

    assert frame.headers == ()


def test_initialize_has_no_leftovers_of_a_probe():
    """The legacy handshake carries neither headers nor modern meta (A07)."""
    frame = compose_initialize(2, "2025-11-25", {"roots": {}}, CLIENT)

    assert frame.headers == ()
    assert decode(frame.data) == {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": CLIENT},
    }
