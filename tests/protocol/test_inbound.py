"""Tests of how arriving messages are read: ids, params, answers, errors."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RemoteProtocolError, RpcError
from mcp_actors.protocol import inbound
from mcp_actors.protocol.jsonrpc import decode_envelope


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
