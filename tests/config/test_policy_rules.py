"""Tests of `config.policy_rules`; which rule decides is in `test_policy`, how an address matches in `test_patterns`."""

from __future__ import annotations

import pytest

from mcp_actors.config.patterns import parse_pattern
from mcp_actors.config.policy_rules import CommandRule, NameRule, UrlRule
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, ServerSpec, StdioTarget


async def serve(link: object) -> None:
    """Stands for a server in process; never runs."""


RULES = {
    "name": NameRule("s", "m", "s"),
    "command": CommandRule("npx -y srv", "m", ("npx", "-y", "srv")),
    "url": UrlRule("https://h/*", "m", parse_pattern("https://h/*")),
}
PROGRAM, REMOTE = StdioTarget("npx", ("-y", "srv")), RemoteTarget("https://h/mcp")


@pytest.mark.parametrize("in_every_spelling", [True, False])
@pytest.mark.parametrize(
    ("target", "matching"),
    [(PROGRAM, {"name", "command"}), (REMOTE, {"name", "url"}), (InProcessTarget(serve), {"name"})],
)
def test_an_entry_matches_its_own_kind_of_server(target: object, matching: set[str], in_every_spelling: bool) -> None:
    """A command says nothing about an address, nor the other way round; a name is enough for any (S049-S051)."""
    spec = ServerSpec(name="s", target=target)

    assert {key for key, rule in RULES.items() if rule.matches(spec, in_every_spelling=in_every_spelling)} == matching


@pytest.mark.parametrize(
    "command", [("npx", "-y", "srv", "x"), ("npx", "-y"), ("npx", "srv", "-y"), ("/bin/npx", "-y", "srv")]
)
def test_command_matches_exactly(command: tuple[str, ...]) -> None:
    """Every element in the same order, no prefixes (S050)."""
    spec = ServerSpec(name="s", target=StdioTarget(command[0], command[1:]))

    assert not RULES["command"].matches(spec, in_every_spelling=False)


@pytest.mark.parametrize("name", ["S", "s ", "s*", "*", "${N}"])
def test_name_matches_literally(name: str) -> None:
    """No case folding, wildcards or variables in names (S049)."""
    spec = ServerSpec(name="s", target=PROGRAM)

    assert not NameRule(name, "m", name).matches(spec, in_every_spelling=False)
