"""How a person writes resources and prompts of servers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.items import Prompt, prompts_from_items
from mcp_actors.tools.mentions import (
    complete_mention,
    fill_arguments,
    parse_command,
    parse_mentions,
    split_words,
    usage_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @github:issue://123 please", [("github", "issue://123")]),
        ("@a:x:1 and @b:y:2", [("a", "x:1"), ("b", "y:2")]),
        ("(@a:x)", [("a", "x)")]),
        ("mail me@example.com: now", []),
        ("@nobody", []),
        ("@a: x", []),
        ("@:x", []),
        ("@@a:x", []),
        ("", []),
    ],
)
def test_mentions(text: str, expected: list[tuple[str, str]]) -> None:
    """An at sign, a server up to the first colon, a URI up to a blank; several in one text (S324)."""
    found = parse_mentions(text)

    assert [(mention.server, mention.uri) for mention in found] == expected
    assert all(text[mention.start : mention.end] == f"@{mention.server}:{mention.uri}" for mention in found)


def test_mentions_are_bounded() -> None:
    """A text that is full of them gives at most a hundred."""
    assert len(parse_mentions("@a:b " * 10_000)) == 100


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("git", ("github:file:///a", "github:file:///b")),
        ("///b", ("github:file:///b",)),
        ("gfb", ("github:file:///b",)),
        ("DOCS", ("docs:page:1",)),
        ("zz", ()),
        ("", ("github:file:///a", "github:file:///b", "docs:page:1")),
    ],
)
def test_completion(fragment: str, expected: tuple[str, ...]) -> None:
    """Beginnings come before parts, and parts before letters with gaps (S324)."""
    candidates = [("github", "file:///a"), ("github", "file:///b"), ("docs", "page:1")]

    assert complete_mention(fragment, candidates) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"Bug in login" high', ("Bug in login", "high")),
        ("a  b\tc\n", ("a", "b", "c")),
        ("don't stop", ("don't", "stop")),
        ("it's 'one word'", ("its one", "word'")),
        ("'it''s'", ("its",)),
        ('a"b c"d', ("ab cd",)),
        (r"a\ b \"c\" C:\temp \\", ("a b", '"c"', r"C:\temp", "\\")),
        ("''", ("",)),
        ("\\", ("\\",)),
        ("", ()),
    ],
)
def test_words(text: str, expected: tuple[str, ...]) -> None:
    """Words are split as a shell does, without its traps (S333)."""
    assert split_words(text) == expected


@given(st.text())
def test_any_text_splits(text: str) -> None:
    """Whatever is typed, it splits, and words that need no quotes are those of `str.split`."""
    words = split_words(text)

    if not set(text) & set("'\"\\"):
        assert list(words) == text.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/mcp__s__p", ("mcp__s__p", ())),
        ("  /mcp__s__p  'a b' c\nd", ("mcp__s__p", ("a b", "c", "d"))),
        ("/mcp__s", None),
        ("/mcp__s__", None),
        ("/help", None),
        ("mcp__s__p", None),
        ("see /mcp__s__p", None),
    ],
)
def test_commands(text: str, expected: object) -> None:
    """A command is a prompt's callable name after a slash, and words (S332)."""
    assert parse_command(text) == expected


def prompt(*arguments: dict[str, object]) -> Prompt:
    [made], _ = prompts_from_items("s", [json.dumps({"name": "p", "arguments": arguments}).encode()])
    return made


TITLE = {"name": "title\u200b", "required": True}
LEVEL = {"name": "level"}


@pytest.mark.parametrize(
    ("arguments", "words", "expected"),
    [
        ([TITLE, LEVEL], ["Bug in login", "high"], {"title\u200b": "Bug in login", "level": "high"}),
        ([TITLE, LEVEL], ["a"], {"title\u200b": "a"}),
        ([TITLE, LEVEL], ["a", "b", "c", "d"], {"title\u200b": "a", "level": "b c d"}),
        ([TITLE], ["a", "b"], {"title\u200b": "a b"}),
        ([], ["a"], {}),
        ([LEVEL], [], {}),
    ],
)
def test_words_fill_arguments_in_order(arguments: list[dict[str, object]], words: list[str], expected: object) -> None:
    """Surplus words join the last argument; names are the server's own (S333)."""
    assert fill_arguments(prompt(*arguments), words) == expected


def test_a_missing_argument_is_named_with_the_usage() -> None:
    """What is missing is told before the server is asked (S334)."""
    missing = fill_arguments(prompt(TITLE, LEVEL), [])

    assert not isinstance(missing, dict)
    assert missing.describe() == "missing title; usage: /mcp__s__p <title> [level]"
    assert usage_of(prompt()) == "/mcp__s__p"
