"""Tests of the rules about calls: their texts, and what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.choices import RuleText
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.tools.catalog import tools_from_items
from mcp_actors.tools.naming import ToolNames
from mcp_actors.tools.permission_rules import Rule, Verdict, read_rules
from mcp_actors.tools.permissions import Mode, PermissionRequest, decide

T = "mcp__s__t"
ASK, DENY = Verdict.ASK, Verdict.DENY


def named(name: str) -> ToolNames:
    """A tool of which no more is known than its name."""
    return ToolNames(name, name)


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        ("mcp__github", "mcp__github__create_issue", True),
        ("mcp__github__*", "mcp__github__create_issue", True),
        ("mcp__github__create_issue", "mcp__github__create_issue", True),
        ("mcp__github__get_*", "mcp__github__get_user", True),
        ("mcp__github__get_*", "mcp__github__set_user", False),
        ("mcp__git", "mcp__github__create_issue", False),
        ("mcp__git__*", "mcp__github__create_issue", False),
        ("mcp__my_db", "mcp__my_db__query", True),
        ("mcp__github", "mcp__github", True),
        ("*", "mcp__github__create_issue", True),
        ("*", "Write", True),
        ("mcp__*", "mcp__github__create_issue", True),
        ("mcp__*", "Write", False),
        ("*__create_*", "mcp__github__create_issue", True),
        ("Write", "mcp__github__Write", False),
        ("mcp__github__Write", "Write", False),
        ("mcp__github__a.b", "mcp__github__axb", False),
        ("mcp__github__[ab]", "mcp__github__a", False),
        ("mcp__github__?", "mcp__github__a", False),
    ],
)
def test_rules_name_tools(rule: str, name: str, expected: bool) -> None:
    """A rule means a server, a tool, or what a star stands for; other characters stand for themselves (S229, S231)."""
    decision = decide(PermissionRequest(name), read_rules({"deny": [rule]}), Mode.BYPASS)

    assert (decision.verdict is DENY) is expected


LONG = "a-server-with-a-name-that-leaves-hardly-any-room-for-tools"


@pytest.mark.parametrize(
    ("server", "tool", "rule", "expected"),
    [
        ("my.db", "read all", "mcp__my.db", True),
        ("my.db", "read all", "mcp__my.db__*", True),
        ("my.db", "read all", "mcp__my.db__read all", True),
        ("my.db", "read all", "mcp__my_db__read_all", True),
        ("my.db", "read all", "mcp__my.d", False),
        ("claude.ai Slack (2)", "post", "mcp__claude.ai Slack (2", False),
        ("claude.ai  Slack", "post", "mcp__claude.ai  Slack__post", True),
        ("grüße", "t", "mcp__grüße", True),
        ("s", "t\u200b", "mcp__s__t\u200b", True),
        ("s", "t", "mcp__s__t\u200b", True),
        ("a__b", "t", "mcp__a__b", True),
        ("a", "b__t", "mcp__a__b", False),
        ("my_", "t", "mcp__my_", True),
        ("my_", "t", "mcp__my", False),
        ("db", "x" * 100, f"mcp__db__{'x' * 100}", True),
        ("db", "x" * 100, f"mcp__db__{'x' * 99}", False),
        ("db", "x" * 100, f"mcp__db__{'x' * 80}*", True),
        (LONG, "t", f"mcp__{LONG}", True),
        (LONG, "t", f"mcp__{LONG}__t", True),
        (LONG, "t", f"mcp__{LONG}__*", True),
        (LONG, "t", f"mcp__{LONG}__u", False),
        (LONG, "t", f"mcp__{LONG[:-1]}", False),
    ],
)
@pytest.mark.parametrize("verdict", Verdict)
def test_rules_may_be_written_with_the_names_that_people_know(
    server: str, tool: str, rule: str, expected: bool, verdict: Verdict
) -> None:
    """S231, fault 82: raw names mean their normal forms, and names that the bound cuts may be written whole."""
    [known], _ = tools_from_items(server, [encode({"name": tool})])
    rules = read_rules({str(verdict): [rule, known.callable_name + "-other"]})

    assert (rules.first(verdict, known.names, {}) is not None) is expected
    assert (rules.hiding(known.names) is not None) is (expected and verdict is DENY)
    assert read_rules({str(verdict): [known.callable_name]}).first(verdict, known.names, {}) is not None


@pytest.mark.parametrize(
    ("rule", "is_taken"),
    [
        ("mcp__github", True),
        ("mcp__github__*", True),
        ("mcp__github__get_*", True),
        ("mcp__github__*_user", True),
        ("Write", True),
        ("*", False),
        ("mcp__*", False),
        ("mcp__git*", False),
        ("mcp__git*__x", False),
        ("*__x", False),
        ("mcp__github__x(a:b)", False),
        ("", False),
        ("(a:b)", False),
        ("mcp__github__x(a:b", False),
    ],
)
def test_what_an_allow_rule_may_be(rule: str, is_taken: bool) -> None:
    """In an allow rule a star only follows a literal server, and parameters grant nothing (S232, S233)."""
    rules = read_rules({"allow": [rule]})

    assert (len(rules.allow), len(rules.warnings)) == ((1, 0) if is_taken else (0, 1))


@pytest.mark.parametrize(
    ("rule", "arguments", "expected"),
    [
        ("mcp__db__query(mode:write)", {"mode": "write"}, True),
        ("mcp__db__query(mode:write)", {"mode": "read"}, False),
        ("mcp__db__query(mode:write)", {}, False),
        ("mcp__db__query(mode:w*)", {"mode": "write"}, True),
        ("mcp__db__*(sql:*DROP*)", {"sql": "a;\nDROP TABLE x"}, True),
        ("mcp__db(mode:write)", {"mode": "write"}, True),
        ("mcp__db__query(url:https://a:1/)", {"url": "https://a:1/"}, True),
        ("mcp__db__query(n:3)", {"n": 3}, True),
        ("mcp__db__query(n:3)", {"n": 3.0}, True),
        ("mcp__db__query(n:3.0)", {"n": 3}, True),
        ("mcp__db__query(n:3)", {"n": 3.5}, False),
        ("mcp__db__query(n:1)", {"n": True}, False),
        ("mcp__db__query(b:true)", {"b": True}, True),
        ("mcp__db__query(b:null)", {"b": None}, True),
        ("mcp__db__query(o:*)", {"o": {"x": 1}}, False),
        ("mcp__db__query(x:1)", {"o": {"x": 1}}, False),
        ("mcp__db__query(*)", {}, True),
    ],
)
def test_parameter_rules(rule: str, arguments: dict[str, object], expected: bool) -> None:
    """A deny or ask rule may look at one top-level scalar, with stars (S233)."""
    for key, verdict in (("deny", DENY), ("ask", ASK)):
        decision = decide(PermissionRequest("mcp__db__query", arguments), read_rules({key: [rule]}), Mode.BYPASS)

        assert (decision.verdict is verdict) is expected


@pytest.mark.parametrize(
    ("rule", "denied"),
    [
        ("mcp__s__t(sql drop)", {"mcp__s__t"}),
        ("mcp__s__t(:drop)", {"mcp__s__t"}),
        ("mcp__s__t(sql:drop", {"mcp__s__t"}),
        ("mcp__s(sql:drop", {"mcp__s__t", "mcp__s__u"}),
        ("mcp__s__t(sql:" + "x" * 3000 + ")", {"mcp__s__t"}),
        ("(sql:drop)", {"mcp__s__t", "mcp__s__u", "Read"}),
        ("mcp__s__t)(x:y)", {"mcp__s__t", "mcp__s__u", "Read"}),
        ("x" * 3000, {"mcp__s__t", "mcp__s__u", "Read"}),
        ("", set()),
    ],
)
@pytest.mark.parametrize("verdict", [ASK, DENY])
def test_a_rule_that_cannot_be_understood_means_more_not_less(rule: str, denied: set[str], verdict: Verdict) -> None:
    """A broken deny or ask rule means all calls of its tool, or every tool, in every mode; a warning says so (S233)."""
    rules = read_rules({str(verdict): [rule], "allow": ["mcp__s", "Read"]})

    decided = {
        name: decide(PermissionRequest(name), rules, Mode.BYPASS).verdict for name in ("mcp__s__t", "mcp__s__u", "Read")
    }
    assert {name for name, found in decided.items() if found is verdict} == denied
    assert len(rules.warnings) == 1
    assert len(rules.warnings[0]) < 300


def test_parentheses_of_a_hosts_own_tools_are_its_own_language() -> None:
    """A rule such as `Bash(git status)` is no mistake: nobody is warned; as an allow it is nothing, as a deny all."""
    rules = read_rules({"allow": ["Bash(git status)", "Read(~/x/**)"], "deny": ["Read(./.env)"]})

    assert ([rule.text for rule in rules.allow], rules.warnings) == ([], ())
    assert decide(PermissionRequest("Read"), rules, Mode.BYPASS).verdict is DENY


@pytest.mark.parametrize(
    ("rule", "hides"), [(T, True), ("mcp__s", True), ("*", True), ("mcp__s__t(a:b)", False), ("mcp__x", False)]
)
def test_deny_rules_hide(rule: str, hides: bool) -> None:
    """A deny rule without parameters takes the tool off the list; a scoped one only blocks calls (S236)."""
    assert (read_rules({"deny": [rule]}).hiding(named(T)) is not None) is hides


def test_rules_of_a_repository_need_trust() -> None:
    """Allow rules of a folder that nobody trusts are skipped; its ask and deny rules count (S240)."""
    written = RuleText(T, "project settings", is_trusted=False)

    rules = read_rules({"allow": [written], "ask": [written], "deny": [written]})

    assert (len(rules.allow), len(rules.ask), len(rules.deny)) == (0, 1, 1)
    assert "not trusted" in rules.warnings[0]


def test_keys_and_their_aliases() -> None:
    """Settings and programs spell the lists differently; what is no list is told (S230)."""
    rules = read_rules({"allowedTools": ["A"], "disallowedTools": ["B"], "deniedTools": ["C", "C"], "allowed": ["D"]})

    assert [rule.text for rule in (*rules.allow, *rules.deny)] == ["A", "B", "C"]
    assert rules.warnings == ("'allowed' is no list of rules",)


def naive(pattern: str, text: str) -> bool:
    """A glob by the book: a table of which prefixes match."""
    reach = {0}
    for sign in pattern:
        if sign == "*":
            reach = {index for start in reach for index in range(start, len(text) + 1)}
        else:
            reach = {index + 1 for index in reach if text[index : index + 1] == sign}
    return len(text) in reach


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_stars_mean_anything(pattern: str, text: str) -> None:
    """A star stands for any run of characters, and nothing else is special."""
    assert Rule(pattern, f"x{pattern}").means(named(f"x{text}")) is naive(pattern, text)


def test_a_hostile_pattern_is_quick() -> None:
    """Many stars over a long text take linear steps."""
    rule = Rule("r", "x" + "*a" * 500 + "*b")

    assert not rule.means(named("x" + "a" * 20_000))
