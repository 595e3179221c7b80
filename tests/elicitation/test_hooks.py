"""Hooks as data: read, matched, told."""

from __future__ import annotations

import pytest

from mcp_actors.elicitation.fields import Form
from mcp_actors.elicitation.hooks import (
    CommandHook,
    Hook,
    HookContext,
    HookEvent,
    Hooks,
    HttpHook,
    ToolHook,
    expand_headers,
    fill_input,
    hook_input,
    matches_server,
    read_hooks,
)
from mcp_actors.elicitation.requests import DECLINED, Action, Answer, InputRequest, Kind
from mcp_actors.elicitation.urls import JudgedUrl

BEFORE, AFTER = HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT


@pytest.mark.parametrize(
    ("matcher", "fitting", "others"),
    [
        ("", ["github", "x"], []),
        ("*", ["github", "x"], []),
        ("github", ["github"], ["github2", "GitHub", "my github"]),
        ("github|gitlab", ["github", "gitlab"], ["git"]),
        ("github, gitlab", ["github", "gitlab"], ["github, gitlab"]),
        ("git.*", ["github", "my-gitlab"], ["hub"]),
        ("^git", ["github"], ["my-git"]),
        ("(?i)GITHUB", ["github"], ["x"]),
    ],
)
def test_a_matcher_fits_names_or_is_a_pattern(matcher, fitting, others):
    """Plain characters are exact names, anything else a pattern that is found anywhere (S303)."""
    assert [name for name in [*fitting, *others] if matches_server(matcher, name)] == fitting


def test_hooks_are_read():
    """All three kinds are read, with their defaults (S302, S309, S311-S313)."""
    read = read_hooks(
        {
            "Elicitation": [
                {
                    "matcher": "github",
                    "hooks": [
                        {"type": "command", "command": "./fill"},
                        {"type": "command", "command": "/bin/fill", "args": ["a b"], "timeout": 5},
                        {"type": "http", "url": "https://h/", "headers": {"X": "$Y"}, "allowedEnvVars": ["Y"]},
                        {"type": "mcp_tool", "server": "audit", "tool": "log", "input": {"m": "${message}"}},
                    ],
                }
            ],
            "ElicitationResult": [{"hooks": [{"type": "command", "command": "mask"}]}],
            "PreToolUse": "not ours",
        }
    )

    assert read.warnings == ()
    assert read.hooks == (
        Hook(BEFORE, "github", CommandHook("./fill", None, 600.0)),
        Hook(BEFORE, "github", CommandHook("/bin/fill", ("a b",), 5.0)),
        Hook(BEFORE, "github", HttpHook("https://h/", (("X", "$Y"),), ("Y",), 600.0)),
        Hook(BEFORE, "github", ToolHook("audit", "log", {"m": "${message}"}, 600.0)),
        Hook(AFTER, "", CommandHook("mask")),
    )


COMMAND = {"type": "command", "command": "x"}


@pytest.mark.parametrize(
    ("section", "place"),
    [
        ([], "hooks"),
        ({"Elicitation": {}}, "hooks.Elicitation"),
        ({"Elicitation": [3]}, "hooks.Elicitation[0]"),
        ({"Elicitation": [{"matcher": "(", "hooks": [COMMAND]}]}, "hooks.Elicitation[0]"),
        ({"Elicitation": [{"matcher": 1, "hooks": [COMMAND]}]}, "hooks.Elicitation[0]"),
        ({"Elicitation": [{"hooks": {}}]}, "hooks.Elicitation[0].hooks"),
        *(
            ({"Elicitation": [{"hooks": [entry]}]}, "hooks.Elicitation[0].hooks[0]")
            for entry in (
                "x",
                {},
                {"type": "prompt", "prompt": "x"},
                {"type": "command"},
                {**COMMAND, "args": "x"},
                {**COMMAND, "args": [1]},
                {**COMMAND, "timeout": 0},
                {**COMMAND, "timeout": True},
                {**COMMAND, "timeout": "5"},
                {"type": "http", "url": ""},
                {"type": "http", "url": "https://h/", "headers": {"X": 1}},
                {"type": "http", "url": "https://h/", "allowedEnvVars": "X"},
                {"type": "mcp_tool", "server": "a"},
                {"type": "mcp_tool", "server": "a", "tool": "b", "input": []},
            )
        ),
    ],
)
def test_a_hook_that_cannot_be_read_is_a_warning(section, place):
    """It alone is left out, and its place is named (rule 1)."""
    if isinstance(section, dict):
        section = {**section, "ElicitationResult": [{"hooks": [COMMAND]}]}

    read = read_hooks(section)

    assert [warning.partition(": ")[0] for warning in read.warnings] == [place]
    assert len(read.hooks) == isinstance(section, dict)


