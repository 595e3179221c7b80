"""Sampling and roots: what is asked and what is said."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.elicitation.handlers import (
    MAX_ROOTS,
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
from mcp_actors.elicitation.requests import INVALID_PARAMS, RefusedRequest
from mcp_actors.errors import ConfigError, LocalProtocolError

LIMITS = SamplingLimits(max_tokens=100, max_request_bytes=2000)
REQUEST = SamplingRequest("s", (), 10)
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}


def use(*ids):
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "n", "input": {}} for i in ids]}


def result(*ids):
    return {"role": "user", "content": [{"type": "tool_result", "toolUseId": i, "content": []} for i in ids]}


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


@pytest.mark.parametrize(
    "sent",
    [
        {},
        params(maxTokens=0),
        params(maxTokens=True),
        params(maxTokens="10"),
        params(maxTokens=1.5),
        params(maxTokens=float("inf")),
        params(tools=[]),
        params(toolChoice={"mode": "auto"}),
        {"maxTokens": 1, "messages": []},
        {"maxTokens": 1, "messages": "x"},
        params("x"),
        params({"role": "system", "content": HELLO["content"]}),
        params({"role": "user"}),
        params({"role": "user", "content": []}),
        params({"role": "user", "content": "text"}),
        params({"role": "user", "content": {"type": "text", "text": "x" * 2000}}),
        params(HELLO, use("1")),
        params(HELLO, use("1"), HELLO),
        params(HELLO, use("1", "2"), result("1")),
        params(HELLO, use("1"), result("1", "2")),
        params(HELLO, use("1"), result("1", "1")),
        params(HELLO, use("1", "1"), result("1", "1")),
        params(result("1")),
        params({**use("1"), "role": "user"}, result("1")),
        params(HELLO, use("1"), {"role": "user", "content": [*result("1")["content"], HELLO["content"]]}),
    ],
)
def test_what_breaks_the_rules_is_refused(sent):
    """Missing parts, undeclared tools, unmatched tool results and huge requests are invalid params (F11)."""
    refused = read_sampling("s", sent, LIMITS)

    assert isinstance(refused, RefusedRequest)
    assert refused.code == INVALID_PARAMS


def test_tools_that_were_declared_may_be_used():
    """A host that declared tools gets them, and matched tool results."""
    sent = params(HELLO, use("1", "2"), result("2", "1"), HELLO, tools=[{"name": "n"}])

    assert isinstance(read_sampling("s", sent, evolve(LIMITS, has_tools=True)), SamplingRequest)


def test_an_answer_is_written():
    """The result carries role, content, model and why it stopped."""
    block = {"type": "text", "text": "hi"}

    assert sampling_result(REQUEST, SamplingAnswer(block, "m")) == {
        "role": "assistant",
        "content": block,
        "model": "m",
        "stopReason": "endTurn",
    }
    assert "stopReason" not in sampling_result(REQUEST, SamplingAnswer([block], "m", None))


@pytest.mark.parametrize(
    "answer",
    [
        SamplingAnswer("text", "m"),
        SamplingAnswer([], "m"),
        SamplingAnswer({"type": "text"}, "m", role="system"),
        SamplingAnswer({"type": "tool_use", "id": "1", "name": "n", "input": {}}, "m", "toolUse"),
    ],
)
def test_a_hosts_malformed_answer_is_a_bug(answer):
    """What could not be read by a server is never sent."""
    with pytest.raises(LocalProtocolError):
        sampling_result(REQUEST, answer)


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
