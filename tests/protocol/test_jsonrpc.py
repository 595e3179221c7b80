"""Tests of the JSON codec: what it makes of good, bad and broken text."""

from __future__ import annotations

import contextlib
import functools
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError
from mcp_actors.protocol import jsonrpc

DEEP = b"[" * 200_000 + b"]" * 200_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_encode_and_decode_round_trip(value):
    """Any JSON value comes back as it was, integers of any size exactly."""
    assert jsonrpc.decode(jsonrpc.encode(value)) == value


def test_encode_takes_read_only_containers():
    """Mappings and tuples are written like dicts and lists."""
    assert jsonrpc.encode({"a": MappingProxyType({"b": (1, 2)})}) == b'{"a":{"b":[1,2]}}'


@pytest.mark.parametrize("value", [object(), {"a": {1, 2} - {1, 2}, "b": object}, "\ud800", {(1, 2): 3}])
def test_encode_refuses_what_is_no_json(value):
    """A value that is no JSON is our own fault, said in our own error."""
    with pytest.raises(LocalProtocolError):
        jsonrpc.encode(value)


def test_encode_embeds_raw_json():
    """Raw JSON is embedded byte for byte."""
    assert jsonrpc.encode({"a": jsonrpc.raw_json(b'{"x": 1e2}')}) == b'{"a":{"x": 1e2}}'


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (jsonrpc.encode_request(1, "ping", None), b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        (jsonrpc.encode_request("a", "m", {}), b'{"jsonrpc":"2.0","id":"a","method":"m","params":{}}'),
        (jsonrpc.encode_notification("n", None), b'{"jsonrpc":"2.0","method":"n"}'),
        (jsonrpc.encode_notification("n", {"a": 1}), b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}'),
        (jsonrpc.encode_answer(0, {}), b'{"jsonrpc":"2.0","id":0,"result":{}}'),
        (jsonrpc.encode_error("x", -1, "no"), b'{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}'),
    ],
)
def test_messages_have_the_shape_of_json_rpc(made, expected):
    """Requests, notifications and answers are written as JSON-RPC 2.0 says (S065)."""
    assert made == expected


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "place",
    [
        lambda x: x,
        lambda x: {"a": x},
        lambda x: {"a": [None, 1, (2.5, {"b": x})]},
        lambda x: MappingProxyType({"a": MappingProxyType({"b": [x]})}),
        lambda x: [{"a": None}, {x}],
    ],
)
def test_a_number_that_json_lacks_is_refused(place, number):
    """It is not sent as the null that the codec would make of it, wherever it stands."""
    with pytest.raises(LocalProtocolError, match="not finite"):
        jsonrpc.encode_request(1, "tools/call", {"arguments": place(number)})


def test_what_only_looks_like_such_a_number_is_written():
    """Null, the word, and large numbers are JSON."""
    value = {"a": None, "b": "null", "c": [1e308, -(10**30), b"null", True], "d": jsonrpc.raw_json(b"null")}

    assert jsonrpc.decode(jsonrpc.encode(value)) == {**value, "c": [1e308, -(10**30), "bnVsbA==", True], "d": None}


@pytest.mark.parametrize("value", [[1], "x", 5, b"{}", None])
def test_what_is_no_object_is_refused_by_name(value):
    """What a caller must give as an object is not sent as anything else."""
    jsonrpc.require_object("arguments", {})
    jsonrpc.require_object("arguments", MappingProxyType({}))

    with pytest.raises(LocalProtocolError, match=r"^arguments are a JSON object, not"):
        jsonrpc.require_object("arguments", value)


BROKEN = [
    b"",
    b" ",
    b"{",
    b"[1,",
    b"nul",
    b"NaN",
    b"Infinity",
    b"1e400",
    b'{"a" 1}',
    b"{} x",
    b"'a'",
    b'{"a":\xff}',
    DEEP,
]


READERS = [
    jsonrpc.decode,
    jsonrpc.decode_object,
    jsonrpc.decode_envelope,
    jsonrpc.raw_members,
    functools.partial(jsonrpc.decode_page, key="a"),
]


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: repr(raw[:12]))
@pytest.mark.parametrize("read", READERS)
def test_broken_json_is_the_peers_fault(read, raw):
    """Whatever is malformed, too deep or out of range raises the one error of the peer's faults (rule 1)."""
    with pytest.raises(RemoteProtocolError):
        read(raw)


@pytest.mark.parametrize("raw", [b"1", b"[]", b"null", b'"a"'])
def test_decode_object_refuses_other_json(raw):
    """JSON that is no object is refused where an object is due."""
    with pytest.raises(RemoteProtocolError):
        jsonrpc.decode_object(raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (rb'"cut \ud83d"', "cut �"),
        (rb'"\ude00 cut"', "� cut"),
        (rb'"\ud83d\ud83d\ude00\ud83d"', "�\U0001f600�"),
        (rb'"\ud83d\ude00 \ud83d"', "\U0001f600 �"),
        (rb'"\\ud83d stays, \ud83d goes"', "\\ud83d stays, � goes"),
        (rb'"\\\ud83d"', "\\�"),
        (b'"latin \xe9"', "latin �"),
        (b'\xef\xbb\xbf"bom"', "bom"),
    ],
)
def test_text_that_is_broken_inside_a_string_is_mended(raw, expected):
    """Half surrogate pairs and bytes that are no UTF-8 become U+FFFD; everything around them is kept (rule 3)."""
    assert jsonrpc.decode(raw) == expected


