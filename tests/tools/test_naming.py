"""Callable names: made, bounded and parsed back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.naming import (
    MAX_CALLABLE_NAME_CHARS,
    callable_name,
    normalise,
    normalise_server,
    parse,
    server_prefix,
    unknown_server,
)

SAFE = re.compile(r"[a-zA-Z0-9_-]*\Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my-database", "my-database"),
        ("my.server name", "my_server_name"),
        ("user/update", "user_update"),
        ("a..b", "a__b"),
        ("数据库", "___"),
        ("🚀x", "_x"),
        ("", ""),
        ("tab\tline\n", "tab_line_"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    """Each character outside the allowed set becomes one underscore, never fewer (S175, S176, fault 81)."""
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        ("my-database", "query", "mcp__my-database__query"),
        ("github", "create-pull-request", "mcp__github__create-pull-request"),
        ("postgres", "query", "mcp__postgres__query"),
        ("admin", "admin.tools.list", "mcp__admin__admin_tools_list"),
        ("plugin_my-plugin_database-tools", "query", "mcp__plugin_my-plugin_database-tools__query"),
        ("constructor", "__proto__", "mcp__constructor____proto__"),
    ],
)
def test_callable_name(server: str, tool: str, expected: str) -> None:
    """A callable name is ``mcp__server__tool`` of the normal forms (S174, S178)."""
    assert callable_name(server, tool) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__a__b", ("a", "b")),
        ("mcp__a__b__c", ("a", "b__c")),
        ("mcp__a", ("a", None)),
        ("mcp__a__", ("a", "")),
        ("mcp____x", None),
        ("mcp__", None),
        ("mcp", None),
        ("", None),
        ("Mcp__a__b", None),
        ("a__b__c", None),
        ("mcp_a_b", None),
    ],
)
def test_parse(name: str, expected: tuple[str, str | None] | None) -> None:
    """Parsing splits on double underscores: head, server, and the rest is the tool (S179)."""
    assert parse(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude.ai Slack", "claude_ai_Slack"),
        ("claude.ai Slack (2)", "claude_ai_Slack_2"),
        ("claude.ai", "claude_ai"),
        ("Slack (2)", "Slack__2_"),
    ],
)
def test_normalise_server(name: str, expected: str) -> None:
    """Connector names alone collapse and trim underscores, so that they parse back (S181)."""
    assert normalise_server(name) == expected
    assert server_prefix(name) == f"mcp__{expected}__"


@given(st.text())
def test_normalise_keeps_the_number_of_characters(text: str) -> None:
    """Normalising replaces one for one, yields safe characters only, and is idempotent."""
    normal = normalise(text)

    assert len(normal) == len(text)
    assert SAFE.match(normal)
    assert normalise(normal) == normal


SERVERS = st.text(min_size=1, max_size=20).filter(lambda server: "__" not in normalise_server(server) + "_")


@given(SERVERS, st.text(min_size=1, max_size=30))
def test_names_make_a_round_trip(server: str, tool: str) -> None:
    """A name parses back into both normal forms, unless that of the server holds or ends a separator (S180)."""
    name = callable_name(server, tool)

    assert parse(name) == (normalise_server(server), normalise(tool))
    assert name.startswith(server_prefix(server))


@given(st.text(max_size=200), st.text(max_size=200))
def test_names_are_bounded_safe_and_stable(server: str, tool: str) -> None:
    """A name never exceeds its bound, holds safe characters only, and is the same each time (S185, fault 82)."""
    name = callable_name(server, tool)

    assert len(name) <= MAX_CALLABLE_NAME_CHARS
    assert SAFE.match(name)
    assert callable_name(server, tool) == name


def test_long_names_that_begin_alike_stay_apart() -> None:
    """Two long tools of one server that differ in their last character get two names (fault 82)."""
    server, tool = "s" * 40, "t" * 59

    names = {callable_name(server, tool + end) for end in "ab"}

    assert len(names) == 2
    assert {len(name) for name in names} == {64}
    assert all(name.startswith(server_prefix(server)) for name in names)


def test_a_longer_bound_leaves_the_name_whole() -> None:
    """The bound is the caller's to choose."""
    assert callable_name("s" * 40, "t" * 60, max_chars=128) == f"mcp__{'s' * 40}__{'t' * 60}"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("githb", ("github", "gitlab")), ("time", ("time-zone",)), ("xyz", ())],
)
def test_an_unknown_server_has_neighbours(name: str, nearest: tuple[str, ...]) -> None:
    """The error for a name that no server has tells at most three that look like it, the likest first."""
    error = unknown_server(name, {"gitlab": 1, "github": 2, "time-zone": 3})

    assert (error.name, error.nearest) == (name, nearest)
