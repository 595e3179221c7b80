"""Tests of `config.settings_texts`."""

from __future__ import annotations

import json

import pytest

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.choices import OPEN_CHOICES, Choices, SettingsLayer, SettingsText
from mcp_actors.config.policy import decide
from mcp_actors.config.settings_texts import merge_settings, parse_settings, read_choices
from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget

USER, PROJECT, LOCAL = SettingsLayer.USER, SettingsLayer.PROJECT, SettingsLayer.LOCAL
LINE, MANAGED = SettingsLayer.COMMAND_LINE, SettingsLayer.MANAGED
SPEC = ServerSpec(name="s", target=StdioTarget("npx"))


def read(*layers: tuple[SettingsLayer, object], environ: dict[str, str] | None = None, **options: bool) -> Choices:
    texts = [
        SettingsText(value if value is None or isinstance(value, bytes) else json.dumps(value).encode(), f"f{i}", layer)
        for i, (layer, value) in enumerate(layers)
    ]
    return read_choices(texts, environ or {}, **options)


def test_no_settings_leave_everything_open() -> None:
    """Without files nothing is chosen and nothing blocked."""
    assert read() == OPEN_CHOICES


@pytest.mark.parametrize("layer", list(SettingsLayer))
@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_repository_never_approves_itself(layer: SettingsLayer, is_trusted: bool) -> None:
    """A yes of the project's own files counts in a trusted folder only; a no counts from everywhere (S024)."""
    settings = {
        "enabledMcpjsonServers": ["a"],
        "disabledMcpjsonServers": ["b"],
        "enableAllProjectMcpServers": True,
    }

    choices = read((layer, settings), is_trusted=is_trusted)

    counts = is_trusted or layer not in (PROJECT, LOCAL)
    enabled = frozenset({"a"}) if counts else frozenset()
    assert choices.approvals == Approvals(enabled=enabled, disabled=frozenset({"b"}), is_all_enabled=counts)
    assert [note.code for note in choices.notes] == ([] if counts else ["untrusted-approval"])


@pytest.mark.parametrize("value", ["yes", 1, [], None])
def test_odd_values_approve_nothing(value: object) -> None:
    """Only true is true."""
    choices = read((USER, {"enableAllProjectMcpServers": value, "enabledMcpjsonServers": "a"}))

    assert choices.approvals == Approvals()


def test_servers_in_settings_are_named() -> None:
    """`mcpServers` in a settings file is not read, and a note says where it belongs (S013)."""
    [note] = read((USER, {"mcpServers": {"a": {"command": "x"}}})).notes

    assert (note.code, note.file, note.line) == ("servers-in-settings", "f0", 1)
    assert ".mcp.json" in note.text


@pytest.mark.parametrize("data", [b"{", b"[]", b"", b"\xff", None])
def test_broken_managed_file_closes(data: bytes | None) -> None:
    """A managed file that cannot be read allows nothing, whatever others allow (S059)."""
    allow = {"allowedMcpServers": [{"serverName": "s"}]}

    choices = read((MANAGED, data), (USER, allow), (MANAGED, allow))

    verdict = decide(SPEC, choices.policy)
    assert (verdict.is_allowed, verdict.source) == (False, "f0")
    assert len(choices.problems) == (0 if data is None else 1)


@pytest.mark.parametrize("layer", [USER, PROJECT, LOCAL, LINE])
def test_other_broken_file_is_a_problem(layer: SettingsLayer) -> None:
    """A file of the user that cannot be read is told and blocks nothing."""
    choices = read((layer, b"{"))

    assert len(choices.problems) == 1
    assert decide(SPEC, choices.policy).is_allowed


def test_deny_of_every_layer_counts() -> None:
    """The user's own no holds, and so does everybody else's (S054)."""
    for layer in SettingsLayer:
        choices = read((layer, {"deniedMcpServers": [{"serverName": "s"}]}))
        assert not decide(SPEC, choices.policy).is_allowed