def test_mending_is_bounded(monkeypatch):
    """A broken text above the bound is not walked again; it is just broken."""
    monkeypatch.setattr(jsonrpc, "MAX_MENDED_BYTES", 10)

    with pytest.raises(RemoteProtocolError):
        jsonrpc.decode(rb'"a long text cut \ud83d"')


def test_an_envelope_of_a_cut_emoji_still_arrives():
    """An answer with half a surrogate pair in its result is not lost with its id."""
    envelope = jsonrpc.decode_envelope(rb'{"jsonrpc":"2.0","id":7,"result":{"text":"\ud83d"}}')

    assert envelope.id == 7
    assert jsonrpc.decode_object(bytes(envelope.result)) == {"text": "�"}


def test_an_envelope_keeps_its_insides_undecoded():
    """Members that can be large stay the bytes they were, spaces and order of keys included."""
    envelope = jsonrpc.decode_envelope(b'{"id":"7","result": {"b": 1,  "a":[1.0]} ,"jsonrpc":"2.0"}')

    assert envelope.id == "7"
    assert bytes(envelope.result) == b'{"b": 1,  "a":[1.0]}'
    assert envelope.method is jsonrpc.ABSENT
    assert not envelope.error


@pytest.mark.parametrize(
    "text", [b"7", b"7.0", b'"7"', b'"7.0"', b"0", b"null", b"true", b"123456789012345678901234567890"]
)
def test_an_envelope_keeps_the_type_of_its_id(text):
    """1, 1.0 and "1" are three different ids (A14)."""
    envelope = jsonrpc.decode_envelope(b'{"id":' + text + b"}")

    expected = jsonrpc.decode(text)
    assert envelope.id == expected
    assert type(envelope.id) is type(expected)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b"{}", jsonrpc.ABSENT),
        (b'{"resultType":"complete"}', "complete"),
        (b'{"content":[{"resultType":"x"}]}', jsonrpc.ABSENT),
        (b'{"resultType":null}', None),
        (b'{"resultType":5}', 5),
    ],
)
def test_peek_reads_the_result_type_of_the_top_level_only(result, expected):
    """`resultType` is found where it counts and nowhere deeper (B06)."""
    assert jsonrpc.peek_result_type(result) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"{}", None),
        (b"5", None),
        (b"[]", []),
        (b" [1, {} ]", [b"1", b"{}"]),
    ],
)
def test_split_batch_cuts_arrays_only(raw, expected):
    """An array is split into its undecoded elements; anything else is no batch (fault 77, S065)."""
    assert jsonrpc.split_batch(raw) == expected


def test_split_batch_refuses_a_cut_array():
    """An array that is cut off is malformed."""
    with pytest.raises(RemoteProtocolError):
        jsonrpc.split_batch(b"[{},")


def test_members_and_items_keep_every_byte():
    """What is taken apart without being decoded is the bytes that the server sent, unknown keys included (B12)."""
    page = b'{"x":1,"tools":[{"name":"a", "future" : 1e2},{"name":"\xff"}], "nextCursor" :"c"}'

    items, cursor = jsonrpc.decode_page(page, "tools")

    assert (items, cursor) == ([b'{"name":"a", "future" : 1e2}', b'{"name":"\xff"}'], "c")
    assert jsonrpc.raw_members(items[0]) == {"name": b'"a"', "future": b"1e2"}
    assert jsonrpc.decode_texts(items, "name") == ["a", "\ufffd"]


@given(
    st.lists(
        st.sampled_from([b'{"name":"a"}', b'{ "x":[1,"name"],"name":"b"}', b'{"name":"\xff"}', b"1", b"{}", b"[]"])
    )
)
def test_one_bad_item_spoils_no_text_of_another(items):
    """Of any items each gives what it gives alone: its text, mended where that helps, or what is wrong with it."""
    texts = jsonrpc.decode_texts(items, "name")

    assert [text if isinstance(text, str) else None for text in texts] == [
        {b"a": "a", b"b": "b", b"\xff": "\ufffd"}.get(item[-3:-2]) if item.endswith(b'"}') else None for item in items
    ]
    assert [str(text) for text in texts] == [str(jsonrpc.decode_texts([item], "name")[0]) for item in items]


@pytest.mark.parametrize("cursor", ["", ',"nextCursor":null', ',"nextCursor":"c","nextCursor":null'])
def test_a_page_without_a_cursor_is_the_last(cursor):
    """A cursor that is absent or null is none; of two the last one counts, as everywhere."""
    assert jsonrpc.decode_page(b'{"tools":[]%s}' % cursor.encode(), "tools") == ([], None)


@pytest.mark.parametrize("raw", [b"null", b"{}", b"1", b"[1", b'"a"'])
def test_what_is_no_array_has_no_items(raw):
    """A list result whose array is missing or something else is malformed (S149)."""
    for page in (raw, b'{"tools":%s}' % raw):
        with pytest.raises(RemoteProtocolError):
            jsonrpc.decode_page(page, "tools")


@given(st.binary() | st.text('[]{}":,1a').map(str.encode))
def test_decoding_any_bytes_returns_or_says_whose_fault(raw):
    """No bytes make a decoder raise anything but the peer's fault, or return another type than its own (rule 1)."""
    json_types = dict | list | str | int | float | None
    types = (json_types, dict, jsonrpc.Envelope, dict, tuple, list | None)
    for read, kind in zip((*READERS, jsonrpc.split_batch), types, strict=True):
        with contextlib.suppress(RemoteProtocolError):
            assert isinstance(read(raw), kind)
