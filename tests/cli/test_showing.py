"""How a result, a resource and a prompt are shown: text, Markdown, bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.cli.showing import (
    Style,
    markdown_of,
    messages_text,
    pictures_of,
    raw_of,
    text_of,
)
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.tools.blocks import plan_result
from mcp_actors.tools.results import ToolResult

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PIPE, TERMINAL = Style(), Style(80)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def result(*blocks, **members) -> ToolResult:
    return ToolResult(encode({"content": list(blocks), **members}))


TEXT = {"type": "text", "text": "a\x1b[31mb\u202ec"}
PICTURE = {"type": "image", "data": coded(PNG), "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "a://b c>", "name": "n]", "description": "d\nd"}
EMBEDDED = {"type": "resource", "resource": {"uri": "r://1", "text": "```\nin"}}
BLOB = {"type": "resource", "resource": {"uri": "r://2", "mimeType": "application/pdf", "blob": coded(b"pdf")}}


@pytest.mark.parametrize(
    ("block", "text", "markdown"),
    [
        (TEXT, "abc", "abc"),
        (PICTURE, "[image image/png, 28 bytes]", "*[image image/png, 28 bytes]*"),
        (LINK, "[resource_link n] a://b c>: d d]", "[n)](<a://b c%3E>): d d"),
        (EMBEDDED, "```\nin", "**r://1**\n\n````\n```\nin\n````"),
        (BLOB, "[resource r://2 application/pdf, 3 bytes]", "*[resource r://2 application/pdf, 3 bytes]*"),
        ({"type": "new\x07"}, "[new]", "*[new]*"),
        ({**TEXT, "annotations": {"audience": ["user", "assistant"], "priority": 1}}, "abc",
         "abc\n\n*(for user, assistant, priority 1)*"),
        ({**TEXT, "annotations": {"audience": "x", "priority": True}}, "abc", "abc"),
    ],
)  # fmt: skip
def test_blocks(block, text: str, markdown: str) -> None:
    """Each kind of block in a pipe and as Markdown; nothing that a terminal obeys gets through (S347)."""
    shown = result(block)

    assert text_of(shown, PIPE, {}) == text
    assert markdown_of(shown, {}) == markdown


def test_saved_blocks_say_where() -> None:
    """A picture in a file is named by its path; one that could not be saved says so."""
    shown = result(PICTURE, PICTURE)

    saved = {0: "/tmp/p.png", 1: None}

    assert text_of(shown, PIPE, saved).splitlines() == [
        "[image image/png, 28 bytes, saved to /tmp/p.png]",
        "[image image/png, 28 bytes, could not be saved]",
    ]
    assert markdown_of(shown, saved).splitlines()[0] == "![image](/tmp/p.png)"


def test_tiers_are_for_terminals() -> None:
    """S340: a flat object is drawn as lines on a terminal and stays JSON in a pipe."""
    shown = result({"type": "text", "text": '{"a":1,"long":true}'})

    assert text_of(shown, TERMINAL, {}) == "a:    1\nlong: true"
    assert text_of(shown, PIPE, {}) == '{"a":1,"long":true}'


def test_structured_content_stands_where_nothing_else_is() -> None:
    """Text shows it only without blocks; Markdown always, in a fence; raw as JSON."""
    alone, beside = result(structuredContent={"n": 1}), result(TEXT, structuredContent={"n": 1})

    assert text_of(alone, PIPE, {}) == '{\n  "n": 1\n}'
    assert text_of(beside, PIPE, {}) == "abc"
    assert markdown_of(beside, {}) == 'abc\n\n```json\n{\n  "n": 1\n}\n```'
    assert raw_of(alone) == b'{"n":1}'


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_raw_changes_not_one_byte(text: str) -> None:
    """Whatever a text holds, raw gives it as it is (rule 2)."""
    assert raw_of(result({"type": "text", "text": text})) == text.encode()


def test_raw_of_one_binary_block_is_its_data() -> None:
    """A picture or blob alone is decoded; beside others its text neighbours are given."""
    assert raw_of(result(PICTURE)) == PNG
    assert raw_of(result(BLOB)) == b"pdf"
    assert raw_of(result(PICTURE, TEXT, EMBEDDED)) == "a\x1b[31mb\u202ec\n```\nin".encode()


def test_pictures_are_found_wherever_they_are() -> None:
    """Image blocks and image resources; the type is what the bytes say; what is no base64 is left out (S218)."""
    inner = {"type": "resource", "resource": {"uri": "r", "mimeType": "image/svg+xml", "blob": coded(b"<svg/>")}}
    lying = {**PICTURE, "mimeType": "image/../../x"}

    found = pictures_of([TEXT, PICTURE, inner, {"type": "image", "data": "%"}, lying, BLOB])

    assert {number: file.extension for number, file in found.items()} == {1: "png", 2: "svg", 4: "png"}


def test_messages_are_told_by_role() -> None:
    """Who speaks, and what is said, pictures and resources in it too; malformed messages are left out (S335)."""
    messages = [{"role": "us\ner", "content": TEXT}, 7, {"role": "assistant", "content": [PICTURE, EMBEDDED]}]
    assert messages_text({"messages": messages}, PIPE) == (
        "us er:\nabc\n\nassistant:\n[image image/png, 28 bytes]\n```\nin"
    )
    assert messages_text({"messages": "none"}, PIPE) == ""


def test_what_a_terminal_shows_changes_nothing_for_a_model() -> None:
    """Unwrapping is for people: a model and a program get the text as the server sent it (S341, S342, S345)."""
    sent = '{"messages": "one\\ntwo", "ok": true}'
    result = ToolResult(encode({"content": [{"type": "text", "text": sent}]}))

    shown = text_of(result, TERMINAL, {})

    assert "one\ntwo" in shown
    assert [block.text for block in plan_result(result).finish([]).blocks] == [sent]
    assert result.text == sent
