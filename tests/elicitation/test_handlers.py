"""Sampling and roots: what is asked and what is said."""

from __future__ import annotations

import pytest

from mcp_actors.elicitation.handlers import (
    Deprecations,
    Root,
    SamplingAnswer,
    SamplingLimits,
    SamplingRequest,
    read_roots,
    read_sampling,
    roots_result,
    sampling_result,
)
from mcp_actors.errors import ConfigError
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS
from mcp_actors.protocol.question_rules import MAX_ROOTS, Refused

LIMITS = SamplingLimits(max_tokens=100, max_request_bytes=2000)
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}


def params(*messages, **members):
    return {"messages": list(messages or (HELLO,)), "maxTokens": 10, **members}


@pytest.mark.parametrize(("asked", "granted"), [(10, 10), (100, 100), (101, 100), (10.0, 10), (1e9, 100)])
def test_a_server_gets_no_more_tokens_than_allowed(asked, granted):
    """What it asks for is respected, the limit too (rule 1, F11)."""
    request = read_sampling("s", params(maxTokens=asked), LIMITS)

    assert request.max_tokens == granted


def test_a_request_is_read():
    """The parts that a host needs are typed, the rest is there as sent."""
    sent = params(
        systemPrompt="be kind",
        temperature=0.5,
        stopSequences=["x", 3],
        modelPreferences={"hints": [{"name": "small"}, {}, "bad"]},
        metadata={"k": 1},
    )

    request = read_sampling("s", sent, LIMITS)

    assert isinstance(request, SamplingRequest)
    assert (request.server, request.messages, request.system_prompt) == ("s", (HELLO,), "be kind")
    assert (request.temperature, request.stop_sequences, request.model_hints) == (0.5, ("x",), ("small",))
    assert request.params is sent


def test_a_huge_request_is_refused():
    """The whole request counts, not only what a model would read (rule 1)."""
    refused = read_sampling("s", params(metadata={"x": "y" * 2000}), LIMITS)

    assert isinstance(refused, Refused)
    assert refused.code == INVALID_PARAMS


def test_an_answer_is_written():
    """The result carries role, content, model and why it stopped."""
    block = {"type": "text", "text": "hi"}

    assert sampling_result(SamplingAnswer(block, "m")) == {
        "role": "assistant",
        "content": block,
        "model": "m",
        "stopReason": "endTurn",
    }
    assert "stopReason" not in sampling_result(SamplingAnswer([block], "m", None))


def test_roots_are_listed():
    """Absolute file URIs are exposed as they are, names where there are some."""
    roots = read_roots([Root("file:///home/me/a%20b", "work"), Root("file://localhost/srv"), Root("file:///C:/x")])

    assert roots_result(roots) == {
        "roots": [
            {"uri": "file:///home/me/a%20b", "name": "work"},
            {"uri": "file://localhost/srv"},
            {"uri": "file:///C:/x"},
        ]
    }


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/home/me",
        "https://example.com/",
        "file:/home/me",
        "file://server/share",
        "file://relative",
        "file:///a/../etc",
        "file:///a/%2e%2e/etc",
        "file:///a/%2E./etc",
        "file:///a?x=1",
        "file:///a#x",
        "file:///\u00e4",
    ],
)
def test_a_root_is_an_absolute_file_uri(uri):
    """Other schemes, other machines, relative and climbing paths are refused (spec_client 9.3)."""
    with pytest.raises(ConfigError):
        read_roots([Root(uri)])


def test_roots_are_bounded():
    """A list that grows without end is a mistake."""
    with pytest.raises(ConfigError):
        read_roots([Root("file:///x")] * (MAX_ROOTS + 1))


def test_deprecated_features_are_told_once():
    """Each feature of each server is noted the first time it is used (spec_client 9.6)."""
    deprecations = Deprecations()

    notes = [deprecations.note(server, feature) for server, feature in [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y")]]

    assert [note is not None for note in notes] == [True, False, True, True]
