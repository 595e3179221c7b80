"""The check of mirrored headers accepts what mirrors the body and nothing else."""

from __future__ import annotations

import pytest

from mcp_actors.testing.http_headers import find_mismatch
from mcp_actors.testing.words import META

TOOL = {
    "name": "t",
    "inputSchema": {
        "type": "object",
        "properties": {
            "who": {"type": "string", "x-mcp-header": "Who"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "yes": {"type": "boolean", "x-mcp-header": "Yes"},
            "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deep"}}},
            "plain": {"type": "string"},
        },
    },
}
GOOD = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "t"}


def call(**arguments):
    meta = {"_meta": {META + "protocolVersion": "2026-07-28"}}
    return {"method": "tools/call", "params": {"name": "t", "arguments": arguments, **meta}}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"plain": "x"}, {}),
        ({"who": "ada"}, {"mcp-param-who": "ada"}),
        ({"who": ""}, {"mcp-param-who": ""}),
        ({"who": None}, {}),
        ({"who": "é"}, {"mcp-param-who": "=?base64?w6k=?="}),
        ({"n": 7}, {"mcp-param-n": "7"}),
        ({"n": -7}, {"mcp-param-n": "-07"}),
        ({"yes": False}, {"mcp-param-yes": "false"}),
        ({"deep": {"er": "x"}}, {"mcp-param-deep": "x"}),
    ],
)
def test_mirror_of_the_body_is_accepted(arguments, headers):
    """Each marked argument has its header, plain or wrapped; null and absent ones have none (SEP-2243)."""
    assert find_mismatch({**GOOD, **headers}, call(**arguments), [TOOL]) is None


@pytest.mark.parametrize(
    ("arguments", "headers", "name"),
    [
        ({}, {"mcp-method": "tools/CALL"}, "mcp-method"),
        ({}, {"mcp-name": "u"}, "mcp-name"),
        ({}, {"mcp-name": None}, "mcp-name"),
        ({}, {"mcp-protocol-version": "2025-11-25"}, "mcp-protocol-version"),
        ({"who": "ada"}, {}, "mcp-param-who"),
        ({"who": "ada"}, {"mcp-param-who": "Ada"}, "mcp-param-who"),
        ({}, {"mcp-param-who": "ada"}, "mcp-param-who"),
        ({"who": "é"}, {"mcp-param-who": "=?base64?rubbish!?="}, "mcp-param-who"),
        ({"who": "é"}, {"mcp-param-who": "=?base64?/w==?="}, "mcp-param-who"),
        ({"n": 7}, {"mcp-param-n": "7.0"}, "mcp-param-n"),
        ({"yes": True}, {"mcp-param-yes": "True"}, "mcp-param-yes"),
    ],
)
def test_what_does_not_mirror_is_named(arguments, headers, name):
    """The first header that differs from the body is named."""
    sent = {key: value for key, value in {**GOOD, **headers}.items() if value is not None}

    assert (find_mismatch(sent, call(**arguments), [TOOL]) or "").startswith(f"{name} is ")


def test_methods_without_a_name_need_no_name_header():
    """Mcp-Name goes with calls, reads and prompts only."""
    message = {"method": "tools/list", "params": {"_meta": {META + "protocolVersion": "2026-07-28"}}}

    assert find_mismatch({"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}, message, []) is None