def test_no_hooks_are_no_warning():
    """A file without hooks says nothing."""
    assert read_hooks(None) == Hooks()


def test_matching_hooks_are_selected_once():
    """Those of the event that fit the server, in order, identical ones once (S310)."""
    a, b = CommandHook("a"), CommandHook("b")
    hooks = Hooks((Hook(BEFORE, "", b), Hook(BEFORE, "github", a), Hook(BEFORE, "*", b), Hook(AFTER, "", a)))

    assert hooks.select(BEFORE, "github") == (b, a)
    assert hooks.select(BEFORE, "other") == (b,)
    assert hooks.select(AFTER, "other") == (a,)


def test_a_tool_of_the_asking_server_is_not_asked():
    """It would ask again, and for ever (S313)."""
    hooks = Hooks((Hook(BEFORE, "", ToolHook("github", "t")),))

    assert hooks.select(BEFORE, "github") == ()
    assert len(hooks.select(BEFORE, "other")) == 1


FORM = InputRequest("github", 1, Kind.FORM, "who?", form=Form(), schema={"type": "object"})
URL = InputRequest("pay", 1, Kind.URL, "pay", url=JudgedUrl("https://p/", "p"), elicitation_id="e")
COMMON = {"session_id": "s", "transcript_path": "", "cwd": "/w", "permission_mode": "default"}


@pytest.mark.parametrize(
    ("request_", "answer", "told"),
    [
        (
            FORM,
            None,
            {
                "hook_event_name": "Elicitation",
                "mcp_server_name": "github",
                "mode": "form",
                "message": "who?",
                "requested_schema": {"type": "object"},
            },
        ),
        (
            URL,
            None,
            {
                "hook_event_name": "Elicitation",
                "mcp_server_name": "pay",
                "mode": "url",
                "message": "pay",
                "url": "https://p/",
                "elicitation_id": "e",
            },
        ),
        (
            FORM,
            Answer(Action.ACCEPT, {"a": 1}),
            {
                "hook_event_name": "ElicitationResult",
                "mcp_server_name": "github",
                "mode": "form",
                "action": "accept",
                "content": {"a": 1},
            },
        ),
        (
            URL,
            DECLINED,
            {
                "hook_event_name": "ElicitationResult",
                "mcp_server_name": "pay",
                "mode": "url",
                "action": "decline",
                "elicitation_id": "e",
            },
        ),
    ],
)
def test_what_a_hook_is_told(request_, answer, told):
    """The documented fields in snake case, those of the event and the common ones (S304, S305, S306)."""
    assert hook_input(HookContext(session_id="s", cwd="/w"), request_, answer) == COMMON | told


def test_a_tools_input_is_filled_in():
    """Paths stand for what the hook is told; a lone path keeps its type, an unknown one is empty."""
    told = {"message": "m", "content": {"n": 3, "deep": {"x": True}}}

    filled = fill_input(
        {"a": "say ${message}!", "b": ["${content.n}", 7], "c": {"d": "${content.deep.x}"}, "e": "${no.x}"}, told
    )

    assert filled == {"a": "say m!", "b": [3, 7], "c": {"d": True}, "e": ""}


def test_headers_name_allowed_variables_only():
    """A variable that is not allowed, or not set, is empty (S312)."""
    hook = HttpHook("https://h/", (("Authorization", "Bearer ${T}"), ("X", "$HOME-$U")), ("T", "U"))

    headers = expand_headers(hook, {"T": "t", "HOME": "/h"})

    assert headers == (("Authorization", "Bearer t"), ("X", "-"))


def test_a_hooks_headers_are_not_shown():
    """They may hold a secret: no repr shows them, nor the URL."""
    assert "canary" not in repr(HttpHook("https://h/?canary", (("A", "canary"),)))
