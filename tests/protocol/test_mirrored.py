"""Tests of mirrored arguments: which schemas are sound, and the headers of a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import RpcError, TransportClosed
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.mirrored import (
    is_marked,
    marked_parameters,
    mirrored_headers,
    mirrors_arguments,
    refuse_schema,
    wants_refresh,
)
from mcp_actors.protocol.types import Era, ServerInfo

MARKED = {"type": "string", "x-mcp-header": "X"}


def schema(**properties: object) -> dict:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "sound",
    [
        {},
        {"type": "object"},
        schema(plain={"type": "string"}),
        schema(a=MARKED),
        schema(
            a={"type": "integer", "x-mcp-header": "Method"}, b={"type": "boolean", "x-mcp-header": "B!#$%&'*+-.^_`|~"}
        ),
        schema(outer=schema(inner=schema(a=MARKED))),
        schema(**{"x-mcp-header": {"type": "string"}}),
        schema(a={"type": "string", "default": {"x-mcp-header": "data"}, "enum": [{"x-mcp-header": ""}]}),
        {**schema(a=MARKED), "$defs": {"x-mcp-header": {"type": "string"}}, "anyOf": [{"required": ["a"]}]},
        {"properties": "no object", "items": [1, None]},
        schema(a=True),
    ],
)
def test_sound_schemas_are_kept(sound):
    """Marks on strings, integers and booleans along ``properties``, and schemas without marks, are sound (B04)."""
    assert refuse_schema(sound) is None


@pytest.mark.parametrize(
    ("unsound", "word"),
    [
        (schema(a={"type": "string", "x-mcp-header": ""}), "empty"),
        (schema(a={"type": "string", "x-mcp-header": None}), "empty"),
        (schema(a={"type": "string", "x-mcp-header": 5}), "empty"),
        (schema(a={"type": "string", "x-mcp-header": "My Region"}), "no header name"),
        (schema(a={"type": "string", "x-mcp-header": "Region:Primary"}), "no header name"),
        (schema(a={"type": "string", "x-mcp-header": "Région"}), "no header name"),
        (schema(a={"type": "string", "x-mcp-header": "Region\t1"}), "no header name"),
        (schema(a={"type": "string", "x-mcp-header": "Region\n"}), "no header name"),
        (schema(a={"type": "object", "x-mcp-header": "A"}), "'object'"),
        (schema(a={"type": "array", "x-mcp-header": "A"}), "'array'"),
        (schema(a={"type": "null", "x-mcp-header": "A"}), "'null'"),
        (schema(a={"type": "number", "x-mcp-header": "A"}), "'number'"),
        (schema(a={"type": ["string", "null"], "x-mcp-header": "A"}), "string"),
        (schema(a={"x-mcp-header": "A"}), "None"),
        (schema(a=MARKED, b=MARKED), "twice"),
        (schema(a=MARKED, b=schema(c={**MARKED, "x-mcp-header": "x"})), "twice"),
        ({"type": "object", "x-mcp-header": "A"}, "itself"),
        (schema(a={"type": "array", "items": MARKED}), "items"),
        (schema(a={"type": "array", "prefixItems": [MARKED]}), "prefixItems"),
        ({"oneOf": [schema(a=MARKED)]}, "oneOf"),
        ({"anyOf": [{"not": schema(default=MARKED)}]}, "anyOf"),
        ({"if": {"properties": {"a": MARKED}}}, "if"),
        ({"$defs": {"default": MARKED}}, "$defs"),
        ({"additionalProperties": MARKED}, "additionalProperties"),
        ({"patternProperties": {"^x": MARKED}}, "patternProperties"),
    ],
)
def test_unsound_schemas_are_refused_with_a_reason(unsound, word):
    """A mark that breaks a rule costs its tool, and the reason names the rule (B04)."""
    assert word in refuse_schema(unsound)
    assert marked_parameters(unsound) == ()
    assert mirrored_headers(unsound, {"a": "v"}) == ()


def test_endless_schemas_are_refused():
    """A schema that nests deeper than anybody writes is refused, wherever it does."""
    deep: dict = schema(a=MARKED)
    other: dict = {"items": MARKED}
    for _ in range(200):
        deep, other = schema(deep=deep), {"items": other}

    assert "too deep" in refuse_schema(deep)
    assert "too deep" in refuse_schema({"items": other})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("internal  spaces", "internal  spaces"),
        (" lead", "=?base64?IGxlYWQ=?="),
        ("trail ", "=?base64?dHJhaWwg?="),
        ("tab\t", "=?base64?dGFiCQ==?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("Привет", "=?base64?0J/RgNC40LLQtdGC?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        (42, "42"),
        (-7, "-7"),
        (3.0, "3"),
        (2**53 - 1, "9007199254740991"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_values_are_encoded(value, text):
    """Strings as they are where that is safe, else in the base64 form; integers decimal; booleans in words (B03)."""
    assert mirrored_headers(schema(a=MARKED), {"a": value}) == (("Mcp-Param-X", text),)


@pytest.mark.parametrize(
    "arguments", [None, {}, {"a": None}, {"a": [1]}, {"a": {"a": "v"}}, {"a": 0.5}, {"a": 2**60}, {"b": "v"}]
)
def test_what_is_absent_or_null_has_no_header(arguments):
    """No value, no header (B03)."""
    assert mirrored_headers(schema(a=MARKED), arguments) == ()


def test_the_value_is_taken_at_the_exact_path():
    """A nested mark reads the nested argument, never one of the same name elsewhere."""
    nested = schema(outer=schema(a={**MARKED, "x-mcp-header": "Inner"}), a=MARKED)

    assert mirrored_headers(nested, {"a": "top"}) == (("Mcp-Param-X", "top"),)
    assert mirrored_headers(nested, {"outer": {"a": "in"}}) == (("Mcp-Param-Inner", "in"),)
    assert mirrored_headers(nested, {"outer": "flat", "a": None}) == ()


@given(st.text())
def test_every_value_is_a_legal_header(text):
    """Whatever the argument, the header value is printable ASCII without surrounding blanks."""
    [(_, value)] = mirrored_headers(schema(a=MARKED), {"a": text})

    assert value.isascii()
    assert value == "" or value.isprintable()
    assert value == value.strip()


def test_a_mark_is_found_without_decoding():
    """The scan has no false negatives: also an escaped key may be a mark."""
    assert is_marked(encode({"inputSchema": schema(a=MARKED)}))
    assert is_marked(b'{"inputSchema":{"properties":{"a":{"\\u0078-mcp-header":"A"}}}}')
    assert not is_marked(encode({"inputSchema": schema(a={"type": "string"})}))


def test_a_header_mismatch_is_worth_one_refresh():
    """-32020 asks for the list and one more try, no other error does (B05)."""
    assert wants_refresh(RpcError(code=-32020, message="HeaderMismatch"))
    assert not wants_refresh(RpcError(code=-32021, message=""))
    assert not wants_refresh(TransportClosed())


@pytest.mark.parametrize(
    ("info", "is_http", "expected"),
    [
        (ServerInfo("2026-07-28", Era.MODERN), True, True),
        (ServerInfo("2026-07-28", Era.MODERN), False, False),
        (ServerInfo("2025-11-25", Era.LEGACY), True, False),
        (None, True, False),
    ],
)
def test_arguments_are_mirrored_to_modern_servers_over_http(info, is_http, expected):
    """Nobody else reads such headers (B03)."""
    assert mirrors_arguments(info, is_http=is_http) is expected
