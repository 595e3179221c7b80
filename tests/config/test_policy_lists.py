"""The allow and deny lists of settings files: what is read, and what is not understood."""

from __future__ import annotations

import pytest

from mcp_actors.config.notes import Findings
from mcp_actors.config.policy import decide
from mcp_actors.config.policy_lists import PolicySource, combine, parse_policy
from mcp_actors.config.specs import ServerSpec, StdioTarget

NAME = {"serverName": "s"}
PROGRAM = ServerSpec(name="s", target=StdioTarget("npx", ("-y", "srv")))


def source(settings: object, **variables: dict[str, str]) -> PolicySource:
    """A managed file's lists."""
    return parse_policy(settings, Findings("m"), is_managed=True, environ={}, **variables)


BAD_ENTRIES = [
    "s",
    {},
    {"serverName": "s", "serverUrl": "https://h"},
    {"name": "s"},
    {"serverName": ""},
    {"serverName": 1},
    {"serverCommand": "npx"},
    {"serverCommand": []},
    {"serverCommand": ["npx", 1]},
    {"serverUrl": ""},
    {"serverUrl": ["https://h"]},
    None,
]


@pytest.mark.parametrize("bad", BAD_ENTRIES)
@pytest.mark.parametrize("key", ["allowedMcpServers", "deniedMcpServers"])
@pytest.mark.parametrize("is_managed", [True, False])
def test_bad_entry_is_stripped(bad: object, key: str, is_managed: bool) -> None:
    """An entry that is not understood has no effect and is noted; the others stand (S059)."""
    findings = Findings("f")
    read = parse_policy({key: [bad, NAME]}, findings, is_managed=is_managed, environ={})

    assert [rule.name for rule in (read.allow or read.deny)] == ["s"]
    assert [note.key for note in findings.notes] == [f"{key}[0]"]


@pytest.mark.parametrize("name", ["a b", "plugin:p:s", "ä", "*"])
def test_allowed_names_are_plain(name: str) -> None:
    """Names that only address or command entries can allow are refused in allow lists, not in deny lists (S049)."""
    assert source({"allowedMcpServers": [{"serverName": name}]}).allow == ()
    assert len(source({"deniedMcpServers": [{"serverName": name}]}).deny) == 1


@pytest.mark.parametrize("value", ["x", {}, 1, None])
def test_managed_lists_close(value: object) -> None:
    """A managed allow list of the wrong kind allows nothing, a deny list has no effect, a switch is on (S059)."""
    findings = Findings("m")

    read = parse_policy({"allowedMcpServers": value}, findings, is_managed=True, environ={})
    assert (read.allow, len(findings.problems)) == ((), 1)

    read = parse_policy({"deniedMcpServers": value or 0}, findings, is_managed=True, environ={})
    assert (read.deny, read.allow) == ((), None)

    read = parse_policy({"allowManagedMcpServersOnly": value}, findings, is_managed=True, environ={})
    assert read.is_managed_only


def test_own_file_is_used_whole_or_not() -> None:
    """A user's file with a list of the wrong kind is not used, and that is a problem (S059)."""
    findings = Findings("u")

    read = parse_policy(
        {"allowedMcpServers": "x", "deniedMcpServers": [NAME], "allowManagedMcpServersOnly": "x"},
        findings,
        is_managed=False,
        environ={},
    )

    assert read == PolicySource("u")
    assert len(findings.problems) == 1


ENVIRON = {"TENANT": "acme", "STAR": "*", "UP": "..", "SLASH": "a/b", "HOST": "h", "EMPTY": "", "PCT": "%2e"}


@pytest.mark.parametrize(
    ("url", "is_used"),
    [
        ("https://h/${TENANT}/*", True),
        ("https://h/${MISSING:-acme}/*", True),
        ("https://h/x?t=${TENANT}", True),
        ("https://${HOST}/*", False),
        ("${HOST}://h/", False),
        ("https://h:${TENANT}/", False),
        ("${HOST}/x", False),
        ("https://h/${STAR}", False),
        ("https://h/${UP}/x", False),
        ("https://h/${SLASH}", False),
        ("https://h/${EMPTY}", False),
        ("https://h/${PCT}", False),
        ("https://h/${MISSING}", False),
    ],
)
def test_variables_cannot_widen_what_is_allowed(url: str, is_used: bool) -> None:
    """A variable of an allowed address fills in a piece of its path and nothing more; deny entries take any (S058)."""
    findings = Findings("m")

    allowed = parse_policy({"allowedMcpServers": [{"serverUrl": url}]}, findings, is_managed=True, environ=ENVIRON)
    denied = parse_policy({"deniedMcpServers": [{"serverUrl": url}]}, findings, is_managed=True, environ=ENVIRON)

    assert (len(allowed.allow), len(denied.deny)) == (int(is_used), 1)


def test_deny_may_use_variables_of_files() -> None:
    """Where the environment has no value, deny entries take that of a settings file; allow entries do not (S058)."""
    command = [{"serverCommand": ["${TOOL}", "-y", "srv"]}]
    more = {"TOOL": "npx"}

    assert not decide(PROGRAM, combine([source({"deniedMcpServers": command}, more=more)])).is_allowed
    assert not decide(PROGRAM, combine([source({"allowedMcpServers": command}, more=more)])).is_allowed
