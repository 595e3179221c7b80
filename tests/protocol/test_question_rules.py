"""Tests of what servers may ask and what may be answered."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.question_rules import (
    elicitation_mode,
    has_mode,
    refuse_answer,
    refuse_messages,
    refuse_question,
    refuse_root,
)

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
URL = {"mode": "url", "message": "Go", "url": "https://h/x"}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10}
ALL = {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}


@pytest.mark.parametrize(
    ("method", "params", "capabilities", "code"),
    [
        ("roots/list", {}, ALL, None),
        ("roots/list", {}, {}, -32601),
        ("roots/list", {}, {"roots": False}, -32601),
        ("sampling/createMessage", SAMPLE, ALL, None),
        ("sampling/createMessage", SAMPLE, {"sampling": {}}, None),
        ("sampling/createMessage", SAMPLE, {}, -32601),
        ("sampling/createMessage", {**SAMPLE, "tools": []}, {"sampling": {}}, -32602),
        ("sampling/createMessage", {**SAMPLE, "toolChoice": {"mode": "auto"}}, {"sampling": {}}, -32602),
        ("sampling/createMessage", {**SAMPLE, "tools": []}, ALL, None),
        ("sampling/createMessage", {**SAMPLE, "tools": None, "toolChoice": None}, {"sampling": {}}, None),
        ("sampling/createMessage", {"maxTokens": 10}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "messages": []}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "messages": "x"}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": 10.0}, ALL, None),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": 1.5}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": float("inf")}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": "10"}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": True}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "maxTokens": 0}, ALL, -32602),
        ("sampling/createMessage", {**SAMPLE, "messages": [{"role": "user"}]}, ALL, -32602),
        ("elicitation/create", FORM, ALL, None),
        ("elicitation/create", FORM, {"elicitation": {}}, None),
        ("elicitation/create", {**FORM, "mode": "form"}, {"elicitation": {"form": {}}}, None),
        ("elicitation/create", FORM, {"elicitation": {"url": {}}}, -32602),
        ("elicitation/create", FORM, {}, -32601),
        ("elicitation/create", URL, ALL, None),
        ("elicitation/create", URL, {"elicitation": {}}, -32602),
        ("elicitation/create", {**URL, "mode": "telepathy"}, ALL, -32602),
        ("elicitation/create", {**URL, "mode": 5}, ALL, -32602),
        ("elicitation/create", {**URL, "url": None}, ALL, -32602),
        ("elicitation/create", {**FORM, "message": None}, ALL, -32602),
        ("elicitation/create", {"message": "x"}, ALL, -32602),
        ("elicitation/create", {"message": "x", "requestedSchema": {}}, ALL, -32602),
        ("elicitation/create", {"message": "x", "requestedSchema": {"type": "object"}}, ALL, None),
        ("elicitation/create", {"message": "x", "requestedSchema": {"type": "object", "properties": []}}, ALL, -32602),
        ("elicitation/create", {**FORM, "mode": None}, ALL, None),
        ("elicitation/create", {**FORM, "mode": ["form"]}, ALL, -32602),
        ("tools/call", {}, ALL, -32601),
    ],
)
def test_only_declared_kinds_and_modes_are_asked(method, params, capabilities, code):
    """Undeclared kinds are -32601, undeclared modes, tools and malformed questions -32602 (F08, F11)."""
    refused = refuse_question(method, params, capabilities)

    assert (refused and refused.code) == code


@pytest.mark.parametrize(("params", "mode"), [({}, "form"), ({"mode": None}, "form"), (URL, "url"), ({"mode": 5}, "5")])
def test_a_missing_mode_is_form(params, mode):
    """F08: MUST."""
    assert elicitation_mode(params) == mode


def test_an_empty_capability_means_form_alone():
    """``{}`` is what 2025-06-18 declares."""
    assert has_mode({"elicitation": {}}, "form")
    assert not has_mode({"elicitation": {}}, "url")
    assert not has_mode({"elicitation": True}, "form")


def text(role: str, *blocks: dict) -> dict:
    return {"role": role, "content": [*blocks] or {"type": "text", "text": "x"}}


def use(name: str) -> dict:
    return {"type": "tool_use", "id": name, "name": "t", "input": {}}


def result(name: str) -> dict:
    return {"type": "tool_result", "toolUseId": name, "content": []}


@pytest.mark.parametrize(
    ("messages", "is_sound"),
    [
        ([text("user")], True),
        ([], True),
        ([text("user"), text("assistant", use("1"), use("2")), text("user", result("2"), result("1"))], True),
        ([text("assistant", use("1"), {"type": "text", "text": "x"}), text("user", result("1"))], True),
        ([text("assistant", use("1"))], False),
        ([text("assistant", use("1")), text("user")], False),
        ([text("assistant", use("1")), text("user", result("1"), {"type": "text", "text": "x"})], False),
        ([text("assistant", use("1")), text("user", result("2"))], False),
        ([text("assistant", use("1")), text("user", result("1"), result("1"))], False),
        ([text("assistant", use("1"), use("1")), text("user", result("1"))], False),
        ([text("assistant", use("1")), text("assistant", result("1"))], False),
        ([text("user", use("1")), text("user", result("1"))], False),
        ([text("user", result("1"))], False),
        ([text("assistant", {"type": "tool_use"}), text("user", {"type": "tool_result"})], False),
        ([{"role": "system", "content": {}}], False),
        ([{"role": "user", "content": "text"}], False),
        ([{"role": "user", "content": ["text"]}], False),
        ([{"role": "user", "content": []}], False),
        ([{"role": "user", "content": {"text": "no type"}}], False),
        (["hello"], False),
    ],
)
def test_uses_of_tools_are_answered_at_once(messages, is_sound):
    """A message of tool uses is followed by one of exactly their results (F11)."""
    assert (refuse_messages(messages) is None) is is_sound


@pytest.mark.parametrize("uri", ["file:///home/me", "file:///", "file:///C:/work", "file://localhost/x", "FILE:///x"])
def test_local_files_are_roots(uri):
    """E13: file:// URIs only."""
    assert refuse_root(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        None,
        "",
        "/home/me",
        "file:/home/me",
        "file:home",
        "http://h/x",
        "file://server/share",
        "file:///x?y",
        "file:///x#y",
        "file:///a\nb",
        "file:///\u00e4",
        "file:///a/../b",
        "file:///a/%2E%2e/b",
        "file://[/x",
    ],
)
def test_nothing_else_is_a_root(uri):
    """Other schemes, hosts and decorations are refused, before a server hears of them (E13)."""
    assert refuse_root(uri)
    assert refuse_answer("roots/list", {}, {"roots": [{"uri": "file:///ok"}, {"uri": uri}]})