def test_variables_of_settings_reach_policy() -> None:
    """Managed `env` fills allow entries, a user's env only deny entries (S058)."""
    rule = [{"serverCommand": ["${TOOL}"]}]
    env = {"env": {"TOOL": "npx", "N": 1}}

    def allowed(layer: SettingsLayer) -> bool:
        return decide(SPEC, read((layer, env), (MANAGED, {"allowedMcpServers": rule})).policy).is_allowed

    def denied(layer: SettingsLayer) -> bool:
        return not decide(SPEC, read((layer, env), (MANAGED, {"deniedMcpServers": rule})).policy).is_allowed

    assert (allowed(MANAGED), allowed(USER), allowed(PROJECT)) == (True, False, False)
    assert (denied(MANAGED), denied(USER), denied(PROJECT)) == (True, True, False)


@pytest.mark.parametrize(
    ("layers", "environ", "are_off"),
    [
        ([], {}, False),
        ([(PROJECT, {"disableClaudeAiConnectors": True}), (MANAGED, {"disableClaudeAiConnectors": False})], {}, True),
        ([], {"ENABLE_CLAUDEAI_MCP_SERVERS": "false"}, True),
        ([], {"ENABLE_CLAUDEAI_MCP_SERVERS": "true"}, False),
        ([(USER, {"disableClaudeAiConnectors": True})], {"ENABLE_CLAUDEAI_MCP_SERVERS": "true"}, True),
    ],
)
def test_connectors_are_off_when_anybody_says_so(
    layers: list[tuple[SettingsLayer, object]], environ: dict[str, str], are_off: bool
) -> None:
    """True in any source wins, and the variable does the same; neither switches on again (S057)."""
    assert read(*layers, environ=environ).are_connectors_off == are_off


@pytest.mark.parametrize(("layer", "expected"), [(MANAGED, True), (USER, False)])
def test_only_managed_settings_allow_connectors_beside(layer: SettingsLayer, expected: bool) -> None:
    """allowAllClaudeAiMcps is the administrator's (S056)."""
    assert read((layer, {"allowAllClaudeAiMcps": True})).are_connectors_managed == expected


def test_positions_of_problems() -> None:
    """What is wrong in a settings file has its line."""
    [problem] = read((MANAGED, b'{\n "a": 1,\n "allowedMcpServers": "x"}')).problems

    assert (problem.line, problem.column) == (3, 2)


def test_drop_ins_are_joined() -> None:
    """Later single values win, lists are joined, objects go deeper (S062)."""
    pieces = [
        {"a": 1, "list": [1, 2], "o": {"x": 1, "l": ["a"]}, "kind": [1]},
        {"a": 2, "list": [2, 3], "o": {"y": 2, "l": ["b"]}, "kind": "text"},
    ]

    assert merge_settings(pieces) == {"a": 2, "list": [1, 2, 3], "o": {"x": 1, "y": 2, "l": ["a", "b"]}, "kind": "text"}


@pytest.mark.parametrize(
    ("data", "expected"), [(b'{"a": 1} // x', {"a": 1}), (b"[]", None), (b"{", None), (None, None)]
)
def test_parse_settings(data: bytes | None, expected: object) -> None:
    """A settings file is an object, comments allowed, or nothing."""
    assert parse_settings(SettingsText(data, "f", USER)) == expected


def test_policy_of_a_url() -> None:
    """Lists from two managed files add up for remote servers too."""
    lists = [(MANAGED, {"allowedMcpServers": [{"serverUrl": f"https://{host}/*"}]}) for host in "ab"]

    choices = read(*lists)

    for host, expected in [("a", True), ("b", True), ("c", False)]:
        spec = ServerSpec(name="x", target=RemoteTarget(f"https://{host}/mcp"))
        assert decide(spec, choices.policy).is_allowed == expected


HOOKS = {"Elicitation": [{"matcher": "github", "hooks": [{"type": "command", "command": "x"}]}]}


@pytest.mark.parametrize("layer", list(SettingsLayer))
@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_repository_brings_no_program_along(layer: SettingsLayer, is_trusted: bool) -> None:
    """Hooks of the project's own files count in a trusted folder only; others always (S302)."""
    choices = read((layer, {"hooks": HOOKS}), is_trusted=is_trusted)

    counts = is_trusted or layer not in (PROJECT, LOCAL)
    assert choices.hooks == ((HOOKS,) if counts else ())
    assert [note.code for note in choices.notes] == ([] if counts else ["untrusted-hooks"])


