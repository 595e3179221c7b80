"""How the options of ``add`` become an entry."""

from __future__ import annotations

import argparse

import pytest

from mcp_actors.cli.entry_options import build_entry
from mcp_actors.cli.exits import UsageError


def options(**given):
    names = ("transport", "client_id", "client_secret", "callback_port", "timeout")
    return argparse.Namespace(**{**dict.fromkeys(names), "env": [], "header": [], **given})


@pytest.mark.parametrize(
    ("given", "words", "entry"),
    [
        ({}, ["npx", "-y", "pkg"], {"type": "stdio", "command": "npx", "args": ["-y", "pkg"]}),
        (
            {"env": ["A=1", "B=x=y", "C="]},
            ["x"],
            {"type": "stdio", "command": "x", "args": [], "env": {"A": "1", "B": "x=y", "C": ""}},
        ),
        ({}, ["https://h/mcp"], {"type": "http", "url": "https://h/mcp"}),
        ({}, ["WSS://h/mcp"], {"type": "ws", "url": "WSS://h/mcp"}),
        ({"transport": "sse"}, ["https://h/sse"], {"type": "sse", "url": "https://h/sse"}),
        ({"transport": "stdio"}, ["https"], {"type": "stdio", "command": "https", "args": []}),
        (
            {"header": ["Authorization: Bearer a:b", "X:y"], "timeout": 2.5},
            ["https://h"],
            {"type": "http", "url": "https://h", "headers": {"Authorization": "Bearer a:b", "X": "y"}, "timeout": 2500},
        ),
        (
            {"client_id": "i", "callback_port": 7777},
            ["https://h"],
            {"type": "http", "url": "https://h", "oauth": {"clientId": "i", "callbackPort": 7777}},
        ),
    ],
)
def test_build_entry(given, words, entry):
    """The options say an entry in Claude Code's shape; the transport is guessed by what follows the name."""
    assert build_entry(options(**given), words) == entry


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, []),
        ({}, ["https://h", "extra"]),
        ({"env": ["A=1"]}, ["https://h"]),
        ({"header": ["A: b"]}, ["npx"]),
        ({"client_id": "i"}, ["npx"]),
        ({"env": ["canary"]}, ["npx"]),
        ({"env": ["=canary"]}, ["npx"]),
        ({"header": ["canary"]}, ["https://h"]),
        ({"timeout": 0.5}, ["npx"]),
        ({"timeout": float("nan")}, ["npx"]),
    ],
)
def test_options_that_do_not_fit(given, words):
    """What does not fit together is a usage error, and a value that may be a secret is not repeated."""
    with pytest.raises(UsageError) as caught:
        build_entry(options(**given), words)

    assert "canary" not in str(caught.value)