@pytest.mark.parametrize(
    ("method", "params", "answer", "is_sound"),
    [
        ("roots/list", {}, {}, False),
        ("roots/list", {}, None, False),
        ("roots/list", {}, [], False),
        ("vendor/ask", {}, {"any": "thing"}, True),
        ("roots/list", {}, {"roots": ["file:///x"]}, False),
        ("sampling/createMessage", {}, {**text("assistant"), "model": "m"}, True),
        ("sampling/createMessage", {}, text("assistant"), False),
        ("sampling/createMessage", {}, {"role": "robot", "model": "m", "content": {}}, False),
        ("sampling/createMessage", {}, {"role": "assistant", "model": "m"}, False),
        ("sampling/createMessage", {}, {**text("assistant", use("1")), "model": "m"}, False),
        ("sampling/createMessage", {"tools": [{}]}, {**text("assistant", use("1")), "model": "m"}, True),
        ("elicitation/create", FORM, {"action": "decline"}, True),
        ("elicitation/create", FORM, {"action": "cancel"}, True),
        (
            "elicitation/create",
            FORM,
            {"action": "accept", "content": {"a": "x", "b": 1.5, "c": True, "d": ["x"]}},
            True,
        ),
        ("elicitation/create", FORM, {"action": "accept"}, False),
        ("elicitation/create", FORM, {"action": "accept", "content": {"a": {}}}, False),
        ("elicitation/create", FORM, {"action": "accept", "content": {"a": [1]}}, False),
        ("elicitation/create", FORM, {"action": "decline", "content": {}}, False),
        ("elicitation/create", URL, {"action": "accept"}, True),
        ("elicitation/create", URL, {"action": "accept", "content": {}}, False),
        ("elicitation/create", FORM, {"action": "ok"}, False),
    ],
)
def test_answers_have_their_shapes(method, params, answer, is_sound):
    """What a handler made is checked before it is sent."""
    assert (refuse_answer(method, params, answer) is None) is is_sound