@pytest.mark.parametrize(("layer", "counts"), [(USER, True), (MANAGED, True), (LINE, True), (PROJECT, False)])
def test_hooks_are_switched_off_together(layer: SettingsLayer, counts: bool) -> None:
    """`disableAllHooks` silences the hooks of all files, but not where a repository says so."""
    choices = read((USER, {"hooks": HOOKS}), (layer, {"disableAllHooks": True}), is_trusted=True)

    assert choices.hooks == (() if counts else (HOOKS,))


@pytest.mark.parametrize("layer", list(SettingsLayer))
@pytest.mark.parametrize("is_trusted", [False, True])
def test_permissions_keep_whose_they_are(layer: SettingsLayer, is_trusted: bool) -> None:
    """Rules of all files add up, each with its file; a strange repository's is not trusted (S230, S240)."""
    choices = read(
        (USER, {"permissions": {"allow": ["mcp__a"], "deny": ["mcp__b"]}}),
        (layer, {"permissions": {"allow": ["mcp__c"], "ask": ["mcp__d"]}}),
        is_trusted=is_trusted,
    )

    trusted = is_trusted or layer not in (PROJECT, LOCAL)
    written = {key: [(rule.text, rule.is_trusted) for rule in rules] for key, rules in choices.permissions.items()}
    assert written == {
        "allow": [("mcp__a", True), ("mcp__c", trusted)],
        "ask": [("mcp__d", trusted)],
        "deny": [("mcp__b", True)],
    }
    assert all(rule.origin for rules in choices.permissions.values() for rule in rules)


@pytest.mark.parametrize(
    ("section", "kept"),
    [
        (["mcp__a"], {"deny": ["*"]}),
        ("mcp__a", {"deny": ["*"]}),
        (None, {"deny": ["*"]}),
        ({"deny": "mcp__a", "allow": "mcp__b"}, {"allow": ["mcp__b"], "deny": ["mcp__a"]}),
        ({"deny": {"mcp__a": True}, "allow": ["mcp__b"]}, {"allow": ["mcp__b"], "deny": ["*"]}),
        ({"ask": 1, "deny": ["mcp__a"]}, {"ask": ["*"], "deny": ["mcp__a"]}),
        ({"allow": {"mcp__a": True}, "ask": ["mcp__b"]}, {"ask": ["mcp__b"]}),
        ({"deny": [None, "mcp__a", ["mcp__b"]]}, {"deny": ["mcp__a", "*"]}),
        ({"allow": [1, "mcp__a"]}, {"allow": ["mcp__a"]}),
    ],
)
def test_permissions_that_cannot_be_read_grant_nothing(section: object, kept: dict[str, list[str]]) -> None:
    """What may have been a deny or ask rule means every tool, a lost allow nothing; the file's others hold (S230)."""
    choices = read((USER, {"permissions": section}))

    assert {key: [rule.text for rule in rules] for key, rules in choices.permissions.items()} == kept
    assert {note.code for note in choices.notes} == {"invalid-setting"}
    assert all(
        "cannot be read" in rule.origin for rules in choices.permissions.values() for rule in rules if rule.text == "*"
    )


@pytest.mark.parametrize("section", [{}, {"deny": None, "ask": None}, {"deny": []}])
def test_permissions_that_say_nothing_deny_nothing(section: object) -> None:
    """An empty list, a null and a missing key are no rules."""
    choices = read((USER, {"permissions": section}))

    assert (choices.permissions, choices.notes) == ({}, ())


@pytest.mark.parametrize("data", [None, b"{", b"[]"])
@pytest.mark.parametrize("layer", list(SettingsLayer))
def test_a_settings_file_that_cannot_be_read_may_have_denied_any_tool(layer: SettingsLayer, data: bytes | None) -> None:
    """Every tool is denied, and the rule names the file; the rules of other files are kept (S230)."""
    good = SettingsText(b'{"permissions": {"allow": ["mcp__a"]}}', "good.json", USER)

    choices = read_choices([good, SettingsText(data, "bad.json", layer)], {})

    assert [rule.text for rule in choices.permissions["allow"]] == ["mcp__a"]
    assert choices.permissions["deny"] == (("*", "bad.json cannot be read", True),)
    assert [note.code for note in choices.notes] == ["unreadable-settings"]
