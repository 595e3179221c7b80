"""Tests of `config.remembering`."""

from __future__ import annotations

import json

import pytest

from mcp_actors.config.approvals import definition_hash
from mcp_actors.config.remembered import NOTHING_REMEMBERED, Remembered, Switches, parse_remembered
from mcp_actors.config.remembering import forget_project, remember, switch
from mcp_actors.config.specs import Scope, ServerSpec, StdioTarget
from mcp_actors.errors import ConfigError


def spec(name: str = "s", file: str = "/p/.mcp.json") -> ServerSpec:
    return ServerSpec(name=name, target=StdioTarget("x"), scope=Scope.PROJECT, source=file, raw={"command": "${TOKEN}"})


def test_what_was_approved_comes_back() -> None:
    """A definition is kept by its hash, with its name and file, and nothing of what it holds."""
    text = remember(remember(None, spec(), "f"), spec("t"), "f")

    assert parse_remembered(text, "f").approvals.hashes == {definition_hash(spec()), definition_hash(spec("t"))}
    assert json.loads(text)["version"] == 1
    assert "TOKEN" not in text


def test_an_approval_is_for_one_file() -> None:
    """The same words in another folder are another program."""
    approved = parse_remembered(remember(None, spec(), "f"), "f").approvals.hashes

    assert definition_hash(spec(file="/q/.mcp.json")) not in approved


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("s", False, False)], Switches(frozenset({"s"}), frozenset())),
        ([("s", False, False), ("s", True, False)], Switches()),
        ([("s", True, True)], Switches(frozenset(), frozenset({"s"}))),
        ([("s", True, True), ("s", False, False)], Switches(frozenset({"s"}), frozenset())),
        ([("s", False, False), ("t", False, False), ("s", True, True)], Switches(frozenset("t"), frozenset("s"))),
    ],
)
def test_switches(steps: list[tuple[str, bool, bool]], expected: Switches) -> None:
    """The last word on a name counts, and it stands in one list at most (S037)."""
    text = None
    for name, is_on, overrides in steps:
        text = switch(text, "/p", name, "f", is_on=is_on, overrides=overrides)

    assert text is not None
    assert parse_remembered(text, "f").switches("/p") == expected
    assert parse_remembered(text, "f").switches("/q") == Switches()


def test_a_project_is_forgotten_alone() -> None:
    """Its switches and what was approved of its files go; those of others, and what we do not know, stay."""
    text = remember(remember('{"x-later": [1]}', spec(), "f"), spec(file="/q/.mcp.json"), "f")
    text = switch(switch(text, "/p", "s", "f", is_on=False), "/q", "s", "f", is_on=False)

    left = forget_project(text, "/p", frozenset({"/p/.mcp.json"}), "f")

    assert parse_remembered(left, "f") == Remembered(
        {definition_hash(spec(file="/q/.mcp.json")): "/q/.mcp.json"}, {"/q": Switches(frozenset("s"))}
    )
    assert json.loads(left)["x-later"] == [1]
    assert parse_remembered(forget_project(None, "/p", frozenset(), "f"), "f") == NOTHING_REMEMBERED


def test_a_broken_file_is_not_written_over() -> None:
    """It is told, and not taken for an empty one."""
    with pytest.raises(ConfigError):
        remember("{", spec(), "f")
