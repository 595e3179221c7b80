"""Tool results: raw bytes, decoded when read."""

from __future__ import annotations

import json

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.results import ToolResult


def result(**keys: object) -> ToolResult:
    return ToolResult(json.dumps(keys).encode(), server="s", tool="t")


def test_a_result_keeps_what_was_sent() -> None:
    """The raw bytes are kept as they are, and every key survives decoding."""
    raw = b'{ "content" : [ ], "x-new": {"a": 1.0}, "isError":false}'

    taken = ToolResult(raw)

    assert taken.raw is raw
    assert taken.json == {"content": [], "x-new": {"a": 1.0}, "isError": False}
    assert taken.json is taken.json


def test_text_joins_the_text_blocks_in_order() -> None:
    """Text blocks are joined by line ends; other blocks are left out of the text, not of the content (S213)."""
    taken = result(
        content=[
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "text", "text": "two"},
            {"type": "new", "text": "not me"},
        ]
    )

    assert taken.text == "one\ntwo"
    assert len(taken.content) == 4


@pytest.mark.parametrize(
    ("keys", "has", "value"),
    [({}, False, None), ({"structuredContent": None}, True, None), ({"structuredContent": {"n": 1}}, True, {"n": 1})],
)
def test_absent_structured_content_is_not_null(keys: dict[str, object], has: bool, value: object) -> None:
    """Absent and null structured content can be told apart."""
    taken = result(content=[], **keys)

    assert (taken.has_structured_content, taken.structured_content) == (has, value)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [({}, False), ({"isError": False}, False), ({"isError": True}, True), ({"isError": None}, False)],
)
def test_is_error(keys: dict[str, object], expected: bool) -> None:
    """A tool's own failure is a value; absence means success (S211, fault 85)."""
    assert result(content=[], **keys).is_error is expected


def test_meta_is_the_underscored_key() -> None:
    """``_meta`` is offered as sent, and is empty when absent."""
    assert result(_meta={"a/b": 1}).meta == {"a/b": 1}
    assert result().meta == {}


def test_content_that_is_absent_is_empty() -> None:
    """A result without content has no blocks and no text."""
    assert (result().content, result().text) == ((), "")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"content": 7}', "content is not an array"),
        (b'{"content": {"type": "text"}}', "content is not an array"),
        (b'{"content": [{"type": "text", "text": "a"}, 7]}', "a block that is not an object"),
        (b"[]", "s: "),
        (b"{", "s: "),
        (b"", "s: "),
        (b"\xff", "s: "),
        (b"[" * 100_000, "s: "),
    ],
)
def test_a_malformed_result_is_the_servers_fault(raw: bytes, reason: str) -> None:
    """What cannot be read raises RemoteProtocolError with the server's name, whatever is wrong with it."""
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        _ = ToolResult(raw, server="s", tool="t").content

    assert caught.value.server == "s"


def test_the_repr_holds_no_content() -> None:
    """A repr tells the size of a result, not what is in it (invariant 8)."""
    assert repr(result(content=[{"type": "text", "text": "canary"}])).count("canary") == 0
