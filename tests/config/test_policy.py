"""Tests of `config.policy`."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import pytest
from attrs import evolve

from mcp_actors.config.notes import Findings
from mcp_actors.config.policy import OPEN_POLICY, Policy, apply_policy, decide
from mcp_actors.config.policy_lists import PolicySource, combine, parse_policy
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, Scope, ServerSpec, StdioTarget, TransportName


async def serve(link: object) -> None:
    """A stand-in for an in-process server."""


SPECS = {
    "stdio": ServerSpec(name="s", target=StdioTarget("npx", ("-y", "srv"))),
    "http": ServerSpec(name="s", target=RemoteTarget("https://h.example.com/mcp")),
    "sse": ServerSpec(name="s", target=RemoteTarget("https://h.example.com/mcp", TransportName.SSE)),
    "ws": ServerSpec(name="s", target=RemoteTarget("https://h.example.com/mcp", TransportName.WS)),
    "sdk": ServerSpec(name="s", target=InProcessTarget(serve)),
    "sse-ide": ServerSpec(name="s", target=RemoteTarget("https://h.example.com/mcp", TransportName.SSE_IDE)),
}
REMOTE = ("http", "sse", "ws")
NAME, OTHER_NAME = {"serverName": "s"}, {"serverName": "t"}
COMMAND, OTHER_COMMAND = {"serverCommand": ["npx", "-y", "srv"]}, {"serverCommand": ["npx"]}
URL, OTHER_URL = {"serverUrl": "https://*.example.com/*"}, {"serverUrl": "https://h.example.org"}


def source(settings: object, *, is_managed: bool = True, file: str = "m", **variables: dict[str, str]) -> PolicySource:
    findings = Findings(file)
    return parse_policy(settings, findings, is_managed=is_managed, environ={}, **variables)


def policy(allow: object = None, deny: object = None) -> Policy:
    settings = {"allowedMcpServers": allow, "deniedMcpServers": deny}
    return combine([source({key: value for key, value in settings.items() if value is not None})])


# (allow list, who may run); sdk and IDE servers are outside of allow lists (S048).
ALLOW = [
    (None, ["stdio", "http", "sse", "ws"]),
    ([], []),
    ([NAME], ["stdio", *REMOTE]),
    ([OTHER_NAME], []),
    ([COMMAND], ["stdio"]),
    ([OTHER_COMMAND], []),
    ([URL], [*REMOTE]),
    ([OTHER_URL], []),
    # A name counts only where the list has no entry of the decisive kind (S053).
    ([NAME, OTHER_COMMAND], [*REMOTE]),
    ([NAME, OTHER_URL], ["stdio"]),
    ([NAME, OTHER_URL, OTHER_COMMAND], []),
    ([NAME, COMMAND, OTHER_URL], ["stdio"]),
    ([OTHER_NAME, URL, COMMAND], ["stdio", *REMOTE]),
]
# (deny list, who may not run)
DENY = [
    (None, []),
    ([], []),
    ([NAME], list(SPECS)),
    ([OTHER_NAME], []),
    ([COMMAND], ["stdio"]),
    ([OTHER_COMMAND], []),
    ([URL], [*REMOTE, "sse-ide"]),
    ([OTHER_URL], []),
    ([OTHER_NAME, OTHER_URL, COMMAND], ["stdio"]),
]
MATRIX = list(itertools.product(ALLOW, DENY, SPECS))


CLOSED = {
    "true": (True, True),
    "false": (False, False),
    "a list with mcp": (["hooks", "mcp"], True),
    "a list without": (["hooks"], False),
    "not understood": ("mcp", True),
    "a list of what are no texts": ([1], True),
}


@pytest.mark.parametrize(("value", "is_closed"), CLOSED.values(), ids=CLOSED)
@pytest.mark.parametrize("scope", list(Scope))
def test_plugin_only_keeps_out_what_people_and_projects_bring(scope: Scope, value: object, is_closed: bool) -> None:
    """S064: user, project and local definitions; those of plugins, accounts, programs and the administrator stay."""
    findings = Findings("managed")
    managed = parse_policy({"strictPluginOnlyCustomization": value}, findings, is_managed=True, environ={})
    own = parse_policy({"strictPluginOnlyCustomization": True}, Findings("own"), is_managed=False, environ={})
    spec = ServerSpec("s", StdioTarget("npx"), scope=scope)

    verdict = decide(spec, combine([own, managed]))

    assert verdict.is_allowed is not (is_closed and scope in {Scope.USER, Scope.PROJECT, Scope.LOCAL})
    if not verdict.is_allowed:
        assert (verdict.rule, verdict.source) == ("strictPluginOnlyCustomization", "managed")


@pytest.mark.parametrize(("allow", "deny", "transport"), MATRIX)
def test_matrix(allow: tuple[object, list[str]], deny: tuple[object, list[str]], transport: str) -> None:
    """Every matcher, transport, and allow or deny list, unset, empty or filled (S046-S053)."""
    is_exempt = transport in ("sdk", "sse-ide")
    expected = (is_exempt or transport in allow[1]) and transport not in deny[1]

    verdict = decide(SPECS[transport], policy(allow[0], deny[0]))

    assert verdict.is_allowed == expected
    assert verdict.is_allowed or verdict.rule


REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "policy.csv"
TABLE = list(csv.DictReader(REFERENCE.read_text("utf-8").splitlines()))
TRANSPORTS = {"in process": "sdk", "IDE": "sse-ide"}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['list']} {row['settings']} {row['entries']}")
def test_the_table_of_the_reference_is_true(row: dict[str, str]) -> None:
    """What the documentation prints is what is decided, from managed and from user settings (S046-S055)."""
    key = {"allow": "allowedMcpServers", "deny": "deniedMcpServers"}[row["list"]]
    settings = {} if row["entries"] == "not set" else {key: json.loads(row["entries"].strip("`"))}
    if row["settings"] == "managed or user":
        policies = [combine([source(settings, is_managed=is_managed)]) for is_managed in (True, False)]
    else:
        managed = source({"allowManagedMcpServersOnly": True})
        policies = [combine([source(settings, is_managed=False, file="u"), managed])]

    for held in policies:
        for transport in ("stdio", "http", "sse", "ws", "in process", "IDE"):
            spec = SPECS[TRANSPORTS.get(transport, transport)]
            assert row[transport] == ("runs" if decide(spec, held).is_allowed else "blocked"), transport


@pytest.mark.parametrize("scope", list(Scope))
def test_every_scope_is_judged(scope: Scope) -> None:
    """No source of servers escapes the lists (S048, faults 29 and 108)."""
    assert not decide(evolve(SPECS["http"], scope=scope), policy(deny=[URL])).is_allowed
    assert not decide(evolve(SPECS["http"], scope=scope), policy(allow=[])).is_allowed


def test_verdict_names_rule_and_file() -> None:
    """Whoever is blocked learns by which rule of which file (S061, fault 30)."""
    [blocked] = apply_policy([SPECS["http"]], combine([source({"deniedMcpServers": [URL]}, file="/etc/m.json")]))

    assert (blocked.is_enabled, blocked.disabled_reason) == (False, "policy")
    assert blocked.disabled_detail == "explicitly blocked by deny serverUrl https://*.example.com/* of /etc/m.json"

    [blocked] = apply_policy([SPECS["http"]], combine([source({"allowedMcpServers": []}, file="/etc/m.json")]))
    assert "empty allow list" in blocked.disabled_detail

    error = decide(SPECS["http"], policy(deny=[URL])).error("s")
    assert (error.server, error.rule, error.file) == ("s", "deny serverUrl https://*.example.com/*", "m")


def test_apply_leaves_the_allowed_untouched() -> None:
    """What may run stays the same object, in order."""
    specs = tuple(SPECS.values())

    assert apply_policy(specs, OPEN_POLICY) == specs


@pytest.mark.parametrize(
    ("sources", "allow", "deny"),
    [
        ([], None, []),
        ([PolicySource("u"), PolicySource("m", is_managed=True)], None, []),
        ([("u", [NAME], None), ("m", None, None)], ["s"], []),
        ([("u", [NAME], [OTHER_NAME]), ("m", [OTHER_NAME], [NAME])], ["s", "t"], ["t", "s"]),
        ([("u", [], None)], [], []),
        ([("u", [NAME], [OTHER_NAME]), ("m", [], None, True)], [], ["t"]),
        ([("u", [NAME], [OTHER_NAME]), ("m", None, None, True)], None, ["t"]),
        ([("u", [NAME], None, True)], ["s"], []),
    ],
)
def test_lists_of_all_files_add_up(sources: list[object], allow: list[str] | None, deny: list[str]) -> None:
    """Deny counts from everywhere; with the managed switch only managed allow lists do (S054, S055)."""

    def made(file: str, allowed: object, denied: object, is_only: bool = False) -> PolicySource:
        settings = {"allowedMcpServers": allowed, "deniedMcpServers": denied, "allowManagedMcpServersOnly": is_only}
        given = {key: value for key, value in settings.items() if value is not None}
        return source(given, is_managed=file == "m", file=file)

    combined = combine([item if isinstance(item, PolicySource) else made(*item) for item in sources])

    assert (None if combined.allow is None else [rule.name for rule in combined.allow]) == allow
    assert [rule.name for rule in combined.deny] == deny


def test_policy_sees_what_would_run() -> None:
    """The expanded command and address count, however they are written (S045)."""
    spec = evolve(SPECS["http"], raw={"url": "https://${ANYTHING}"})

    assert not decide(spec, policy(deny=[URL])).is_allowed
