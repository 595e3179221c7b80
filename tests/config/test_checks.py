"""Tests of `config.checks`."""

from __future__ import annotations

import re

import pytest

from mcp_actors.config.checks import HEADER_NAME, header_fault, plain_fault, url_fault, watched_texts
from mcp_actors.config.specs import TransportName

HTTP, SSE, WS = TransportName.HTTP, TransportName.SSE, TransportName.WS


@pytest.mark.parametrize(
    ("url", "transport", "is_fine"),
    [
        ("https://h", HTTP, True),
        ("HTTPS://H:1/p?q#f", SSE, True),
        ("http://[::1]:8080/mcp", HTTP, True),
        ("wss://h/x", WS, True),
        ("wss://h/x", HTTP, False),
        ("http://h", WS, False),
        ("h:80", HTTP, False),
        ("http:///p", HTTP, False),
        ("http://h:x", HTTP, False),
        ("http://[::1", HTTP, False),
        ("file:///etc/passwd", HTTP, False),
        (" http://h/a b ", HTTP, True),
        ("http://h.exam\tple/", HTTP, False),
        ("http://h/\nx", HTTP, False),
        ("http://h/\x7f", HTTP, False),
        ("", HTTP, True),
    ],
)
def test_url_fault_follows_the_table(url: str, transport: TransportName, is_fine: bool) -> None:
    """An address needs a scheme of its transport, a host and a port that is a number; an empty one is not judged."""
    assert (url_fault(url, transport) is None) == is_fine


@pytest.mark.parametrize(("text", "is_fine"), [("a", True), ("ä\n", True), ("a\0", False), ("\ud800", False)])
def test_plain_fault_follows_the_table(text: str, is_fine: bool) -> None:
    """NUL and lone surrogates cannot be passed to a program."""
    assert (plain_fault(text) is None) == is_fine


@pytest.mark.parametrize(("text", "is_fine"), [("a b", True), ("a\nb", False), ("a\r", False), ("\0", False)])
def test_header_fault_follows_the_table(text: str, is_fine: bool) -> None:
    """A line break in a header would begin another header."""
    assert (header_fault(text) is None) == is_fine


@pytest.mark.parametrize(("name", "is_fine"), [("X-Api-Key", True), ("a:b", False), ("a b", False), ("", False)])
def test_header_names_are_tokens(name: str, is_fine: bool) -> None:
    """A header's name is a token of RFC 9110."""
    assert (re.fullmatch(HEADER_NAME, name) is not None) == is_fine


def test_watched_texts_are_the_fields_of_the_rule() -> None:
    """command, url, cwd, args, env and header values are watched for whitespace; other kinds are passed over (S036)."""
    raw = {
        "command": "c",
        "url": 1,
        "cwd": "d",
        "args": ["a", 2],
        "env": {"E": "e", "F": None},
        "headers": [],
        "x": "y",
    }

    assert watched_texts(raw) == [(("command",), "c"), (("cwd",), "d"), (("args", 0), "a"), (("env", "E"), "e")]
