"""Tests of `config.notes`."""

from __future__ import annotations

import pytest

from mcp_actors.config.notes import ConfigNote, Findings, KeyPath, Shadowed, dotted
from mcp_actors.config.specs import Scope


@pytest.mark.parametrize(
    ("path", "expected"),
    [((), ""), (("a",), "a"), (("a", "b", 0, "c"), "a.b[0].c"), (("a", 1, 2), "a[1][2]"), (("a.b", ""), "a.b.")],
)
def test_dotted_is_how_people_write_it(path: KeyPath, expected: str) -> None:
    """Keys are joined by dots, indices stand in brackets."""
    assert dotted(path) == expected


def test_findings_are_placed_together() -> None:
    """Problems and notes get line and column by their key path; what has no place keeps none."""
    findings = Findings("f.json")
    findings.problem(("a", 0), "is wrong", server="s")
    findings.note(("b",), "code", "is odd")
    findings.note((), "code", "is odd")

    findings.place(lambda path: {("a", 0): (2, 3), ("b",): (4, 5)}.get(path))

    assert [str(problem) for problem in findings.problems] == ["s: f.json:2:3: a[0]: is wrong"]
    assert [str(note) for note in findings.notes] == ["f.json:4:5: b: is odd", "f.json: is odd"]


def test_note_without_file() -> None:
    """A note of no file speaks of the configuration."""
    assert str(ConfigNote("code", "is odd")) == "configuration: is odd"


def test_shadowed_says_who_won() -> None:
    """A lost definition names its source, and the winner where it has another name."""
    lost = Shadowed("a", Scope.USER, "u", "a", Scope.LOCAL, "l")
    same = Shadowed("plugin:p:a", Scope.PLUGIN, "p", "a", Scope.USER, "u", by="endpoint")

    assert str(lost) == "a: the definition of u (user) is not used, because that of l (local) is"
    assert str(same) == "plugin:p:a: the definition of p (plugin) is not used, because that 'a' of u (user) is"
